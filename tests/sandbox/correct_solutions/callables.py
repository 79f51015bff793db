"""Functions as arguments and return values, decorators, mocks, objects of the tests."""

from tests.sandbox.correct_solutions.kind import Kind

CALLABLES = [
    Kind(
        "closure",
        "def f(n):\n    count = [n]\n    def inc(by=1):\n        count[0] += by\n        return count[0]\n    return inc\n",
        "c = f(5)\nassert c() == 6\nassert c(by=10) == 16\nassert f(0)() == 1\nassert callable(c)\n",
    ),
    Kind(
        "decorator",
        """
        import functools
        def f(fn):
            @functools.wraps(fn)
            def wrapper(*args, **kwargs):
                wrapper.calls += 1
                return fn(*args, **kwargs)
            wrapper.calls = 0
            return wrapper
        """,
        """
        @f
        def add(a, b=2):
            "Add two numbers."
            return a + b
        assert add(1) == 3
        assert add(1, b=5) == 6
        assert add.calls == 2
        assert add.__name__ == "add"
        assert add.__doc__ == "Add two numbers."
        """,
    ),
    Kind(
        "decorator-with-arguments",
        """
        def f(times):
            def decorate(fn):
                def wrapper(*a): return [fn(*a) for _ in range(times)]
                return wrapper
            return decorate
        """,
        """
        @f(3)
        def greet(name): return "hi " + name
        assert greet("x") == ["hi x"] * 3
        """,
    ),
    Kind(
        "memoize",
        """
        def f(fn):
            cache = {}
            def wrapper(*args):
                if args not in cache: cache[args] = fn(*args)
                return cache[args]
            return wrapper
        """,
        """
        calls = []
        def square(x):
            calls.append(x)
            return x * x
        fast = f(square)
        assert fast(3) == 9
        assert fast(3) == 9
        assert calls == [3]
        """,
    ),
    Kind(
        "compose",
        "from functools import reduce\ndef f(*fns): return lambda x: reduce(lambda v, g: g(v), fns, x)\n",
        "assert f(lambda x: x + 1, str)(4) == '5'\nassert f()(7) == 7\nassert f(len, abs)('abc') == 3\n",
    ),
    Kind(
        "curry",
        "def f(fn, n, *got):\n    return fn(*got) if len(got) >= n else lambda x: f(fn, n, *got, x)\n",
        "assert f(lambda a, b, c: a + b + c, 3)(1)(2)(3) == 6\nassert f(max, 2)(5)(9) == 9\n",
    ),
    Kind(
        "partial",
        "from functools import partial\ndef f(fn, *args, **kw): return partial(fn, *args, **kw)\n",
        """
        assert f(pow, 2)(5) == 32
        assert f(int, base=2)("101") == 5
        assert f(sorted, reverse=True)([1, 3, 2]) == [3, 2, 1]
        """,
    ),
    Kind(
        "key-function",
        "def f(xs, key): return sorted(xs, key=key), max(xs, key=key)\n",
        """
        import operator
        assert f(["bb", "a"], len) == (["a", "bb"], "bb")
        assert f([(1, 9), (2, 3)], lambda p: p[1]) == ([(2, 3), (1, 9)], (1, 9))
        assert f([(1, 9), (2, 3)], operator.itemgetter(0)) == ([(1, 9), (2, 3)], (2, 3))
        assert f(["B", "a"], str.lower) == (["a", "B"], "B")
        """,
    ),
    Kind(
        "operators-as-arguments",
        "def f(op, a, b): return op(a, b)\n",
        """
        import math
        import operator
        assert f(operator.add, 2, 3) == 5
        assert f(operator.mul, "a", 3) == "aaa"
        assert f(math.gcd, 12, 18) == 6
        assert f(isinstance, 1, int) == True
        """,
    ),
    Kind(
        "callback-errors",
        """
        def f(call, tries):
            for n in range(tries):
                try:
                    return call()
                except ConnectionError:
                    continue
            raise TimeoutError("gave up")
        """,
        """
        state = {"n": 0}
        def flaky():
            state["n"] += 1
            if state["n"] < 3: raise ConnectionError("down")
            return "up"
        assert f(flaky, 5) == "up"
        assert state["n"] == 3
        def down(): raise ConnectionError
        try:
            f(down, 2)
            assert False
        except TimeoutError as error:
            assert str(error) == "gave up"
        """,
    ),
    Kind(
        "callback-mutates",
        "def f(xs, visit):\n    for x in xs: visit(x)\n    return len(xs)\n",
        """
        seen = []
        assert f([3, 4], seen.append) == 2
        assert seen == [3, 4]
        total = {"sum": 0}
        def add(x): total["sum"] += x
        f([1, 2], add)
        assert total["sum"] == 3
        """,
    ),
    Kind(
        "mock-callback",
        "def f(items, notify):\n    for i in items:\n        if i > 2: notify(i, level='high')\n",
        """
        from unittest.mock import Mock, call
        notify = Mock()
        f([1, 5, 3], notify)
        assert notify.call_count == 2
        notify.assert_called_with(3, level="high")
        assert notify.call_args_list == [call(5, level="high"), call(3, level="high")]
        """,
    ),
    Kind(
        "mock-object",
        """
        def f(repository, key):
            value = repository.load(key)
            if value is None:
                value = "default"
                repository.save(key, value)
            return value
        """,
        """
        from unittest.mock import Mock
        repository = Mock()
        repository.load.return_value = None
        assert f(repository, "k") == "default"
        repository.save.assert_called_once_with("k", "default")
        repository.load.return_value = "v"
        assert f(repository, "k") == "v"
        assert repository.save.call_count == 1
        """,
    ),
    Kind(
        "mock-side-effect",
        "def f(fetch, n): return [fetch(i) for i in range(n)]\n",
        """
        from unittest.mock import Mock
        assert f(Mock(side_effect=[1, 2, 3]), 3) == [1, 2, 3]
        assert f(Mock(side_effect=lambda i: i * 10), 2) == [0, 10]
        try:
            f(Mock(side_effect=KeyError("k")), 1)
            assert False
        except KeyError:
            pass
        """,
    ),
    Kind(
        "magic-mock",
        "def f(connection):\n    with connection.cursor() as c:\n        c.execute('select 1')\n        return len(c.rows)\n",
        """
        from unittest.mock import MagicMock
        connection = MagicMock()
        cursor = connection.cursor.return_value.__enter__.return_value
        cursor.rows = [1, 2]
        assert f(connection) == 2
        cursor.execute.assert_called_once_with("select 1")
        """,
    ),
    Kind(
        "duck-typed-argument",
        "def f(animals): return [a.speak(loud=True) for a in animals]\n",
        """
        class Duck:
            def speak(self, loud=False): return "QUACK" if loud else "quack"
        class Robot:
            def __init__(self, n): self.n = n
            def speak(self, loud=False): return f"unit {self.n}"
        assert f([Duck(), Robot(7)]) == ["QUACK", "unit 7"]
        """,
    ),
    Kind(
        "object-argument-attributes",
        "def f(items): return sum(i.price * i.count for i in items)\n",
        """
        class Item:
            def __init__(self, price, count): self.price, self.count = price, count
        assert f([Item(2, 3), Item(5, 1)]) == 11
        assert f([]) == 0
        """,
    ),
    Kind(
        "object-argument-changed",
        "def f(user, name):\n    user.name = name\n    user.tags.append('renamed')\n    return user\n",
        """
        class User:
            def __init__(self): self.name, self.tags = "old", []
        u = User()
        assert f(u, "new") is u
        assert u.name == "new"
        """,
    ),
    Kind(
        "comparable-arguments",
        "def f(xs): return sorted(xs), max(xs), len(set(xs))\n",
        """
        import functools
        @functools.total_ordering
        class Card:
            def __init__(self, rank): self.rank = rank
            def __lt__(self, other): return self.rank < other.rank
            def __eq__(self, other): return self.rank == other.rank
            def __hash__(self): return hash(self.rank)
        ordered, best, kinds = f([Card(3), Card(1), Card(3)])
        assert [c.rank for c in ordered] == [1, 3, 3]
        assert best.rank == 3
        assert kinds == 2
        """,
    ),
    Kind(
        "context-manager-argument",
        "def f(lock, log):\n    with lock as l:\n        log.append(l)\n    return log\n",
        """
        class Lock:
            state = "new"
            def __enter__(self):
                self.state = "held"
                return "held"
            def __exit__(self, *a): self.state = "free"
        lock = Lock()
        assert f(lock, []) == ["held"]
        assert lock.state == "free"
        """,
    ),
    Kind(
        "class-as-argument",
        "def f(kind, rows): return [kind(*row) for row in rows]\n",
        """
        class Pair:
            def __init__(self, a, b): self.a, self.b = a, b
            def total(self): return self.a + self.b
        pairs = f(Pair, [(1, 2), (3, 4)])
        assert [p.total() for p in pairs] == [3, 7]
        assert all(isinstance(p, Pair) for p in pairs)
        """,
    ),
    Kind(
        "subclass-of-the-codes-class",
        """
        class Plugin:
            name = "base"
            def run(self, x): return f"{self.name}:{self.transform(x)}"
            def transform(self, x): raise NotImplementedError
        """,
        """
        class Upper(Plugin):
            name = "upper"
            def transform(self, x): return x.upper()
        assert Upper().run("a") == "upper:A"
        assert issubclass(Upper, Plugin)
        """,
        entry="Plugin",
    ),
    Kind(
        "file-argument",
        "def f(file): return [line.strip() for line in file if line.strip()]\n",
        """
        import io
        assert f(io.StringIO("a\\n\\n b \\n")) == ["a", "b"]
        assert f(["x\\n"]) == ["x"]
        """,
        rows=[{"args": [["x\n", "\n"]], "expect": ["x"]}],
    ),
    Kind(
        "writes-to-a-file",
        "def f(rows, out):\n    for r in rows: out.write(','.join(map(str, r)) + '\\n')\n",
        """
        import io
        out = io.StringIO()
        f([(1, 2), (3, 4)], out)
        assert out.getvalue() == "1,2\\n3,4\\n"
        """,
    ),
    Kind(
        "function-metadata",
        "def f(x: int, y: str = 'a') -> str:\n    '''Repeat y.'''\n    return y * x\n",
        """
        assert f.__name__ == "f"
        assert "Repeat" in f.__doc__
        assert f.__defaults__ == ("a",)
        assert f.__annotations__["x"] is int
        assert f(2) == "aa"
        """,
        rows=[{"args": [2], "kwargs": {"y": "b"}, "expect": "bb"}],
    ),
    Kind(
        "lru-cache",
        "from functools import lru_cache\n@lru_cache(maxsize=None)\ndef f(n): return n if n < 2 else f(n - 1) + f(n - 2)\n",
        "assert f(30) == 832040\nassert f(0) == 0\nassert f.cache_info().misses == 31\n",
        rows=[{"args": [10], "expect": 55}],
    ),
    Kind(
        "varargs",
        "def f(*args, sep='-', **rest): return sep.join(map(str, args)) + str(sorted(rest))\n",
        "assert f(1, 2, sep='+', z=1) == \"1+2['z']\"\nassert f() == '[]'\nassert f(*[1], **{'b': 2}) == \"1['b']\"\n",
        rows=[{"args": [1, 2], "kwargs": {"sep": "+"}, "expect": "1+2[]"}],
    ),
    Kind(
        "recursive-callback",
        "def f(visit, tree):\n    return visit(tree, lambda sub: f(visit, sub))\n",
        """
        def total(tree, recurse):
            return tree if isinstance(tree, int) else sum(recurse(t) for t in tree)
        assert f(total, [1, [2, 3], [[4]]]) == 10
        """,
    ),
    Kind(
        "event-order",
        "def f(steps):\n    return [step() for step in steps][::-1]\n",
        """
        order = []
        def make(n):
            def step():
                order.append(n)
                return n * n
            return step
        assert f([make(1), make(2), make(3)]) == [9, 4, 1]
        assert order == [1, 2, 3]
        """,
    ),
]
