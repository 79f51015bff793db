"""Right and wrong code with tests that are written for pytest."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Style:
    """One way to write tests. `count`: units that they are."""

    name: str
    right: str
    wrong: str
    tests: str
    count: int


ADD = "def f(a, b): return a + b\n"
SUBTRACT = "def f(a, b): return a - b\n"
STACK = """
class Stack:
    def __init__(self): self.items = []
    def push(self, x): self.items.append(x)
    def pop(self):
        if not self.items: raise IndexError("pop from an empty stack")
        return self.items.pop()
    def __len__(self): return len(self.items)
"""
QUEUE = STACK.replace("self.items.pop()", "self.items.pop(0)").replace("an empty stack", "nothing")
STYLES = [
    Style(
        "fixture",
        STACK,
        QUEUE,
        """
        import pytest
        @pytest.fixture
        def stack():
            made = Stack()
            made.push(1)
            return made
        @pytest.fixture()
        def fuller(stack):
            stack.push(2)
            return stack
        def test_same_object(stack, fuller):
            assert stack is fuller and len(stack) == 2
        def test_pop(fuller):
            assert fuller.pop() == 2
        def test_fresh(stack):
            assert len(stack) == 1
        """,
        3,
    ),
    Style(
        "yield-fixture",
        ADD,
        SUBTRACT,
        """
        from pytest import fixture
        log = []
        @fixture
        def outer():
            log.append("outer")
            yield 1
            log.append("end of outer")
        @fixture
        def inner(outer):
            log.append("inner")
            yield outer + 1
            log.append("end of inner")
        def test_add(inner, outer):
            assert f(inner, outer) == 3
        def test_teardown():
            assert log == ["outer", "inner", "end of inner", "end of outer"]
        """,
        2,
    ),
    Style(
        "scopes-and-autouse",
        ADD,
        SUBTRACT,
        """
        import pytest
        made = []
        @pytest.fixture(scope="module")
        def shared():
            made.append("shared")
            return 2
        @pytest.fixture(autouse=True)
        def each():
            made.append("each")
        @pytest.mark.usefixtures("shared")
        def test_one(): assert f(1, 1) == 2
        def test_two(shared): assert f(shared, 1) == 3
        def test_made(): assert made == ["shared", "each", "each", "each"]
        """,
        3,
    ),
    Style(
        "parameters-of-a-fixture",
        ADD,
        SUBTRACT,
        """
        import pytest
        @pytest.fixture(params=[1, 5])
        def number(request): return request.param
        def test_double(number): assert f(number, number) == 2 * number
        """,
        2,
    ),
    Style(
        "parametrize",
        ADD,
        SUBTRACT,
        """
        import pytest
        @pytest.mark.parametrize("a, b, want", [(1, 2, 3), (0, 4, 4), pytest.param(2, 2, 4, id="twos")])
        def test_add(a, b, want):
            assert f(a, b) == want
        @pytest.mark.parametrize(("a", "b"), [(1, 2)], ids=["small"])
        def test_commutes(a, b):
            assert f(a, b) == f(b, a)
        """,
        4,
    ),
    Style(
        "stacked",
        ADD,
        SUBTRACT,
        """
        import pytest
        seen = []
        @pytest.mark.parametrize("a", [0, 1])
        @pytest.mark.parametrize("b", [2, 3])
        def test_add(a, b):
            seen.append((a, b))
            assert f(a, b) == a + b
        def test_order(): assert seen == [(0, 2), (1, 2), (0, 3), (1, 3)]
        """,
        5,
    ),
    Style(
        "raises",
        STACK,
        QUEUE,
        """
        import pytest
        def test_empty():
            with pytest.raises(IndexError, match=r"empty \\w+") as info:
                Stack().pop()
            assert info.type is IndexError and "empty" in str(info.value)
        def test_call():
            pytest.raises(IndexError, Stack().pop).match("stack")
        """,
        2,
    ),
    Style(
        "only-raises",
        "def f(x):\n    if x < 0: raise ValueError('negative')\n",
        "def f(x): pass\n",
        "import pytest\ndef test_it():\n    with pytest.raises(ValueError):\n        f(-1)\n",
        1,
    ),
    Style(
        "approx",
        "def f(x): return x / 3\n",
        "def f(x): return x / 3 + 1e-3\n",
        """
        import pytest
        def test_number(): assert f(1) == pytest.approx(0.3333333)
        def test_tolerance(): assert f(2) == pytest.approx(0.667, abs=4e-4)
        def test_list(): assert [f(1), f(3)] == pytest.approx([1 / 3, 1])
        def test_dict(): assert {"a": f(1)} == pytest.approx({"a": 1 / 3})
        def test_unequal(): assert f(1) != pytest.approx(0.35)
        """,
        5,
    ),
    Style(
        "class",
        STACK,
        QUEUE,
        """
        import pytest
        class TestStack:
            @classmethod
            def setup_class(cls): cls.first = 1
            def setup_method(self):
                self.stack = Stack()
                self.stack.push(self.first)
            def teardown_method(self, method): self.stack = None
            @pytest.fixture
            def second(self):
                self.stack.push(2)
                return 2
            def test_len(self): assert len(self.stack) == 1
            def test_pop(self, second): assert self.stack.pop() == second
            @pytest.mark.parametrize("n", [3, 4])
            def test_more(self, second, n):
                self.stack.push(n)
                assert self.stack.pop() == n
        """,
        4,
    ),
    Style(
        "setup-without-import",
        STACK,
        QUEUE,
        """
        class TestStack:
            def setup_method(self, method): self.stack = Stack()
            def test_order(self):
                self.stack.push(1)
                self.stack.push(2)
                assert self.stack.pop() == 2
        """,
        1,
    ),
]
