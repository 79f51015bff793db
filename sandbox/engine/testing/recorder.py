"""Instruments tests so that every executed assert is counted, and the first one that fails is described."""

import ast
import copy
import operator
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from types import CodeType
from typing import NamedTuple, TypedDict

from .negative_control import EQUALITIES, Control, ControlInstrument, is_method_of_self

_ASSERT = "__llm_eval_assert__"
_METHOD = "__llm_eval_method__"
_CLASS = "__llm_eval_class__"
_TYPE = "__llm_eval_type__"
LISTED = "__llm_eval_listed__"
"""Name of `without_tuples` in tests of values, which are JSON and have no tuples."""

_OPERATORS: dict[str, Callable[..., object]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}


class BadTests(Exception):
    """The tests cannot be run with any code."""


ClassOf = Callable[[object, Callable[[object], object]], object]
"""Returns the class of a value. The second argument reads it from a value that is no object of the code."""


class FailedAssert(NamedTuple):
    """The assert that failed last: its number in `Recorder.asserts`, the operator of its comparison, the operands."""

    number: int
    operator: str
    operands: tuple[object, ...]


class Recorder:
    """Counts asserts. With `control` the tests run as a negative control, see `negative_control`."""

    def __init__(self, control: bool = False, class_of: ClassOf | None = None) -> None:
        """`class_of`: replaces `type(x)` and `x.__class__` in the tests."""
        self.control = Control(_OPERATORS) if control else None
        self._class_of = class_of
        self.asserts: list[ast.expr] = []  # the condition of each
        self.passed = self.total = 0
        self.failed: FailedAssert | None = None

    def check(self, index: int, name: str, *operands: object) -> bool:
        """Replaces the condition of an assert."""
        self.total += 1
        self.failed = FailedAssert(index, name, operands)
        held = bool(_OPERATORS[name](*operands)) if name else bool(operands[0])
        if held:
            self.passed += 1
            self.failed = None
        return held

    def call(
        self, index: int, name: str, method: Callable[..., object], *operands: object, **options: object
    ) -> object:
        """Replaces a call that counts as an assert."""
        self.total += 1
        self.failed = FailedAssert(index, "Eq" if name in EQUALITIES else "", operands)
        result = method(*operands, **options)
        self.passed += 1
        self.failed = None
        return result

    def count_raises(self, held: bool) -> None:
        """Count a `pytest.raises`: once when its block ends, and once if the exception was as expected."""
        if self.control is not None:
            self.control.total += not held
        elif held:
            self.passed += 1
        else:
            self.total += 1

    def compile(self, source: str, filename: str, tree: ast.Module | None = None) -> CodeType:
        """Compile `source` with every assert reporting to this recorder. Raises SyntaxError.

        tree  the parsed source, if it exists already; it is changed
        """
        tree = tree or ast.parse(source, filename)
        instrument: ast.NodeTransformer = _Instrument(self.asserts, methods="self" in source or "testing" in source)
        if self.control is not None:
            self.control.note(source)
            instrument = ControlInstrument()
        before = len(self.asserts)
        instrument.generic_visit(tree)
        if self._class_of is not None and ("type(" in source or "__class__" in source):
            self.asserts[before:] = map(copy.deepcopy, self.asserts[before:])  # messages show them as they are written
            _ClassInstrument().visit(tree)
        return compile(tree, filename, "exec", dont_inherit=True)

    def hooks(self) -> dict[str, object]:
        """Return the names that instrumented tests call."""
        own: dict[str, object] = {_ASSERT: self.check, _METHOD: self.call}
        if self.control is not None:
            own = self.control.hooks()
        if self._class_of is not None:
            own |= {_CLASS: partial(_class_attribute, self._class_of), _TYPE: partial(_call_type, self._class_of)}
        return {LISTED: without_tuples, **own}

    @property
    def held(self) -> int:
        """Number of comparisons of a control that hold although they must not."""
        return self.control.held if self.control is not None else 0

    @property
    def executed(self) -> int:
        """Number of asserts executed so far."""
        return self.total if self.control is None else self.control.total


def without_tuples(value: object) -> object:
    """Return the value with lists in the place of tuples."""
    if isinstance(value, list | tuple):
        return [without_tuples(item) for item in value]
    if type(value) is dict:
        return {key: without_tuples(item) for key, item in value.items()}
    return value


class _Instrument(ast.NodeTransformer):
    def __init__(self, asserts: list[ast.expr], methods: bool) -> None:
        """`methods`: the tests may contain calls that count as asserts, so expressions are visited too."""
        self._asserts, self._methods = asserts, methods

    def _number(self, node: ast.expr) -> ast.Constant:
        self._asserts.append(node)
        return ast.Constant(len(self._asserts) - 1, **_place(node))

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and not self._methods:
            return node
        visited: ast.AST = super().visit(node)
        return visited

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if is_counted(node) and isinstance(node.func, ast.Attribute):
            place = _place(node)
            name = ast.Constant(node.func.attr, **place)
            hook = ast.Name(_METHOD, ast.Load(), **place)
            return ast.Call(hook, [self._number(node), name, node.func, *node.args], node.keywords, **place)
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        test, place = node.test, _place(node.test)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            values = [ast.Constant(type(test.ops[0]).__name__, **place), test.left, test.comparators[0]]
        else:
            values = [ast.Constant("", **place), test]
        hook = ast.Call(ast.Name(_ASSERT, ast.Load(), **place), [self._number(test), *values], [], **place)
        return ast.Assert(hook, node.msg, **_place(node))


class _ClassInstrument(ast.NodeTransformer):
    """Replaces `type(x)` and `x.__class__` by a hook."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="type"), args=[value], keywords=[]) if not isinstance(value, ast.Starred):
                return _class_hook(node, _TYPE, node.func, value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        is_read = node.attr == "__class__" and isinstance(node.ctx, ast.Load)
        return _class_hook(node, _CLASS, node.value) if is_read else node


def _class_hook(node: ast.expr, hook: str, *args: ast.expr) -> ast.Call:
    place = _place(node)
    return ast.Call(ast.Name(hook, ast.Load(), **place), list(args), [], **place)


def _class_attribute(class_of: ClassOf, value: object) -> object:
    return class_of(value, attrgetter("__class__"))


def _call_type(class_of: ClassOf, function: Callable[[object], object], value: object) -> object:
    """Call what the tests name `type`. It may be a parameter of theirs."""
    return class_of(value, function) if function is type else function(value)


class _Place(TypedDict):
    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


def _place(node: ast.expr | ast.stmt) -> _Place:
    """Return the position of a node, for those that replace it."""
    return {
        "lineno": node.lineno,
        "col_offset": node.col_offset,
        "end_lineno": node.end_lineno,
        "end_col_offset": node.end_col_offset,
    }


_COUNTED = EQUALITIES | {"assertTrue", "assertFalse"}


def is_counted(node: ast.AST) -> bool:
    """Return whether this call counts as an assert: a method of unittest, or a function of numpy.testing."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    if is_method_of_self(node):
        return node.func.attr in _COUNTED
    return node.func.attr.startswith("assert_") and ast.unparse(node.func.value) in ("np.testing", "numpy.testing")
