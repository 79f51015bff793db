"""Interpreter of templates that only look up, compare and repeat data. Nothing is compiled.

No template of this subset creates values: it has no arithmetic, filters, calls or assignments. The steps of a rendering
and the length of its text are counted and limited. Other templates, and templates that use values other than plain
data, raise NotPlain and are rendered by a worker process.
"""

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from jinja2 import StrictUndefined, Undefined, nodes

from hub.templating.environment import MAX_RENDERED, TemplateEnvironment, TooLong, lone_expression, lone_node

MAX_STEPS = 200_000  # about 0.1 s

_COMPARE: dict[str, Callable[[Any, Any], object]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "lteq": operator.le,
    "gt": operator.gt,
    "gteq": operator.ge,
    "in": lambda left, right: left in right,
    "notin": lambda left, right: left not in right,
}
_TESTS = frozenset(
    {"defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence"}
)
_LOOP: dict[str, Callable[[int, int], object]] = {
    "index": lambda i, n: i + 1,
    "index0": lambda i, n: i,
    "revindex": lambda i, n: n - i,
    "revindex0": lambda i, n: n - i - 1,
    "first": lambda i, n: i == 0,
    "last": lambda i, n: i == n - 1,
    "length": lambda i, n: n,
}
_SPECIAL = frozenset({"loop", "self", "super", "caller"})  # names that Jinja2 defines
_DATA = (str, int, float, bool, type(None), list, dict, tuple, Undefined)


class NotPlain(Exception):
    """Template that this module does not interpret."""


@dataclass(slots=True)
class _Scope:
    """The state of one rendering."""

    variables: Mapping[str, object]
    names: dict[str, object] = field(default_factory=dict)  # of loops
    loop: tuple[int, int] = (0, 0)  # index and length of the innermost loop
    steps: int = 0
    size: int = 0
    pieces: list[str] = field(default_factory=list)

    def step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise NotPlain

    def write(self, text: str) -> None:
        self.size += len(text)
        if self.size > MAX_RENDERED:
            raise TooLong
        self.pieces.append(text)


_Expression = Callable[[_Scope], object]
_Statement = Callable[[_Scope], None]


class PlainTemplate:
    """Template of the subset. Raises NotPlain, also when it is rendered."""

    def __init__(self, env: TemplateEnvironment, source: str, tree: nodes.Template) -> None:
        compiler = _Compiler(env)
        lone = lone_node(tree) if lone_expression(source, tree) else None
        self._expression = compiler.expression(lone) if lone is not None else None
        self._body = compiler.body(tree.body) if lone is None else None

    def render(self, variables: Mapping[str, object]) -> object:
        """Return the text, or the value of a lone expression.

        Raises UndefinedError, SecurityError, TypeError or TooLong.
        """
        scope = _Scope(variables)
        if self._expression is not None:
            value = self._expression(scope)
            if isinstance(value, Undefined):
                str(value)  # raises UndefinedError with the missing name
            return value
        assert self._body is not None
        self._body(scope)
        return "".join(scope.pieces)


class _Compiler:
    """Compiler of syntax trees to functions. Raises NotPlain for nodes outside of the subset."""

    def __init__(self, env: TemplateEnvironment) -> None:
        self._env = env
        self._depth = 0  # of loops

    # ---- statements --------------------------------------------------------------------------------------------------

    def body(self, found: list[nodes.Node]) -> _Statement:
        statements = [self._statement(node) for node in found]

        def run(scope: _Scope) -> None:
            for statement in statements:
                scope.step()
                statement(scope)

        return run

    def _statement(self, node: nodes.Node) -> _Statement:
        if isinstance(node, nodes.Output):
            return self._output(node)
        if isinstance(node, nodes.If):
            return self._if(node)
        if isinstance(node, nodes.For):
            return self._for(node)
        raise NotPlain

    def _output(self, node: nodes.Output) -> _Statement:
        parts = [part.data if isinstance(part, nodes.TemplateData) else self.expression(part) for part in node.nodes]

        def run(scope: _Scope) -> None:
            for part in parts:
                scope.step()
                scope.write(part if isinstance(part, str) else _text(part(scope)))

        return run

    def _if(self, node: nodes.If) -> _Statement:
        branches = [(self.expression(one.test), self.body(one.body)) for one in (node, *node.elif_)]
        otherwise = self.body(node.else_)

        def run(scope: _Scope) -> None:
            for test, body in branches:
                if test(scope):
                    return body(scope)
            return otherwise(scope)

        return run

    def _for(self, node: nodes.For) -> _Statement:
        if node.test is not None or node.recursive or not isinstance(node.target, nodes.Name):
            raise NotPlain
        name, iterable, otherwise = node.target.name, self.expression(node.iter), self.body(node.else_)
        self._depth += 1
        body = self.body(node.body)
        self._depth -= 1

        def run(scope: _Scope) -> None:
            items = cast("Collection[object]", iterable(scope))
            if isinstance(items, Undefined) or not items:
                iter(items)  # raises UndefinedError with the missing name, and TypeError for other values
                otherwise(scope)
                return
            outer, names = scope.loop, scope.names
            scope.names = dict(names)
            for index, item in enumerate(items):
                scope.step()
                scope.loop = (index, len(items))
                scope.names[name] = item
                body(scope)
            scope.loop, scope.names = outer, names

        return run

    # ---- expressions -------------------------------------------------------------------------------------------------

    def expression(self, node: nodes.Node) -> _Expression:
        compile_node = _EXPRESSIONS.get(type(node))
        if compile_node is None:
            raise NotPlain
        return compile_node(self, node)

    def _name(self, node: nodes.Name) -> _Expression:
        name = node.name
        if name in _SPECIAL:
            raise NotPlain

        def run(scope: _Scope) -> object:
            scope.step()
            if name in scope.names:
                return scope.names[name]
            if name in scope.variables:
                return _data(scope.variables[name])
            if name in self._env.globals:
                raise NotPlain
            return StrictUndefined(name=name)

        return run

    def _const(self, node: nodes.Const) -> _Expression:
        value = node.value
        return lambda scope: value

    def _constants(self, node: nodes.List | nodes.Tuple | nodes.Dict) -> _Expression:
        """Compile a literal of literals. With names in it, `[[x, x], [x, x]]` would multiply the data."""
        if next(node.find_all((nodes.Name, nodes.Call, nodes.Filter)), None) is not None:
            raise NotPlain
        value = _constant(node)
        return lambda scope: value

    def _getattr(self, node: nodes.Getattr) -> _Expression:
        attribute = node.attr
        if isinstance(node.node, nodes.Name) and node.node.name == "loop":
            figure = _LOOP.get(attribute)
            if figure is None or not self._depth:
                raise NotPlain
            return lambda scope: figure(*scope.loop)
        owner = self.expression(node.node)
        return lambda scope: _data(self._env.getattr(owner(scope), attribute))

    def _getitem(self, node: nodes.Getitem) -> _Expression:
        owner, key = self.expression(node.node), self.expression(node.arg)
        return lambda scope: _data(self._env.getitem(owner(scope), key(scope)))

    def _not(self, node: nodes.Not) -> _Expression:
        inner = self.expression(node.node)
        return lambda scope: not inner(scope)

    def _neg(self, node: nodes.Neg) -> _Expression:
        inner = self.expression(node.node)
        return lambda scope: -cast(float, inner(scope))

    def _and(self, node: nodes.And) -> _Expression:
        left, right = self.expression(node.left), self.expression(node.right)
        return lambda scope: left(scope) and right(scope)

    def _or(self, node: nodes.Or) -> _Expression:
        left, right = self.expression(node.left), self.expression(node.right)
        return lambda scope: left(scope) or right(scope)

    def _conditional(self, node: nodes.CondExpr) -> _Expression:
        if node.expr2 is None:
            raise NotPlain
        test, first, second = map(self.expression, (node.test, node.expr1, node.expr2))
        return lambda scope: first(scope) if test(scope) else second(scope)

    def _compare(self, node: nodes.Compare) -> _Expression:
        first = self.expression(node.expr)
        others = [(_COMPARE[operand.op], self.expression(operand.expr)) for operand in node.ops]

        def run(scope: _Scope) -> object:
            left = first(scope)
            result: object = True
            for compare, expression in others:
                scope.step()
                right = expression(scope)
                result = compare(left, right)
                if not result:
                    return result
                left = right
            return result

        return run

    def _test(self, node: nodes.Test) -> _Expression:
        if node.name not in _TESTS or node.args or node.kwargs or node.dyn_args or node.dyn_kwargs:
            raise NotPlain
        inner = self.expression(node.node)
        test = cast("Callable[[object], bool]", self._env.tests[node.name])
        return lambda scope: test(inner(scope))


_EXPRESSIONS: dict[type[nodes.Node], Callable[[_Compiler, Any], _Expression]] = {
    nodes.Name: _Compiler._name,
    nodes.Const: _Compiler._const,
    nodes.List: _Compiler._constants,
    nodes.Tuple: _Compiler._constants,
    nodes.Dict: _Compiler._constants,
    nodes.Getattr: _Compiler._getattr,
    nodes.Getitem: _Compiler._getitem,
    nodes.Not: _Compiler._not,
    nodes.Neg: _Compiler._neg,
    nodes.And: _Compiler._and,
    nodes.Or: _Compiler._or,
    nodes.CondExpr: _Compiler._conditional,
    nodes.Compare: _Compiler._compare,
    nodes.Test: _Compiler._test,
}


def _constant(node: nodes.Node) -> object:
    if isinstance(node, nodes.Const):
        return node.value
    if isinstance(node, nodes.List):
        return [_constant(item) for item in node.items]
    if isinstance(node, nodes.Tuple):
        return tuple(_constant(item) for item in node.items)
    if isinstance(node, nodes.Dict):
        return {_constant(pair.key): _constant(pair.value) for pair in node.items}
    raise NotPlain


def _data(value: object) -> object:
    """Return *value* if it is data. Raises NotPlain for methods and other objects."""
    if isinstance(value, _DATA):
        return value
    raise NotPlain


def _text(value: object) -> str:
    if isinstance(value, list | dict | tuple) and size_of(value, MAX_RENDERED) > MAX_RENDERED:
        raise TooLong
    return str(value)


def size_of(value: object, enough: int) -> int:
    """Return the approximate length of *value* as JSON; counting stops at more than *enough* characters."""
    if isinstance(value, str):
        return len(value)
    size, waiting = 0, [value]
    while waiting and size <= enough:
        item = waiting.pop()
        if isinstance(item, str):
            size += len(item)
            continue
        size += 8
        if isinstance(item, dict):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            waiting.extend(item)
    return size
