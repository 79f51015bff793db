"""Literal expressions with calls of the candidate in them.

`f([1, 2]) == 3` becomes a call, which is sent to the candidate, and a function that computes the comparison from the
decoded answer. Each expression that this module does not support raises NotLiteral.
"""

import ast
import builtins
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sandbox.engine.protocol import codec
from sandbox.verdicts.parsing import parse

Answers = Sequence[object]
"""The decoded answers to the calls of one assert, in order."""

Evaluate = Callable[[Answers], object]

_MAX_SIZE = 100_000  # items of a sequence, bits of a number

_COMPARISONS: dict[type[ast.cmpop], Callable[..., object]] = {
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
_ARITHMETIC: dict[type[ast.operator], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[..., object]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
FUNCTIONS: dict[str, Callable[..., object]] = {
    "abs": abs,
    "round": round,
    "len": len,
    "sorted": sorted,
    "list": list,
    "tuple": tuple,
    "set": lambda *values: _create_set(set, *values),
    "frozenset": lambda *values: _create_set(frozenset, *values),
    "float": float,
    "isinstance": isinstance,
    "type": type,
    "math.isclose": math.isclose,
}
_TYPE_FUNCTIONS = ("isinstance", "type")
NAMES: dict[str, object] = {
    "math.inf": math.inf,
    "math.pi": math.pi,
    "math.e": math.e,
    "math.nan": math.nan,
    **{kind.__name__: kind for kind in (int, float, str, bool, list, tuple, set, frozenset, dict, bytes, complex)},
}
_PLAIN_TYPES = (type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
_DISPLAYS: dict[type[ast.expr], Callable[[list[object]], object]] = {ast.List: list, ast.Tuple: tuple, ast.Set: set}


class NeedsTestJudge(Exception):
    """An answer that only a judge may compare, such as a generator whose items a test lists."""


class NotLiteral(Exception):
    """An expression that this module does not support."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the candidate: the name of the function and the encoded arguments."""

    target: str
    args: list[object]
    kwargs: dict[str, object]


class Compiler:
    """Turns the expression of one assert into a function of the answers, and collects its calls in order."""

    def __init__(self, is_target: Callable[[str], bool]) -> None:
        """*is_target* returns whether a name is that of a function under test."""
        self.is_target = is_target
        self.calls: list[Call] = []

    def compile(self, node: ast.expr) -> Evaluate:
        """Return a function from the answers to the value of the expression. Raises NotLiteral."""
        if isinstance(node, ast.Call):
            return self._compile_call(node)
        if isinstance(node, ast.Constant):
            constant: object = node.value
            return lambda answers: constant
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            create, items = _DISPLAYS[type(node)], [self.compile(item) for item in node.elts]
            return lambda answers: create([item(answers) for item in items])
        if isinstance(node, ast.Dict):
            return self._compile_dict(node)
        if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
            unary, operand = _UNARY[type(node.op)], self.compile(node.operand)
            return lambda answers: unary(operand(answers))
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            return self._compile_arithmetic(node)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compile_comparison(node)
        name = dotted_name(node)
        if name in NAMES and not self.is_target(name):
            value = NAMES[name]
            return lambda answers: value
        raise NotLiteral

    def _compile_arithmetic(self, node: ast.BinOp) -> Evaluate:
        calls_before = len(self.calls)
        kind, left, right = type(node.op), self.compile(node.left), self.compile(node.right)
        if len(self.calls) == calls_before:
            value = _compute(kind, left([]), right([]))
            return lambda answers: value
        return lambda answers: _compute(kind, _require_plain(left(answers)), _require_plain(right(answers)))

    def _compile_comparison(self, node: ast.Compare) -> Evaluate:
        compare, first = _COMPARISONS[type(node.ops[0])], self.compile(node.left)
        second = self.compile(node.comparators[0])
        if isinstance(node.ops[0], ast.Is | ast.IsNot) and not _has_singleton(node):
            raise NotLiteral  # a decoded answer is a copy, so only None, True and False keep their identity
        return lambda answers: compare(first(answers), second(answers))

    def _compile_call(self, node: ast.Call) -> Evaluate:
        name = dotted_name(node.func)
        if any(isinstance(arg, ast.Starred) for arg in node.args) or any(k.arg is None for k in node.keywords):
            raise NotLiteral
        if name in ("eval", "exec") and any(_is_program(arg) for arg in node.args):
            raise NotLiteral  # Python's function, which calls that of the code
        if name and self.is_target(name):
            args = [codec.encode(evaluate_constant(arg), _reject_object) for arg in node.args]
            kwargs = {str(k.arg): codec.encode(evaluate_constant(k.value), _reject_object) for k in node.keywords}
            index = len(self.calls)
            self.calls.append(Call(name, args, kwargs))
            return lambda answers: answers[index]
        if name not in FUNCTIONS:
            raise NotLiteral
        function, parts = FUNCTIONS[name], [self.compile(arg) for arg in node.args]
        named = {str(k.arg): self.compile(k.value) for k in node.keywords}
        check = _require_known_type if name in _TYPE_FUNCTIONS else _require_plain
        return lambda answers: function(
            *[check(part(answers)) for part in parts], **{key: part(answers) for key, part in named.items()}
        )

    def _compile_dict(self, node: ast.Dict) -> Evaluate:
        if any(key is None for key in node.keys):
            raise NotLiteral
        pairs = [(self.compile(key), self.compile(v)) for key, v in zip(node.keys, node.values, strict=True) if key]
        return lambda answers: {key(answers): value(answers) for key, value in pairs}


def evaluate_constant(node: ast.expr) -> object:
    """Return the value of an expression without calls of the candidate. Raises NotLiteral."""
    try:
        return Compiler(lambda name: False).compile(node)([])
    except NotLiteral:
        raise
    except Exception as error:
        raise NotLiteral from error


def _is_program(node: ast.expr) -> bool:
    """Return whether this is a text that calls a function which is not Python's, such as `"f(1)"`."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    try:
        calls = [call for call in ast.walk(parse(node.value.strip())) if isinstance(call, ast.Call)]
    except (SyntaxError, ValueError):
        return False
    return any(isinstance(call.func, ast.Name) and not hasattr(builtins, call.func.id) for call in calls)


def dotted_name(node: ast.expr) -> str:
    """Return `name` or `module.name`; "" for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


# ---- operations whose result could be too large for this process ----------------------------------------------------


def _compute(kind: type[ast.operator], left: object, right: object) -> object:
    """Return the result of arithmetic on numbers, or of joining or repeating sequences.

    Raises NeedsTestJudge or NotLiteral, before computing it, if the result could be large.
    """
    if kind not in (ast.Add, ast.Sub) and any(isinstance(v, int) and v.bit_length() > _MAX_SIZE for v in (left, right)):
        raise NeedsTestJudge
    numbers = isinstance(left, int | float | complex) and isinstance(right, int | float | complex)
    if kind is ast.Pow and not (numbers and _is_small_power(left, right)):
        raise NotLiteral
    if not numbers:
        first, second = _size(left), _size(right)
        if kind not in (ast.Add, ast.Mult) or (kind is ast.Mult and first * second > _MAX_SIZE):
            raise NotLiteral
    result = _ARITHMETIC[kind](left, right)
    if isinstance(result, int) and result.bit_length() > _MAX_SIZE:
        raise NotLiteral
    if isinstance(result, str | bytes | list | tuple) and len(result) > _MAX_SIZE:
        raise NotLiteral
    return result


def _size(operand: object) -> int:
    """Return the length of a sequence, or the integer that repeats one."""
    if isinstance(operand, str | bytes | list | tuple):
        return len(operand)
    if isinstance(operand, int):
        return operand
    raise NotLiteral


def _is_small_power(base: object, exponent: object) -> bool:
    if isinstance(base, int) and isinstance(exponent, int):
        return base.bit_length() * abs(exponent) <= _MAX_SIZE
    return True  # floats overflow with an exception


def _require_plain(value: object) -> object:
    """Return the value if its parts can be used here. Raises NeedsTestJudge.

    A range can have more members than fit into memory, and a Decimal more digits. A generator is in the candidate.
    """
    if not isinstance(value, _PLAIN_TYPES):
        raise NeedsTestJudge
    return value


def _require_known_type(value: object) -> object:
    if isinstance(value, codec.Opaque):
        raise NeedsTestJudge
    return value


def _reject_object(value: object) -> None:
    """Reject an argument such as `int`, for which the code would need a judge. Raises NotLiteral."""
    raise NotLiteral


def _is_in(item: object, container: object) -> bool:
    contains: Callable[..., bool] = operator.contains
    return contains(_require_plain(container), item)


def _create_set(create: Callable[..., object], *values: object) -> object:
    """Return a set unless the hashes of its members were chosen to collide. Raises NeedsTestJudge."""
    if values and isinstance(values[0], list | tuple) and codec.have_colliding_hashes(list(values[0])):
        raise NeedsTestJudge
    return create(*values)


def _has_singleton(node: ast.Compare) -> bool:
    return any(
        isinstance(side, ast.Constant) and (side.value is None or isinstance(side.value, bool))
        for side in (node.left, node.comparators[0])
    )
