"""Classes: special methods, properties, inheritance, subclasses of built-in types, enumerations, dataclasses."""

from tests.sandbox.correct_solutions.kind import Kind

OBJECTS = [
    Kind(
        "stack",
        """
        class Stack:
            def __init__(self): self._items = []
            def push(self, x): self._items.append(x)
            def pop(self):
                if not self._items: raise IndexError("empty stack")
                return self._items.pop()
            def peek(self): return self._items[-1]
            def __len__(self): return len(self._items)
            def __bool__(self): return bool(self._items)
        """,
        """
        s = Stack()
        assert not s
        s.push(1)
        s.push("two")
        assert len(s) == 2 and s.peek() == "two"
        assert s.pop() == "two"
        assert s.pop() == 1
        try:
            s.pop()
            assert False
        except IndexError as error:
            assert "empty" in str(error)
        """,
        entry="Stack",
    ),
    Kind(
        "vector-arithmetic",
        """
        class Vector:
            def __init__(self, *xs): self.xs = xs
            def __add__(self, o): return Vector(*(a + b for a, b in zip(self.xs, o.xs)))
            def __sub__(self, o): return Vector(*(a - b for a, b in zip(self.xs, o.xs)))
            def __mul__(self, k): return Vector(*(a * k for a in self.xs))
            __rmul__ = __mul__
            def __matmul__(self, o): return sum(a * b for a, b in zip(self.xs, o.xs))
            def __neg__(self): return self * -1
            def __abs__(self): return (self @ self) ** 0.5
            def __eq__(self, o): return isinstance(o, Vector) and self.xs == o.xs
            def __hash__(self): return hash(self.xs)
            def __repr__(self): return f"Vector{self.xs}"
        """,
        """
        a, b = Vector(1, 2), Vector(3, 4)
        assert a + b == Vector(4, 6)
        assert b - a == Vector(2, 2)
        assert 3 * a == Vector(3, 6)
        assert a @ b == 11
        assert -a == Vector(-1, -2)
        assert abs(b) == 5.0
        assert a != b
        assert repr(a) == "Vector(1, 2)"
        assert len({a, Vector(1, 2), b}) == 2
        """,
        entry="Vector",
    ),
    Kind(
        "in-place-operators",
        """
        class Account:
            def __init__(self, n): self.n = n
            def __iadd__(self, k):
                self.n += k
                return self
            def __isub__(self, k):
                self.n -= k
                return self
        """,
        """
        a = Account(5)
        b = a
        a += 7
        a -= 2
        assert a.n == 10
        assert b.n == 10
        assert a is b
        """,
        entry="Account",
    ),
    Kind(
        "container-protocol",
        """
        class Grid:
            def __init__(self, w, h): self.w, self.h, self.cells = w, h, {}
            def __getitem__(self, at): return self.cells.get(at, 0)
            def __setitem__(self, at, v): self.cells[at] = v
            def __delitem__(self, at): del self.cells[at]
            def __contains__(self, at): return 0 <= at[0] < self.w and 0 <= at[1] < self.h
            def __iter__(self): return iter(sorted(self.cells))
            def __len__(self): return len(self.cells)
        """,
        """
        g = Grid(2, 3)
        g[0, 1] = 5
        g[1, 2] = 7
        assert g[0, 1] == 5
        assert g[9, 9] == 0
        assert (1, 1) in g
        assert (5, 5) not in g
        assert list(g) == [(0, 1), (1, 2)]
        del g[0, 1]
        assert len(g) == 1
        """,
        entry="Grid",
    ),
    Kind(
        "contains-without-iter",
        """
        class Interval:
            def __init__(self, a, b): self.a, self.b = a, b
            def __contains__(self, x): return self.a <= x < self.b
        """,
        """
        i = Interval(1, 5)
        assert 1 in i
        assert 4.5 in i
        assert 5 not in i
        """,
        entry="Interval",
    ),
    Kind(
        "slicing",
        """
        class Text:
            def __init__(self, s): self.s = s
            def __getitem__(self, at): return Text(self.s[at]) if isinstance(at, slice) else self.s[at]
            def __str__(self): return self.s
            def __len__(self): return len(self.s)
            def __reversed__(self): return iter(self.s[::-1])
        """,
        """
        t = Text("hello")
        assert str(t[1:3]) == "el"
        assert t[-1] == "o"
        assert str(t[::-1]) == "olleh"
        assert len(t[:2]) == 2
        assert list(reversed(t)) == list("olleh")
        """,
        entry="Text",
    ),
    Kind(
        "total-ordering",
        """
        from functools import total_ordering
        @total_ordering
        class Version:
            def __init__(self, text): self.parts = tuple(map(int, text.split(".")))
            def __eq__(self, o): return self.parts == o.parts
            def __lt__(self, o): return self.parts < o.parts
            def __str__(self): return ".".join(map(str, self.parts))
        """,
        """
        vs = [Version("1.10"), Version("1.2"), Version("1.9.1")]
        assert [str(v) for v in sorted(vs)] == ["1.2", "1.9.1", "1.10"]
        assert Version("1.0") < Version("1.0.1")
        assert Version("2.0") >= Version("2.0")
        assert max(vs) == Version("1.10")
        assert str(min(vs)) == "1.2"
        """,
        entry="Version",
    ),
    Kind(
        "hashing",
        """
        class Point:
            def __init__(self, x, y): self.x, self.y = x, y
            def __eq__(self, o): return (self.x, self.y) == (o.x, o.y)
            def __hash__(self): return hash((self.x, self.y))
        """,
        """
        seen = {Point(1, 2): "a"}
        assert seen[Point(1, 2)] == "a"
        assert Point(2, 1) not in seen
        assert len({Point(0, 0), Point(0, 0), Point(0, 1)}) == 2
        assert hash(Point(3, 4)) == hash(Point(3, 4))
        """,
        entry="Point",
    ),
    Kind(
        "unhashable",
        """
        class Bag:
            def __init__(self, *xs): self.xs = xs
            def __eq__(self, o): return sorted(self.xs) == sorted(o.xs)
        """,
        """
        assert Bag(1, 2) == Bag(2, 1)
        try:
            hash(Bag(1))
            assert False
        except TypeError:
            pass
        """,
        entry="Bag",
    ),
    Kind(
        "properties",
        """
        class Celsius:
            def __init__(self, degrees): self.degrees = degrees
            @property
            def fahrenheit(self): return self.degrees * 9 / 5 + 32
            @fahrenheit.setter
            def fahrenheit(self, value): self.degrees = (value - 32) * 5 / 9
        """,
        """
        t = Celsius(100)
        assert t.fahrenheit == 212
        t.fahrenheit = 32
        assert t.degrees == 0
        assert hasattr(t, "degrees")
        assert not hasattr(t, "kelvin")
        """,
        entry="Celsius",
    ),
    Kind(
        "read-only-property",
        """
        class Frozen:
            def __init__(self, x): self._x = x
            @property
            def x(self): return self._x
        """,
        """
        o = Frozen(3)
        assert o.x == 3
        try:
            o.x = 4
            assert False
        except AttributeError:
            pass
        assert o.x == 3
        """,
        entry="Frozen",
    ),
    Kind(
        "class-and-static-methods",
        """
        class Date:
            count = 0
            def __init__(self, y, m, d):
                self.y, self.m, self.d = y, m, d
                Date.count += 1
            @classmethod
            def parse(cls, text): return cls(*map(int, text.split("-")))
            @staticmethod
            def leap(y): return y % 4 == 0 and (y % 100 != 0 or y % 400 == 0)
        """,
        """
        d = Date.parse("2024-02-29")
        assert (d.y, d.m, d.d) == (2024, 2, 29)
        assert Date.leap(2024) and not Date.leap(1900)
        assert Date.count == 1
        assert isinstance(d, Date)
        """,
        entry="Date",
    ),
    Kind(
        "inheritance",
        """
        class Animal:
            def __init__(self, name): self.name = name
            def speak(self): raise NotImplementedError
        class Dog(Animal):
            def speak(self): return f"{self.name} says woof"
        class Cat(Animal):
            def speak(self): return f"{self.name} says meow"
        """,
        """
        animals = [Dog("Rex"), Cat("Tom")]
        assert [a.speak() for a in animals] == ["Rex says woof", "Tom says meow"]
        assert all(isinstance(a, Animal) for a in animals)
        assert issubclass(Dog, Animal)
        try:
            Animal("x").speak()
            assert False
        except NotImplementedError:
            pass
        """,
        entry="Dog",
    ),
    Kind(
        "abstract-base",
        """
        from abc import ABC, abstractmethod
        class Shape(ABC):
            @abstractmethod
            def area(self): ...
        class Square(Shape):
            def __init__(self, a): self.a = a
            def area(self): return self.a ** 2
        """,
        """
        assert Square(3).area() == 9
        try:
            Shape()
            assert False
        except TypeError:
            pass
        assert isinstance(Square(1), Shape)
        """,
        entry="Square",
    ),
    Kind(
        "dataclass",
        """
        from dataclasses import dataclass, field
        @dataclass(order=True)
        class Item:
            price: float
            name: str = "thing"
            tags: list = field(default_factory=list)
        """,
        """
        a, b = Item(2.5), Item(1.5, "b", ["x"])
        assert a.name == "thing" and a.tags == []
        assert b < a
        assert a == Item(2.5)
        assert repr(b) == "Item(price=1.5, name='b', tags=['x'])"
        b.tags.append("y")
        assert sorted([a, b])[0].name == "b"
        """,
        entry="Item",
    ),
    Kind(
        "frozen-dataclass",
        """
        from dataclasses import dataclass
        @dataclass(frozen=True)
        class Key:
            a: int
            b: str = "z"
        """,
        """
        assert {Key(1): 5}[Key(1, "z")] == 5
        k = Key(2)
        try:
            k.a = 3
            assert False
        except AttributeError:
            pass
        """,
        entry="Key",
    ),
    Kind(
        "enum",
        """
        from enum import Enum
        class Color(Enum):
            RED = 1
            GREEN = 2
            BLUE = 3
        """,
        """
        assert Color.RED.value == 1
        assert Color.GREEN.name == "GREEN"
        assert Color(3) is Color.BLUE
        assert Color["RED"] == Color.RED
        assert [c.name for c in Color] == ["RED", "GREEN", "BLUE"]
        assert len(Color) == 3
        assert Color.RED != Color.BLUE
        """,
        entry="Color",
    ),
    Kind(
        "int-enum",
        """
        from enum import IntEnum
        class Level(IntEnum):
            LOW = 1
            HIGH = 5
        """,
        """
        assert Level.LOW == 1
        assert Level.HIGH > Level.LOW
        assert Level.HIGH.name == "HIGH"
        assert Level.HIGH + 1 == 6
        assert Level(5) is Level.HIGH
        """,
        entry="Level",
    ),
    Kind(
        "list-subclass",
        """
        class History(list):
            def push(self, x):
                self.append(x)
                return self
            def last(self): return self[-1]
        """,
        """
        h = History()
        h.push(1).push(2)
        assert h.last() == 2
        assert h == [1, 2]
        assert isinstance(h, list)
        assert len(h) == 2 and list(h) == [1, 2]
        h.append(3)
        assert h[1:] == [2, 3]
        """,
        entry="History",
    ),
    Kind(
        "dict-subclass",
        """
        class AttrDict(dict):
            def __getattr__(self, name):
                try:
                    return self[name]
                except KeyError:
                    raise AttributeError(name) from None
            def __missing__(self, key): return f"no {key}"
        """,
        """
        d = AttrDict(a=1)
        d["b"] = 2
        assert d.a == 1 and d.b == 2
        assert d["zzz"] == "no zzz"
        assert d == {"a": 1, "b": 2}
        assert sorted(d.items()) == [("a", 1), ("b", 2)]
        assert isinstance(d, dict)
        assert "a" in d
        """,
        entry="AttrDict",
    ),
    Kind(
        "str-subclass",
        """
        class Name(str):
            def initials(self): return "".join(w[0] for w in self.split())
        """,
        """
        n = Name("Ada Lovelace")
        assert n.initials() == "AL"
        assert n == "Ada Lovelace"
        assert n.upper() == "ADA LOVELACE"
        assert n.startswith("Ada")
        assert isinstance(n, str)
        """,
        entry="Name",
    ),
    Kind(
        "context-manager",
        """
        class Resource:
            def __init__(self): self.log = []
            def __enter__(self):
                self.log.append("open")
                return self
            def __exit__(self, kind, error, trace):
                self.log.append("close" if kind is None else kind.__name__)
                return kind is KeyError
        """,
        """
        r = Resource()
        with r as opened:
            assert opened is r
        assert r.log == ["open", "close"]
        with r:
            raise KeyError("swallowed")
        assert r.log[-1] == "KeyError"
        try:
            with r:
                raise ValueError("out")
            assert False
        except ValueError:
            pass
        assert r.log[-1] == "ValueError"
        """,
        entry="Resource",
    ),
    Kind(
        "callable-object",
        """
        class Adder:
            def __init__(self, n): self.n, self.calls = n, 0
            def __call__(self, x, *, twice=False):
                self.calls += 1
                return (x + self.n) * (2 if twice else 1)
        """,
        """
        add = Adder(3)
        assert add(1) == 4
        assert add(1, twice=True) == 8
        assert add.calls == 2
        assert callable(add)
        """,
        entry="Adder",
    ),
    Kind(
        "slots",
        """
        class Pixel:
            __slots__ = ("r", "g")
            def __init__(self, r, g): self.r, self.g = r, g
        """,
        """
        p = Pixel(1, 2)
        p.r = 9
        assert (p.r, p.g) == (9, 2)
        try:
            p.b = 1
            assert False
        except AttributeError:
            pass
        """,
        entry="Pixel",
    ),
    Kind(
        "numeric-protocol",
        """
        class Ratio:
            def __init__(self, a, b): self.a, self.b = a, b
            def __float__(self): return self.a / self.b
            def __int__(self): return self.a // self.b
            def __round__(self, n=0): return round(self.a / self.b, n)
            def __trunc__(self): return int(self)
            def __floor__(self): return self.a // self.b
            def __ceil__(self): return -(-self.a // self.b)
            def __bool__(self): return self.a != 0
            def __index__(self): return int(self)
            def __divmod__(self, o): return divmod(self.a * o.b, self.b * o.a)
        """,
        """
        import math
        r = Ratio(7, 2)
        assert float(r) == 3.5
        assert int(r) == 3
        assert round(r, 1) == 3.5
        assert math.floor(r) == 3 and math.ceil(r) == 4 and math.trunc(r) == 3
        assert r and not Ratio(0, 1)
        assert [10, 11, 12, 13][r] == 13
        assert divmod(Ratio(7, 1), Ratio(2, 1)) == (3, 1)
        """,
        entry="Ratio",
    ),
    Kind(
        "format",
        """
        class Money:
            def __init__(self, cents): self.cents = cents
            def __format__(self, spec): return format(self.cents / 100, spec or ".2f") + " EUR"
            def __str__(self): return f"{self:.2f}"
        """,
        """
        m = Money(1250)
        assert f"{m}" == "12.50 EUR"
        assert f"{m:.1f}" == "12.5 EUR"
        assert str(m) == "12.50 EUR"
        assert "{:.0f}".format(m) == "12 EUR"
        """,
        entry="Money",
    ),
    Kind(
        "bitwise",
        """
        class Flags:
            def __init__(self, n): self.n = n
            def __or__(self, o): return Flags(self.n | o.n)
            def __and__(self, o): return Flags(self.n & o.n)
            def __xor__(self, o): return Flags(self.n ^ o.n)
            def __invert__(self): return Flags(~self.n & 0xff)
            def __lshift__(self, k): return Flags(self.n << k)
            def __rshift__(self, k): return Flags(self.n >> k)
        """,
        """
        a, b = Flags(6), Flags(3)
        assert (a | b).n == 7
        assert (a & b).n == 2
        assert (a ^ b).n == 5
        assert (~a).n == 249
        assert (a << 1).n == 12
        assert (a >> 1).n == 3
        """,
        entry="Flags",
    ),
    Kind(
        "dynamic-attributes",
        """
        class Config:
            def __init__(self, **kw): self.__dict__.update(kw)
            def __getattr__(self, name): return f"<{name}>"
            def __eq__(self, o): return vars(self) == vars(o)
        """,
        """
        c = Config(a=1)
        assert c.a == 1
        assert c.missing == "<missing>"
        c.b = 2
        assert c == Config(a=1, b=2)
        del c.b
        assert c.b == "<b>"
        """,
        entry="Config",
    ),
    Kind(
        "generic-class",
        """
        from typing import Generic, TypeVar
        T = TypeVar("T")
        class Box(Generic[T]):
            def __init__(self, item: T): self.item = item
            def map(self, fn): return Box(fn(self.item))
        """,
        """
        b = Box[int](3)
        assert b.map(str).item == "3"
        assert b.map(lambda x: x + 1).item == 4
        assert isinstance(b, Box)
        """,
        entry="Box",
    ),
    Kind(
        "singleton",
        """
        class Registry:
            _one = None
            def __new__(cls):
                if cls._one is None:
                    cls._one = super().__new__(cls)
                    cls._one.names = []
                return cls._one
        """,
        """
        a, b = Registry(), Registry()
        assert a is b
        a.names = ["x"]
        assert b.names == ["x"]
        """,
        entry="Registry",
    ),
    Kind(
        "observer",
        """
        class Event:
            def __init__(self): self.listeners = []
            def on(self, listener): self.listeners.append(listener)
            def emit(self, *args): return [listener(*args) for listener in self.listeners]
        """,
        """
        got = []
        e = Event()
        e.on(got.append)
        e.on(lambda x: x * 2)
        assert e.emit(4) == [None, 8]
        assert got == [4]
        """,
        entry="Event",
    ),
    Kind(
        "class-with-nested-class",
        """
        class Tree:
            class Node:
                def __init__(self, key): self.key, self.left, self.right = key, None, None
            def __init__(self): self.root = None
            def insert(self, key):
                self.root = self._insert(self.root, key)
            def _insert(self, node, key):
                if node is None: return Tree.Node(key)
                if key < node.key: node.left = self._insert(node.left, key)
                else: node.right = self._insert(node.right, key)
                return node
            def inorder(self):
                def walk(n):
                    if n:
                        yield from walk(n.left)
                        yield n.key
                        yield from walk(n.right)
                return list(walk(self.root))
        """,
        """
        t = Tree()
        for k in (5, 2, 8, 1):
            t.insert(k)
        assert t.inorder() == [1, 2, 5, 8]
        assert t.root.key == 5
        assert t.root.left.left.key == 1
        assert t.root.right.right is None
        """,
        entry="Tree",
    ),
]
