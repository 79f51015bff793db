"""The fast path: tests that are nothing but literal asserts are taken apart here, and no test code runs at all.

`assert candidate([1, 2]) == 3` becomes a call, sent to the candidate, and an expression with a hole, evaluated over
the decoded answer. Anything this module does not know makes `plan` return None, and a judge runs the tests instead.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sandbox.engine.protocol import codec
from sandbox.verdicts.parsing import parse

_MAX_FOLDED = 100_000  # items of a folded sequence, bits of a folded number

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: _is_in(a, b),
    ast.NotIn: lambda a, b: not _is_in(a, b),
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "round": round,
    "len": len,
    "sorted": sorted,
    "list": list,
    "tuple": tuple,
    "set": lambda *values: _as_set(set, *values),
    "frozenset": lambda *values: _as_set(frozenset, *values),
    "float": float,
    "isinstance": isinstance,
    "type": type,
    "math.isclose": math.isclose,
}
_LOOKS_AT_TYPE = ("isinstance", "type")
_NAMES: dict[str, Any] = {
    "math.inf": math.inf,
    "math.pi": math.pi,
    "math.e": math.e,
    "math.nan": math.nan,
    **{kind.__name__: kind for kind in (int, float, str, bool, list, tuple, set, frozenset, dict, bytes, complex)},
}


class NeedsJudge(Exception):
    """An answer that only a judge can look into, such as a generator that a test lists."""


class _NotLiteral(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the candidate: what it is called by, and its encoded arguments."""

    target: str
    args: list[Any]
    kwargs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LiteralTest:
    """One test: the calls it makes, and whether their answers satisfy it.

    holds(answers) may raise anything that comparing built-in values can, and NeedsJudge. shown() gives the test's text
    and what it expects; worked out only where it failed, for that takes as long as everything else.
    """

    line: int | None
    calls: tuple[Call, ...]
    holds: Callable[[list[Any]], bool]
    shown: Callable[[], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class LiteralPlan:
    """All tests of a job, and whether the first failure ends them, as it does inside one `check` function."""

    tests: tuple[LiteralTest, ...]


# ---- expressions ----------------------------------------------------------------------------------------------------


def _small(value: Any) -> Any:
    """`value`, unless folding it made something large."""
    if isinstance(value, int) and value.bit_length() > _MAX_FOLDED:
        raise _NotLiteral
    if isinstance(value, str | bytes | list | tuple) and len(value) > _MAX_FOLDED:
        raise _NotLiteral
    return value


def _arithmetic(kind: type[ast.operator], left: Any, right: Any) -> Any:
    """Arithmetic on numbers, and literal repetition of sequences, sizes known beforehand."""
    if kind not in (ast.Add, ast.Sub) and any(
        isinstance(v, int) and v.bit_length() > _MAX_FOLDED for v in (left, right)
    ):
        raise NeedsJudge
    numbers = isinstance(left, int | float | complex) and isinstance(right, int | float | complex)
    if kind is ast.Pow and not (numbers and _power_is_small(left, right)):
        raise _NotLiteral
    if not numbers:
        sizes = [len(v) if isinstance(v, str | bytes | list | tuple) else v for v in (left, right)]
        if kind not in (ast.Add, ast.Mult) or not all(isinstance(size, int) for size in sizes):
            raise _NotLiteral
        if kind is ast.Mult and sizes[0] * sizes[1] > _MAX_FOLDED:
            raise _NotLiteral
    return _small(_ARITHMETIC[kind](left, right))


def _power_is_small(base: Any, exponent: Any) -> bool:
    if isinstance(base, int) and isinstance(exponent, int):
        return base.bit_length() * abs(exponent) <= _MAX_FOLDED
    return True  # floats overflow by themselves


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


class _Holes:
    """Collects the calls of one assert, numbering them in the order Python would make them."""

    def __init__(self, is_target: Callable[[str], bool]) -> None:
        self.is_target = is_target
        self.calls: list[Call] = []

    def compile(self, node: ast.expr) -> Callable[[list[Any]], Any]:
        """A function from the answers to the expression's value. Raises _NotLiteral."""
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Constant):
            constant = node.value
            return lambda answers: constant
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            parts = [self.compile(item) for item in node.elts]
            kind = {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
            return lambda answers: kind([part(answers) for part in parts])
        if isinstance(node, ast.Dict):
            return self._dict(node)
        if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
            unary, operand = _UNARY[type(node.op)], self.compile(node.operand)
            return lambda answers: unary(operand(answers))
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            before = len(self.calls)
            kind_of_op, left, right = type(node.op), self.compile(node.left), self.compile(node.right)
            if len(self.calls) == before:
                folded = _arithmetic(kind_of_op, left([]), right([]))
                return lambda answers: folded
            return lambda answers: _arithmetic(kind_of_op, _seen(left(answers)), _seen(right(answers)))
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            compare, first = _COMPARE[type(node.ops[0])], self.compile(node.left)
            second = self.compile(node.comparators[0])
            if isinstance(node.ops[0], ast.Is | ast.IsNot) and not _is_singleton(node):
                raise _NotLiteral  # identity of anything else does not survive the wire
            return lambda answers: compare(first(answers), second(answers))
        name = _dotted(node)
        if name in _NAMES and not self.is_target(name):
            value = _NAMES[name]
            return lambda answers: value
        raise _NotLiteral

    def _call(self, node: ast.Call) -> Callable[[list[Any]], Any]:
        name = _dotted(node.func)
        if any(isinstance(arg, ast.Starred) for arg in node.args) or any(k.arg is None for k in node.keywords):
            raise _NotLiteral
        if name and self.is_target(name):
            args = [codec.encode(constant(arg), _not_sent) for arg in node.args]
            kwargs = {str(k.arg): codec.encode(constant(k.value), _not_sent) for k in node.keywords}
            index = len(self.calls)
            self.calls.append(Call(name, args, kwargs))
            return lambda answers: answers[index]
        if name not in _FUNCTIONS:
            raise _NotLiteral
        function, parts = _FUNCTIONS[name], [self.compile(arg) for arg in node.args]
        named = {str(k.arg): self.compile(k.value) for k in node.keywords}
        look = _as_is if name in _LOOKS_AT_TYPE else _seen
        return lambda answers: function(
            *[look(part(answers)) for part in parts], **{key: part(answers) for key, part in named.items()}
        )

    def _dict(self, node: ast.Dict) -> Callable[[list[Any]], Any]:
        if any(key is None for key in node.keys):
            raise _NotLiteral
        pairs = [(self.compile(key), self.compile(v)) for key, v in zip(node.keys, node.values, strict=True) if key]
        return lambda answers: {key(answers): value(answers) for key, value in pairs}


_PLAIN = (type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)


def _seen(value: Any) -> Any:
    """An answer that may be looked into here. A range can have more members than fit into any memory, a Decimal more
    digits; a generator is in the candidate's process. Raises NeedsJudge.
    """
    if not isinstance(value, _PLAIN):
        raise NeedsJudge
    return value


def _as_is(value: Any) -> Any:
    if isinstance(value, codec.Opaque):
        raise NeedsJudge
    return value


def _not_sent(value: Any) -> None:
    """An argument such as `int`, which only a judge can name to the code. Raises _NotLiteral."""
    raise _NotLiteral


def _is_in(item: Any, container: Any) -> bool:
    return operator.contains(_seen(container), item)


def _as_set(kind: Callable[..., Any], *values: Any) -> Any:
    """set or frozenset of members whose hashes were not chosen to collide. Raises NeedsJudge."""
    if values and isinstance(values[0], list | tuple) and codec.have_colliding_hashes(list(values[0])):
        raise NeedsJudge
    return kind(*values)


def _is_singleton(node: ast.Compare) -> bool:
    return any(
        isinstance(side, ast.Constant) and (side.value is None or isinstance(side.value, bool))
        for side in (node.left, node.comparators[0])
    )


def constant(node: ast.expr) -> Any:
    """The value of an expression without calls or names. Raises _NotLiteral."""
    holes = _Holes(lambda name: False)
    try:
        return holes.compile(node)([])
    except _NotLiteral:
        raise
    except NeedsJudge as error:
        raise _NotLiteral from error
    except Exception as error:
        raise _NotLiteral from error


# ---- tests ----------------------------------------------------------------------------------------------------------


def _only_imports(setup: str) -> bool:
    if not setup.strip():
        return True
    return all(isinstance(statement, ast.Import | ast.ImportFrom) for statement in parse(setup).body)


def _body(module: ast.Module, entry_point: str | None) -> tuple[list[ast.stmt], str | None]:
    """The statements that hold the asserts, and the name under which they call the entry point."""
    statements = [s for s in module.body if not _is_idle(s)]
    functions = [s for s in statements if isinstance(s, ast.FunctionDef)]
    if not functions:
        return statements, entry_point
    others = [s for s in statements if s is not functions[0] and not _calls_check(s)]
    check = functions[0]
    plain = not check.decorator_list and len(check.args.args) == 1 and not check.args.defaults
    if check.name != "check" or others or not plain or len(functions) > 1:
        raise _NotLiteral
    return [s for s in check.body if not _is_idle(s)], check.args.args[0].arg


def _is_idle(statement: ast.stmt) -> bool:
    """A docstring, a bare name, `pass`, or the METADATA that HumanEval's tests begin with."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant | ast.Name)
    if isinstance(statement, ast.Assign):
        return [t.id for t in statement.targets if isinstance(t, ast.Name)] == ["METADATA"]
    return isinstance(statement, ast.Pass)


def _calls_check(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and (_dotted(statement.value.func) == "check")
    )


def _expected(node: ast.expr) -> str:
    """What a failed test shows as expected: the literal side of a comparison for equality."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
        for side in (node.comparators[0], node.left):
            try:
                return repr(constant(side))
            except (_NotLiteral, ValueError):
                continue
    return ""


def _literal_test(statement: ast.stmt, is_target: Callable[[str], bool]) -> LiteralTest:
    if not isinstance(statement, ast.Assert):  # its message is only made when it has failed
        raise _NotLiteral
    holes = _Holes(is_target)
    value = holes.compile(statement.test)
    if not holes.calls:
        constant(statement.test)  # `assert True, "..."` and the like
    return LiteralTest(
        line=statement.lineno,
        calls=tuple(holes.calls),
        holds=lambda answers: _truth(value, answers),
        shown=lambda: (ast.unparse(statement.test), _expected(statement.test)),
    )


def _truth(value: Callable[[list[Any]], Any], answers: list[Any]) -> bool:
    try:
        return bool(value(answers))
    except _NotLiteral:  # arithmetic on an answer that turned out too large for this process
        raise NeedsJudge from None


@lru_cache(maxsize=4096)
def plan(tests: str, entry_point: str | None, setup: str = "") -> LiteralPlan | None:
    """The literal tests in a text, or None where any part of it has to be executed.

    With an entry point only that name, or `check`'s parameter, is the candidate; without one any name is that is
    neither a known function nor a dotted one.
    """
    try:
        if not _only_imports(setup):
            return None
        statements, alias = _body(parse(tests), entry_point)
        known = _FUNCTIONS.keys() | _NAMES.keys()
        names = {alias, entry_point}

        def is_target(name: str) -> bool:
            return name in names if alias is not None else name not in known and "." not in name

        found = tuple(_literal_test(s, is_target) for s in statements if not _calls_check(s))
        if alias is not None:
            found = tuple(_renamed(test, alias, entry_point) for test in found)
    except (_NotLiteral, NeedsJudge, SyntaxError, ArithmeticError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return LiteralPlan(found) if any(test.calls for test in found) else None


def _renamed(test: LiteralTest, alias: str, entry_point: str | None) -> LiteralTest:
    """The same test, calling the candidate by its own name."""
    calls = tuple(Call(entry_point or alias, call.args, call.kwargs) for call in test.calls)
    return replace(test, calls=calls)


def plan_of_values(tests: list[dict[str, Any]], entry_point: str) -> LiteralPlan:
    """Tests given as {args, kwargs, expect}. JSON has no tuples, so a tuple in an answer counts as a list."""
    return LiteralPlan(tuple(_value_test(test, entry_point) for test in tests))


def _value_test(test: Mapping[str, Any], entry_point: str) -> LiteralTest:
    expect = without_tuples(test["expect"])
    args, kwargs = test.get("args", []), test.get("kwargs", {})
    call = Call(entry_point, [codec.encode(a) for a in args], {k: codec.encode(v) for k, v in kwargs.items()})
    return LiteralTest(
        line=None,
        calls=(call,),
        holds=lambda answers: bool(without_tuples(answers[0]) == expect),
        shown=lambda: _shown_value(test, entry_point),
    )


def _shown_value(test: Mapping[str, Any], entry_point: str) -> tuple[str, str]:
    """A test of values as a line of Python, and what it expects."""
    shown = [repr(arg) for arg in test.get("args", [])]
    shown += [f"{key}={value!r}" for key, value in test.get("kwargs", {}).items()]
    expected = repr(test["expect"])
    return f"{entry_point}({', '.join(shown)}) == {expected}", expected


def without_tuples(value: Any) -> Any:
    """The value with lists for its tuples, which JSON does not tell apart."""
    if isinstance(value, list | tuple):
        return [without_tuples(item) for item in value]
    if isinstance(value, dict):
        return {key: without_tuples(item) for key, item in value.items()}
    return value
