"""Values of the standard library, as answers and as arguments."""

from tests.sandbox.correct_solutions.kind import Kind

VALUES = [
    Kind(
        "counter",
        "from collections import Counter\ndef f(s): return Counter(s)\n",
        """
        from collections import Counter
        assert f("aab") == Counter({"a": 2, "b": 1})
        assert f("aab").most_common(1) == [("a", 2)]
        assert f("aab")["z"] == 0
        assert isinstance(f(""), Counter)
        assert (f("aa") + f("a"))["a"] == 3
        """,
        rows=[{"args": ["aab"], "expect": {"a": 2, "b": 1}}],
    ),
    Kind(
        "defaultdict",
        """
        from collections import defaultdict
        def f(words):
            groups = defaultdict(list)
            for w in words: groups[len(w)].append(w)
            return groups
        """,
        """
        g = f(["a", "bb", "c"])
        assert g == {1: ["a", "c"], 2: ["bb"]}
        assert g[7] == []
        """,
        rows=[{"args": [["a", "bb"]], "expect": {1: ["a"], 2: ["bb"]}}],
    ),
    Kind(
        "ordered-dict",
        "from collections import OrderedDict\ndef f(xs): return OrderedDict((x, i) for i, x in enumerate(xs))\n",
        """
        from collections import OrderedDict
        d = f("ba")
        assert d == OrderedDict([("b", 0), ("a", 1)])
        assert d != OrderedDict([("a", 1), ("b", 0)])
        assert list(d) == ["b", "a"]
        d.move_to_end("b")
        assert list(d) == ["a", "b"]
        """,
        rows=[{"args": ["ba"], "expect": {"b": 0, "a": 1}}],
    ),
    Kind(
        "deque",
        "from collections import deque\ndef f(xs, n): return deque(xs, maxlen=n)\n",
        """
        from collections import deque
        d = f([1, 2, 3], 2)
        assert d == deque([2, 3])
        d.append(4)
        assert list(d) == [3, 4]
        assert d.maxlen == 2
        d.rotate(1)
        assert d[0] == 4
        """,
    ),
    Kind(
        "namedtuple",
        "from collections import namedtuple\nPoint = namedtuple('Point', 'x y')\ndef f(x, y): return Point(x, y)\n",
        """
        p = f(1, 2)
        assert p.x == 1 and p.y == 2
        assert p == (1, 2)
        assert p._replace(x=5) == (5, 2)
        assert p._asdict() == {"x": 1, "y": 2}
        x, y = p
        assert x + y == 3
        assert isinstance(p, tuple)
        """,
        rows=[{"args": [1, 2], "expect": [1, 2]}],
    ),
    Kind(
        "typed-namedtuple",
        """
        from typing import NamedTuple
        class Span(NamedTuple):
            start: int
            end: int = 10
            @property
            def width(self): return self.end - self.start
            def shift(self, n): return Span(self.start + n, self.end + n)
        """,
        """
        s = Span(3)
        assert s == (3, 10)
        assert s.end == 10
        assert s.width == 7
        assert s.shift(2) == Span(5, 12)
        """,
        entry="Span",
    ),
    Kind(
        "decimal",
        "from decimal import Decimal\ndef f(a, b): return Decimal(a) + Decimal(b)\n",
        """
        from decimal import Decimal
        assert f("0.1", "0.2") == Decimal("0.3")
        assert isinstance(f("1", "2"), Decimal)
        assert f("1", "0").quantize(Decimal("0.01")) == Decimal("1.00")
        assert str(f("1.10", "2")) == "3.10"
        """,
    ),
    Kind(
        "decimal-argument",
        "def f(xs): return sum(xs) / len(xs)\n",
        """
        from decimal import Decimal
        from fractions import Fraction
        assert f([Decimal("1.5"), Decimal("2.5")]) == Decimal("2")
        assert f([Fraction(1, 3), Fraction(2, 3)]) == Fraction(1, 2)
        """,
        rows=[{"args": [[1, 3]], "expect": 2}],
    ),
    Kind(
        "fraction",
        "from fractions import Fraction\ndef f(a, b): return Fraction(a, b)\n",
        """
        from fractions import Fraction
        assert f(2, 4) == Fraction(1, 2)
        assert f(2, 4).denominator == 2
        assert f(1, 2) + f(1, 2) == 1
        assert f(1, 2) == 0.5
        """,
        rows=[{"args": [2, 4], "expect": 0.5}],
    ),
    Kind(
        "datetime",
        "from datetime import datetime, timedelta, timezone\ndef f(d, days): return d + timedelta(days=days)\n",
        """
        from datetime import date, datetime, timedelta, timezone
        assert f(date(2024, 2, 28), 2) == date(2024, 3, 1)
        assert f(datetime(2024, 1, 1, 5, tzinfo=timezone.utc), 1) == datetime(2024, 1, 2, 5, tzinfo=timezone.utc)
        assert (f(date(2024, 1, 1), 1) - date(2024, 1, 1)) == timedelta(days=1)
        assert f(date(2023, 12, 31), 1).year == 2024
        """,
    ),
    Kind(
        "timezone-argument",
        "from datetime import datetime\ndef f(stamp, tz): return datetime.fromtimestamp(stamp, tz).isoformat()\n",
        """
        from datetime import timedelta, timezone
        assert f(0, timezone.utc) == "1970-01-01T00:00:00+00:00"
        assert f(0, timezone(timedelta(hours=2))) == "1970-01-01T02:00:00+02:00"
        """,
    ),
    Kind(
        "range",
        "def f(n): return range(0, n, 2)\n",
        """
        assert f(6) == range(0, 6, 2)
        assert list(f(5)) == [0, 2, 4]
        assert f(10)[-1] == 8
        assert 4 in f(6)
        """,
    ),
    Kind(
        "range-argument",
        "def f(r): return [r.start, r.stop, sum(r)]\n",
        "assert f(range(2, 5)) == [2, 5, 9]\nassert f(range(0)) == [0, 0, 0]\n",
    ),
    Kind(
        "slice",
        "def f(a, b): return slice(a, b)\n",
        """
        assert f(1, 3) == slice(1, 3)
        assert "hello"[f(1, 3)] == "el"
        assert f(None, 2).start is None
        """,
    ),
    Kind(
        "slice-argument",
        "def f(xs, s): return xs[s]\n",
        "assert f([1, 2, 3, 4], slice(1, None, 2)) == [2, 4]\nassert f('abc', slice(None, None, -1)) == 'cba'\n",
    ),
    Kind(
        "dict-keys",
        "def f(d): return d.keys()\n",
        """
        assert f({"a": 1, "b": 2}) == {"a", "b"}
        assert list(f({"b": 1, "a": 2})) == ["b", "a"]
        assert f({"a": 1}) & {"a", "c"} == {"a"}
        assert "a" in f({"a": 1})
        """,
    ),
    Kind(
        "dict-items",
        "def f(d): return d.items()\n",
        """
        assert sorted(f({"b": 1, "a": 2})) == [("a", 2), ("b", 1)]
        assert ("a", 1) in f({"a": 1})
        assert len(f({})) == 0
        assert f({"a": 1}) == {"a": 1}.items()
        """,
    ),
    Kind(
        "dict-values",
        "def f(d): return d.values()\n",
        """
        assert sorted(f({"b": 1, "a": 2})) == [1, 2]
        assert list(f({"x": [1]})) == [[1]]
        assert sum(f({"a": 1, "b": 5})) == 6
        """,
    ),
    Kind(
        "view-argument",
        "def f(view): return sorted(view)\n",
        """
        d = {"b": 2, "a": 1}
        assert f(d.keys()) == ["a", "b"]
        assert f(d.values()) == [1, 2]
        assert f(d.items()) == [("a", 1), ("b", 2)]
        """,
    ),
    Kind(
        "complex-number",
        "import cmath\ndef f(a, b, c):\n    d = cmath.sqrt(b * b - 4 * a * c)\n    return (-b + d) / (2 * a)\n",
        """
        assert f(1, 0, 1) == 1j
        assert f(1, 0, 1).imag == 1.0
        assert abs(f(1, 2, 5) - (-1 + 2j)) < 1e-9
        """,
    ),
    Kind(
        "bytes",
        "def f(s): return s.encode('utf-8'), bytearray(s, 'ascii')\n",
        """
        a, b = f("hi")
        assert a == b"hi"
        assert b == bytearray(b"hi")
        assert a.hex() == "6869"
        b.append(33)
        assert bytes(b) == b"hi!"
        """,
    ),
    Kind(
        "frozenset",
        "def f(xs): return frozenset(xs), {frozenset(x) for x in xs}\n",
        """
        a, b = f(["ab", "ba", "c"])
        assert a == {"ab", "ba", "c"}
        assert b == {frozenset("ab"), frozenset("c")}
        assert isinstance(a, frozenset)
        """,
    ),
    Kind(
        "uuid",
        "import uuid\ndef f(n): return uuid.UUID(int=n)\n",
        "import uuid\nassert f(1) == uuid.UUID('00000000-0000-0000-0000-000000000001')\nassert f(255).hex[-2:] == 'ff'\n",
    ),
    Kind(
        "path",
        "from pathlib import PurePosixPath\ndef f(p): return PurePosixPath(p).with_suffix('.txt')\n",
        """
        from pathlib import PurePosixPath
        assert f("/a/b.md") == PurePosixPath("/a/b.txt")
        assert f("x.py").name == "x.txt"
        assert str(f("/a/b.md")) == "/a/b.txt"
        """,
    ),
    Kind(
        "regular-expression",
        "import re\ndef f(words): return re.compile('|'.join(map(re.escape, words)))\n",
        """
        import re
        assert f(["a.b", "c"]).findall("a.b axb c") == ["a.b", "c"]
        assert f(["x"]).pattern == "x"
        assert f(["x"]).match("xy") is not None
        assert f(["x"]).match("yx") is None
        """,
    ),
    Kind(
        "pattern-argument",
        "def f(pattern, text): return pattern.findall(text)\n",
        "import re\nassert f(re.compile(r'\\d+'), 'a1b22') == ['1', '22']\n"
        "assert f(re.compile('X', re.I), 'xX') == ['x', 'X']\n",
    ),
    Kind(
        "simple-namespace",
        "from types import SimpleNamespace\ndef f(**kw): return SimpleNamespace(**kw)\n",
        """
        from types import SimpleNamespace
        n = f(a=1, b=[2])
        assert n.a == 1 and n.b == [2]
        assert n == SimpleNamespace(a=1, b=[2])
        """,
    ),
    Kind(
        "namespace-argument",
        "def f(user):\n    user.age += 1\n    return f'{user.name} is {user.age}'\n",
        """
        from types import SimpleNamespace
        user = SimpleNamespace(name="Ann", age=4)
        assert f(user) == "Ann is 5"
        assert user.age == 5
        """,
    ),
    Kind(
        "types-as-arguments",
        "def f(kind, xs): return [kind(x) for x in xs if not isinstance(x, kind)]\n",
        """
        assert f(int, ["1", 2]) == [1]
        assert f(str, [1, "a"]) == ["1"]
        assert f(tuple, [[1], (2,)]) == [(1,)]
        assert f(float, ["1.5"]) == [1.5]
        """,
    ),
    Kind(
        "library-classes-as-arguments",
        "def f(kind, x): return kind(x)\n",
        """
        from collections import Counter, deque
        from decimal import Decimal
        from fractions import Fraction
        assert f(Counter, "aab") == {"a": 2, "b": 1}
        assert f(Decimal, "1.5") == Decimal("1.5")
        assert f(Fraction, "1/2") == Fraction(1, 2)
        assert f(deque, [1]) == deque([1])
        """,
    ),
    Kind(
        "types-as-answers",
        "def f(x): return type(x)\n",
        """
        from collections import Counter
        assert f(1) is int
        assert f("a") is str
        assert f([]) == list
        assert f(None) is type(None)
        assert f(Counter()) is Counter
        assert f(ValueError("x")) is ValueError
        """,
    ),
    Kind(
        "type-dispatch",
        """
        from functools import singledispatch
        @singledispatch
        def f(x): return "object"
        @f.register
        def _(x: int): return "int"
        @f.register
        def _(x: list): return "list of " + str(len(x))
        """,
        """
        assert f(1) == "int"
        assert f([1, 2]) == "list of 2"
        assert f("s") == "object"
        assert f(True) == "int"
        """,
        rows=[{"args": [1], "expect": "int"}, {"args": ["s"], "expect": "object"}],
    ),
    Kind(
        "ellipsis-and-notimplemented",
        "def f(x): return ... if x is ... else NotImplemented\n",
        "assert f(...) is ...\nassert f(1) is NotImplemented\n",
    ),
    Kind(
        "special-floats",
        "def f(x): return [x, float('inf'), -0.0]\n",
        """
        import math
        got = f(float("nan"))
        assert math.isnan(got[0])
        assert got[1] == math.inf
        assert math.copysign(1, got[2]) == -1.0
        """,
    ),
    Kind(
        "huge-integers",
        "import math\ndef f(n): return math.factorial(n)\n",
        "import math\nassert f(100) == math.factorial(100)\nassert f(50) % 10**9 == 0\nassert len(str(f(1000))) == 2568\n",
        rows=[{"args": [5], "expect": 120}],
    ),
    Kind(
        "mixed-keys",
        "def f(): return {1: 'a', (1, 2): 'b', None: 'c', 1.5: 'd', frozenset([1]): 'e', True: 'f'}\n",
        """
        d = f()
        assert d[1] == "f"
        assert d[(1, 2)] == "b" and d[None] == "c" and d[1.5] == "d"
        assert d[frozenset([1])] == "e"
        """,
    ),
    Kind(
        "chain-map",
        "from collections import ChainMap\ndef f(a, b): return ChainMap(a, b)\n",
        """
        from collections import ChainMap
        c = f({"x": 1}, {"x": 2, "y": 3})
        assert c["x"] == 1
        assert c["y"] == 3
        assert dict(c) == {"x": 1, "y": 3}
        assert len(c) == 2
        """,
    ),
    Kind(
        "mapping-proxy",
        "from types import MappingProxyType\ndef f(d): return MappingProxyType(d)\n",
        """
        m = f({"a": 1})
        assert m["a"] == 1
        assert dict(m) == {"a": 1}
        assert m.get("z", 5) == 5
        try:
            m["b"] = 2
            assert False
        except TypeError:
            pass
        """,
    ),
    Kind(
        "array",
        "from array import array\ndef f(xs): return array('i', xs)\n",
        """
        from array import array
        a = f([1, 2, 3])
        assert a == array("i", [1, 2, 3])
        assert a.tolist() == [1, 2, 3]
        assert a[1] == 2 and len(a) == 3
        """,
    ),
]
