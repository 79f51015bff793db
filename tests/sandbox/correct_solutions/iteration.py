"""Iterators, generators, coroutines, and arguments that are read lazily."""

from tests.sandbox.correct_solutions.kind import Kind

ITERATION = [
    Kind(
        "generator",
        "def f(n):\n    a, b = 0, 1\n    for _ in range(n):\n        yield a\n        a, b = b, a + b\n",
        """
        assert list(f(6)) == [0, 1, 1, 2, 3, 5]
        g = f(2)
        assert next(g) == 0
        assert next(g) == 1
        assert next(g, "end") == "end"
        assert sum(f(5)) == 7
        """,
    ),
    Kind(
        "infinite-generator",
        "import itertools\ndef f(start):\n    for n in itertools.count(start): yield n * n\n",
        """
        import itertools
        assert list(itertools.islice(f(2), 3)) == [4, 9, 16]
        g = f(0)
        assert [next(g) for _ in range(3)] == [0, 1, 4]
        assert next(x for x in f(1) if x > 50) == 64
        """,
    ),
    Kind(
        "generator-with-send",
        """
        def f():
            total = 0
            while True:
                got = yield total
                if got is None: return
                total += got
        """,
        """
        g = f()
        assert next(g) == 0
        assert g.send(5) == 5
        assert g.send(7) == 12
        g.close()
        assert next(g, "closed") == "closed"
        """,
    ),
    Kind(
        "iterator-is-its-own",
        "def f(xs): return iter(xs)\n",
        """
        it = f([1, 2])
        assert iter(it) is it
        assert next(it) == 1
        assert list(it) == [2]
        assert list(it) == []
        """,
    ),
    Kind(
        "iterator-class",
        """
        class Countdown:
            def __init__(self, n): self.n = n
            def __iter__(self): return self
            def __next__(self):
                if self.n <= 0: raise StopIteration
                self.n -= 1
                return self.n + 1
        """,
        """
        assert list(Countdown(3)) == [3, 2, 1]
        c = Countdown(2)
        assert next(c) == 2
        assert next(c) == 1
        try:
            next(c)
            assert False
        except StopIteration:
            pass
        assert 2 in Countdown(3)
        a, b = Countdown(2)
        assert (a, b) == (2, 1)
        """,
        entry="Countdown",
    ),
    Kind(
        "iterable-by-getitem",
        "class Squares:\n    def __getitem__(self, i):\n        if i > 3: raise IndexError\n        return i * i\n",
        "assert list(Squares()) == [0, 1, 4, 9]\nassert 4 in Squares()\nassert [x for x in Squares()][-1] == 9\n",
        entry="Squares",
    ),
    Kind(
        "map-filter-zip",
        "def f(xs): return map(str, filter(None, xs)), zip(xs, xs[1:])\n",
        """
        a, b = f([1, 0, 2])
        assert list(a) == ["1", "2"]
        assert list(b) == [(1, 0), (0, 2)]
        """,
    ),
    Kind(
        "enumerate-reversed",
        "def f(xs): return enumerate(reversed(xs), 1)\n",
        "assert list(f('ab')) == [(1, 'b'), (2, 'a')]\nassert dict(f('ab')) == {1: 'b', 2: 'a'}\n",
    ),
    Kind(
        "iterator-argument",
        "def f(it, n):\n    return [x for x, _ in zip(it, range(n))]\n",
        """
        assert f(iter([1, 2, 3]), 2) == [1, 2]
        assert f((x * x for x in range(10)), 3) == [0, 1, 4]
        assert f(map(str, [1, 2]), 5) == ["1", "2"]
        it = iter("abcd")
        assert f(it, 2) == ["a", "b"]
        """,
    ),
    Kind(
        "lazy-argument",
        """
        def f(it):
            for x in it:
                if x > 3: return x
        """,
        """
        import itertools
        assert f(itertools.count()) == 4
        def gen():
            yield 1
            yield 9
            raise AssertionError("read too far")
        assert f(gen()) == 9
        assert f([]) is None
        """,
        rows=[{"args": [[1, 5]], "expect": 5}],
    ),
    Kind(
        "chunked",
        "from itertools import islice\ndef f(it, n):\n    it = iter(it)\n    while chunk := tuple(islice(it, n)):\n        yield chunk\n",
        """
        assert list(f("abcde", 2)) == [("a", "b"), ("c", "d"), ("e",)]
        assert list(f(iter(range(3)), 5)) == [(0, 1, 2)]
        assert list(f([], 3)) == []
        """,
        rows=[],
    ),
    Kind(
        "generator-pipeline",
        "def f(it, *stages):\n    for stage in stages: it = stage(it)\n    return it\n",
        """
        double = lambda xs: (2 * x for x in xs)
        odd = lambda xs: (x for x in xs if x % 2)
        assert list(f([1, 2, 3], odd, double)) == [2, 6]
        assert list(f(range(3))) == [0, 1, 2]
        """,
    ),
    Kind(
        "coroutine",
        "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return x * 2\n",
        "import asyncio\nassert asyncio.run(f(4)) == 8\nassert asyncio.run(f('a')) == 'aa'\n",
    ),
    Kind(
        "gather",
        """
        import asyncio
        async def one(x): return x * x
        async def f(xs): return await asyncio.gather(*(one(x) for x in xs))
        """,
        "import asyncio\nassert asyncio.run(f([1, 2, 3])) == [1, 4, 9]\n",
    ),
    Kind(
        "gather-of-coroutines",
        "async def f(x): return x + 1\n",
        """
        import asyncio
        async def main():
            return await asyncio.gather(f(1), f(2))
        assert asyncio.run(main()) == [2, 3]
        """,
    ),
    Kind(
        "async-generator",
        "async def f(n):\n    for i in range(n): yield i\n",
        """
        import asyncio
        async def main():
            return [x async for x in f(3)]
        assert asyncio.run(main()) == [0, 1, 2]
        """,
    ),
    Kind(
        "async-context-manager",
        """
        class Session:
            def __init__(self): self.open = False
            async def __aenter__(self):
                self.open = True
                return self
            async def __aexit__(self, *args): self.open = False
        """,
        """
        import asyncio
        async def main():
            s = Session()
            async with s:
                inside = s.open
            return inside, s.open
        assert asyncio.run(main()) == (True, False)
        """,
        entry="Session",
    ),
    Kind(
        "nested-generators",
        "def f(x):\n    for item in x:\n        if isinstance(item, list): yield from f(item)\n        else: yield item\n",
        """
        assert list(f([1, [2, [3, []]], 4])) == [1, 2, 3, 4]
        deep = 1
        for _ in range(100): deep = [deep]
        assert list(f(deep)) == [1]
        """,
    ),
    Kind(
        "deep-nesting",
        "def f(n):\n    v = []\n    for _ in range(n): v = [v]\n    return v\n",
        """
        v, depth = f(400), 0
        while v:
            v, depth = v[0], depth + 1
        assert depth == 400
        """,
    ),
    Kind(
        "deep-argument",
        "def f(v):\n    n = 0\n    while v: v, n = v[0], n + 1\n    return n\n",
        """
        v = []
        for _ in range(300): v = [v]
        assert f(v) == 300
        assert f([]) == 0
        """,
    ),
]
