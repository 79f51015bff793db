"""Negative control of tests that share a process with the code.

The tests run a second time. Each comparison returns its real result, so that the tests take the same path, and is then
repeated with expected values that no normal value equals: a sentinel, and several changed expected values. Code whose
objects meet those as well would pass any test.
"""

import ast
import operator
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

_COMPARE = "__llm_eval_compare__"
_PREDICATE = "__llm_eval_predicate__"
_ASSERT = "__llm_eval_assert__"
_METHOD = "__llm_eval_method__"

_HUGE = 10**30
_DRAWS = 10  # changed values for one expected value
_MAX_MEMBERS = 50  # of a container whose members are changed one by one

# Methods of text and sets that return a truth value; on other objects they are repeated with changed arguments.
_PREDICATES = frozenset({"startswith", "endswith", "issubset", "issuperset", "equals", "match"})

# Methods of unittest, with arguments for which each must fail.
_FAILING_ARGUMENTS: dict[str, tuple[object, ...]] = {
    "assertTrue": (False,),
    "assertFalse": (True,),
    "assertIsNotNone": (None,),
    "assertNotEqual": (0, 0),
    "assertGreater": (0, 0),
    "assertLess": (0, 0),
    "assertGreaterEqual": (0, 1),
    "assertLessEqual": (1, 0),
    "assertIn": (0, ()),
    "assertNotIn": (0, (0,)),
}
_WILDCARDS = {
    "_ANY": "ANY",
    "approx": "approx",
}  # types whose objects equal many values by design, and their names in tests


class Sentinel:
    """An expectation that no value meets."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = object.__hash__


class NotChanged(Exception):
    """No value of this type is known to be unequal to the given one."""


def changed(value: object, near: bool = False) -> object:
    """Return another value of the same type, which code cannot predict. Raises NotChanged.

    near  change a number only as much as wrong answers differ, but by more than any tolerance
    """
    if type(value) is bool:
        return not value
    if type(value) is int or type(value) is float:
        distance = abs(value) + 2 if near else 10**6
        return value + distance + int.from_bytes(os.urandom(1 if near else 3), "big")
    if type(value) is str:
        return value + os.urandom(8).hex()
    if type(value) is bytes:
        return value + os.urandom(8)
    if type(value) is list or type(value) is tuple:
        return type(value)([changed(value[0], near), *value[1:]] if value else [_token()])
    if type(value) is set or type(value) is frozenset:
        return type(value)([*value, _token()])
    if type(value) is dict:
        return {**value, _token(): 0}
    raise NotChanged(type(value).__name__)


def _token() -> str:
    return os.urandom(8).hex()


class Control:
    """Repeats every comparison of the tests; `held` counts those that hold although they must not."""

    def __init__(self, operators: Mapping[str, Callable[..., object]]) -> None:
        self._operators = operators
        self._wildcards: set[str] = set()
        self.held = 0
        self.total = 0

    def note(self, source: str) -> None:
        """Record the wildcards that the tests themselves compare with."""
        self._wildcards |= {name for name, word in _WILDCARDS.items() if word in source}

    def hooks(self) -> dict[str, object]:
        """Return the names that instrumented tests call."""
        return {_ASSERT: self.check, _METHOD: self.call, _COMPARE: self.compare, _PREDICATE: self.predicate}

    def check(self, value: object) -> bool:
        """Replaces the condition of an assert. Returns True, so that the next assert is reached too."""
        self.total += 1
        return True

    def compare(self, name: str, left: object, right: object) -> object:
        """Replaces a comparison."""
        result = self._operators[name](left, right)
        self.held += any(_holds(comparison) for comparison in self._false_comparisons(name, left, right))
        return result

    def predicate(self, name: str, target: object, *args: object) -> object:
        """Replaces a call such as `x.startswith(y)`."""
        result = getattr(target, name)(*args)
        if type(target).__module__ != "builtins" and args:
            try:
                others = tuple(map(changed, args))
            except NotChanged:
                return result
            self.held += _holds(lambda: getattr(target, name)(*others))
        return result

    def call(self, name: str, method: Callable[..., object], *operands: object, **options: object) -> None:
        """Replaces a call of a method of unittest. One that fails does so in the real run."""
        self.total += 1
        if name in _FAILING_ARGUMENTS:
            self.held += not _fails(method, *_FAILING_ARGUMENTS[name])
        elif len(operands) > 1:
            self.held += not _fails(method, operands[0], Sentinel())
            for pairs in _changed_pairs(operands[0], operands[1]):
                self.held += not any(_fails(method, *pair, **options) for pair in pairs)
        if len(operands) > 1 and name in ("assertIn", "assertNotEqual", "assertGreater", "assertLess"):
            compared = {"assertIn": "In", "assertNotEqual": "NotEq", "assertGreater": "Gt", "assertLess": "Lt"}[name]
            comparisons = self._false_comparisons(compared, operands[0], operands[1])
            self.held += any(map(_holds, comparisons))

    def _false_comparisons(self, name: str, left: object, right: object) -> Iterator[Callable[[], object]]:
        """Yield comparisons that are true for no normal object."""
        operators = self._operators
        for value, other in ((left, right), (right, left)):
            if type(value).__name__ in self._wildcards or type(value) in _PLAIN:
                continue
            yield partial(operator.eq, value, Sentinel())
            for unequal in _unequal(other, members=name == "In"):
                yield partial(_equals_all, value, unequal)
        if name in ("In", "NotIn") and type(right) not in _CONTAINERS:
            yield lambda: operators["In"](Sentinel(), right)
        if name == "NotEq":
            yield lambda: left != right and left == right
        if name in ("Lt", "LtE", "Gt", "GtE"):
            yield lambda: operators["Lt"](left, right) and operators["Gt"](left, right)
            if type(left) not in _PLAIN:
                yield lambda: operators[name](left, -_HUGE if name in ("Lt", "LtE") else _HUGE)


_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, bytearray, range})
_CONTAINERS = _PLAIN | {list, tuple, set, frozenset, dict}


def _equals_all(value: object, others: Iterable[object]) -> bool:
    return all(operator.eq(value, other) for other in others)


def _unequal(expected: object, members: bool) -> Iterator[Iterator[object]]:
    """Yield groups of changed values. A number modulo 7 may equal one of a group, but not all of them.

    The values of a group are made one at a time, since the first one decides for most objects.
    """
    values = [expected]
    if members and isinstance(expected, list | tuple | set | frozenset | dict) and type(expected) in _CONTAINERS:
        values = list(expected)[:_MAX_MEMBERS]
    for value in values:
        for near in (False, True):
            try:
                yield _draw(changed(value, near), value, near)
            except NotChanged:
                continue


def _draw(first: object, value: object, near: bool) -> Iterator[object]:
    yield first
    for _ in range(_DRAWS - 1):
        yield changed(value, near)


def _changed_pairs(first: object, second: object) -> Iterator[Iterator[tuple[object, object]]]:
    for values in _unequal(second, members=False):
        yield ((first, value) for value in values)
    for values in _unequal(first, members=False):
        yield ((value, second) for value in values)


def _holds(comparison: Callable[[], object]) -> bool:
    try:
        return bool(comparison())
    except Exception:
        return False


def _fails(method: Callable[..., object], *operands: object, **options: object) -> bool:
    try:
        method(*operands, **options)
    except Exception:
        return True
    return False


class ControlInstrument(ast.NodeTransformer):
    """Replaces asserts, comparisons and calls by the hooks of a control."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        condition = self.visit(node.test)
        return ast.copy_location(ast.Assert(_hook(_ASSERT, node.test, condition), None), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) != 1:
            return node
        name = ast.copy_location(ast.Constant(type(node.ops[0]).__name__), node)
        return _hook(_COMPARE, node, name, node.left, node.comparators[0])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if not isinstance(function, ast.Attribute) or any(isinstance(arg, ast.Starred) for arg in node.args):
            return node
        name = ast.copy_location(ast.Constant(function.attr), node)
        if function.attr in _PREDICATES and node.args and not node.keywords:
            return _hook(_PREDICATE, node, name, function.value, *node.args)
        if is_method_of_self(node) and (function.attr in _FAILING_ARGUMENTS or function.attr in EQUALITIES):
            call = _hook(_METHOD, node, name, function, *node.args)
            call.keywords = node.keywords
            return call
        return node


EQUALITIES = frozenset(
    f"assert{name}"
    for name in "Equal Is ListEqual TupleEqual SetEqual DictEqual CountEqual SequenceEqual AlmostEqual".split()
)


def is_method_of_self(node: ast.AST) -> bool:
    """Return whether this is a call `self.name(argument, ...)`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "self"
        and bool(node.args)
    )


def _hook(hook: str, place: ast.expr, *args: ast.expr) -> ast.Call:
    call = ast.Call(ast.Name(hook, ast.Load()), list(args), [])
    return ast.fix_missing_locations(ast.copy_location(call, place))


class LibrarySnapshot:
    """Built-in functions and the classes of unittest as they were before the code was defined."""

    def __init__(self) -> None:
        self._before = {name: _members(name) for name in _WATCHED}

    def changed(self) -> str:
        """Return what has been replaced since, as a sentence; else ""."""
        for name, before in self._before.items():
            now = _members(name)
            for member, value in before.items():
                if now.get(member, value) is not value:
                    return f"it replaced {name}.{member}"
        return ""


_WATCHED = ("builtins", "operator", "unittest.case.TestCase", "unittest.loader.TestLoader", "unittest.suite.TestSuite")


def _members(name: str) -> dict[str, object]:
    module, _, kind = name.rpartition(".")
    found: object = sys.modules.get(name) or sys.modules.get(module)
    if found is not None and not isinstance(found, types.ModuleType):
        return {}
    if name not in sys.modules:
        found = getattr(found, kind, None)
    return dict(vars(found)) if found is not None else {}
