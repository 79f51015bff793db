"""Tool schemas from the type hints and docstrings of a Python file, which is parsed and never executed."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import cast

from hub.protocols.messages import JSON, FunctionSchema, Tool
from sandbox.verdicts.parsing import parse, parse_expression

STATE = "state"  # the default name of the parameter that the harness passes and the model does not see
NOT_TOOLS = frozenset({"reset"})
_SCALARS = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "None": "null"}
_ARRAYS = {"list", "List", "Sequence", "Iterable"}
_OBJECTS = {"dict", "Dict", "Mapping"}
_ANYTHING = {"Any", "object", "JSON"}


class ToolSourceError(ValueError):
    """A tools file that cannot be used: `problems` are sentences that name the line."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class ToolFunction:
    """One function of a tools file: its schema, and whether it takes the episode's state."""

    name: str
    tool: Tool
    takes_state: bool

    @property
    def parameters(self) -> dict[str, JSON]:
        schema: dict[str, JSON] = self.tool["function"]["parameters"]
        return schema


@dataclass(frozen=True, slots=True)
class ToolModule:
    """Contents of a tools file: its tools by name in order, and whether it has a `reset`."""

    functions: Mapping[str, ToolFunction]
    has_reset: bool

    @property
    def tools(self) -> list[Tool]:
        return [function.tool for function in self.functions.values()]


@lru_cache(maxsize=256)
def read_tools(source: bytes, path: str = "tools.py", state_parameter: str = STATE) -> ToolModule:
    """Return the tools that *source* defines. Raises ToolSourceError with every problem."""
    try:
        tree = parse(source)
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise ToolSourceError([f"{path}{line}: is not Python: {getattr(error, 'msg', error)}"]) from None
    reader = _SchemaReader(path, _typed_dicts(tree), _aliases(tree), state_parameter)
    functions: dict[str, ToolFunction] = {}
    for node in tree.body:
        if isinstance(node, ast.AsyncFunctionDef) and not node.name.startswith("_"):
            reader.problem(node, f"{node.name} is async; a tool is a plain function")
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.name not in NOT_TOOLS:
            functions[node.name] = reader.function(node)
    if not functions and not reader.problems:
        reader.problems.append(f"{path}: defines no tool; write a function with type hints and a docstring")
    if reader.problems:
        raise ToolSourceError(reader.problems)
    has_reset = any(isinstance(node, ast.FunctionDef) and node.name == "reset" for node in tree.body)
    return ToolModule(functions, has_reset)


def _typed_dicts(tree: ast.Module) -> dict[str, ast.ClassDef]:
    return {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and any(_name(base) == "TypedDict" for base in node.bases)
    }


def _aliases(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the values of names assigned at module level, such as `Reason = Literal["late", "broken"]`."""
    return {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


@dataclass
class _SchemaReader:
    """Reader of the functions of one file that collects all problems instead of stopping at the first."""

    path: str
    typed_dicts: Mapping[str, ast.ClassDef]
    aliases: Mapping[str, ast.expr]
    state_parameter: str = STATE
    problems: list[str] = field(default_factory=list)

    def problem(self, node: ast.AST, text: str) -> None:
        self.problems.append(f"{self.path}:{getattr(node, 'lineno', 1)}: {text}")

    def function(self, node: ast.FunctionDef) -> ToolFunction:
        docstring = parse_docstring(ast.get_docstring(node) or "")
        if not docstring.summary:
            self.problem(node, f"{node.name} has no docstring; it is what the model reads to know the tool")
        if node.args.vararg or node.args.kwarg or node.args.posonlyargs:
            self.problem(node, f"{node.name} takes *args, **kwargs or positional-only parameters; name each one")
        properties: dict[str, JSON] = {}
        required = []
        for argument, default in _parameters(node.args):
            if argument.arg == self.state_parameter:
                self.check_state(node, argument, default)
                continue
            schema = self.parameter(node, argument, docstring.parameters.get(argument.arg, ""))
            properties[argument.arg] = schema
            if default is None:
                required.append(argument.arg)
            else:
                _describe_default(schema, default)
        parameters: dict[str, JSON] = {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
        function: FunctionSchema = {"name": node.name, "description": docstring.summary, "parameters": parameters}
        takes_state = any(argument.arg == self.state_parameter for argument, _ in _parameters(node.args))
        return ToolFunction(node.name, {"type": "function", "function": function}, takes_state)

    def check_state(self, function: ast.FunctionDef, argument: ast.arg, default: ast.expr | None) -> None:
        """Report a parameter with the name of the state that is meant for the model.

        A tool cannot change text or a number in place, and a parameter that is always passed needs no default.
        """
        schema = self.schema(argument.annotation) if argument.annotation is not None else {}
        words = _listed(schema.get("type", []))
        if "enum" in schema or any(word in ("string", "integer", "number", "boolean") for word in words):
            reason = "has a scalar type"
        elif default is not None:
            reason = "has a default"
        else:
            return
        name = argument.arg
        self.problem(
            argument,
            f"{function.name}: parameter {name} {reason}, but {name} is reserved: the harness passes the state of the "
            "episode in it, and the model does not see it. If the model should give it, rename it, or name another "
            "parameter for the state, such as `state_parameter: world` below `harness:`. If it is the state of the "
            "episode, use the type hint dict without a default",
        )

    def parameter(self, function: ast.FunctionDef, argument: ast.arg, description: str) -> dict[str, JSON]:
        if argument.annotation is None:
            self.problem(argument, f"{function.name}: parameter {argument.arg} has no type hint")
            return {}
        schema = self.schema(argument.annotation)
        return {**schema, "description": description} if description else schema

    def schema(self, node: ast.expr) -> dict[str, JSON]:
        """Return the JSON schema of a type hint."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.schema(parse_expression(node.value))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return _either([self.schema(node.left), self.schema(node.right)])
        name = _name(node)
        if name in _SCALARS:
            return {"type": _SCALARS[name]}
        if name in _ANYTHING:
            return {}
        if name in self.typed_dicts:
            return self.without(name).typed_dict(self.typed_dicts[name])
        if isinstance(node, ast.Name) and name in self.aliases:
            return self.without(name).schema(self.aliases[name])
        if isinstance(node, ast.Subscript):
            return self.subscript(node, _name(node.value))
        if name in _ARRAYS:
            return {"type": "array"}
        if name in _OBJECTS:
            return {"type": "object"}
        return self.unknown(node)

    def without(self, name: str) -> "_SchemaReader":
        """Return a reader that does not know *name*, so that a type that contains itself ends the recursion."""
        typed_dicts = {other: node for other, node in self.typed_dicts.items() if other != name}
        aliases = {other: node for other, node in self.aliases.items() if other != name}
        return replace(self, typed_dicts=typed_dicts, aliases=aliases)

    def subscript(self, node: ast.Subscript, name: str) -> dict[str, JSON]:
        items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Literal":
            return self.literal(node, items)
        if name == "Annotated":
            notes = [n.value for n in items[1:] if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            return {**self.schema(items[0]), **({"description": notes[0]} if notes else {})}
        if name == "Optional":
            return _either([self.schema(items[0]), {"type": "null"}])
        if name == "Union":
            return _either([self.schema(item) for item in items])
        if name in ("NotRequired", "Required"):
            return self.schema(items[0])
        if name in _ARRAYS:
            return {"type": "array", "items": self.schema(items[0])}
        if name in _OBJECTS and len(items) == 2:
            return {"type": "object", "additionalProperties": self.schema(items[1]) or True}
        return self.unknown(node)

    def literal(self, node: ast.AST, items: list[ast.expr]) -> dict[str, JSON]:
        values = [item.value for item in items if isinstance(item, ast.Constant)]
        kinds = {_SCALARS.get(type(value).__name__) for value in values}
        if len(values) != len(items) or None in kinds:
            self.problem(node, "Literal may have texts, numbers and booleans only")
            return {}
        return {"type": kinds.pop(), "enum": values} if len(kinds) == 1 else {"enum": values}

    def typed_dict(self, node: ast.ClassDef) -> dict[str, JSON]:
        fields = [item for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)]
        partial = any(k.arg == "total" and ast.unparse(k.value) == "False" for k in node.keywords)
        properties, required = {}, []
        for item in fields:
            assert isinstance(item.target, ast.Name)
            properties[item.target.id] = self.schema(item.annotation)
            marker = _name(item.annotation.value) if isinstance(item.annotation, ast.Subscript) else ""
            if marker == "Required" or (not partial and marker != "NotRequired"):
                required.append(item.target.id)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def unknown(self, node: ast.expr) -> dict[str, JSON]:
        self.problem(
            node,
            f"type hint {ast.unparse(node)} has no JSON form; use str, int, float, bool, list[...], dict[str, ...], "
            "Literal[...], a TypedDict of this file, or Any",
        )
        return {}


def _name(node: ast.expr) -> str:
    """Return the last name of `list`, `typing.List` or `None`; "" for other expressions."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    return "None" if isinstance(node, ast.Constant) and node.value is None else ""


def _parameters(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Yield each parameter with its default, None if it is required."""
    positional = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    yield from zip(positional, [*missing, *arguments.defaults], strict=True)
    yield from zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)


def _describe_default(schema: dict[str, JSON], default: ast.expr) -> None:
    try:
        value = ast.literal_eval(default)
    except ValueError:
        return
    if value is not None and isinstance(value, str | int | float | bool | list | dict):
        schema["default"] = value


def _either(schemas: list[dict[str, JSON]]) -> dict[str, JSON]:
    """Return one schema for several alternatives: a list of type names if that is enough, else `anyOf`."""
    flat = [
        inner
        for schema in schemas
        for inner in (cast(list[dict[str, JSON]], schema["anyOf"]) if set(schema) == {"anyOf"} else [schema])
    ]
    if any(not schema for schema in flat):
        return {}
    if all(set(schema) == {"type"} for schema in flat):
        words = [word for schema in flat for word in _listed(schema["type"])]
        return {"type": list(dict.fromkeys(words))}
    return {"anyOf": flat}


def _listed(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else [value]


# ---- docstrings ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Docstring:
    summary: str  # everything before the parameters
    parameters: Mapping[str, str]


_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns?|Raises|Yields|Examples?|Notes?):\s*$")
_GOOGLE = re.compile(r"^\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_SPHINX = re.compile(r"^:param\s+(?:[\w\[\], |]+\s+)?(\w+):\s*(.*)$")


def parse_docstring(text: str) -> Docstring:
    """Return a docstring's description and parameters, in the style of Google (`Args:`) or Sphinx (`:param x:`)."""
    summary: list[str] = []
    parameters: dict[str, str] = {}
    section, current = "", ""
    for line in text.splitlines():
        heading = _SECTION.match(line)
        sphinx = _SPHINX.match(line.strip())
        entry = _GOOGLE.match(line) if section in ("Args", "Arguments", "Parameters") else None
        if heading:
            section, current = heading[1], ""
        elif sphinx:
            section, current = ":param", sphinx[1]
            parameters[current] = sphinx[2]
        elif line.strip().startswith((":return", ":raises", ":rtype", ":type")):
            section, current = ":other", ""
        elif entry and _indent(line) <= 4:
            current = entry[1]
            parameters[current] = entry[2].strip()
        elif current and line.strip():
            parameters[current] = f"{parameters[current]} {line.strip()}".strip()
        elif not section:
            summary.append(line.rstrip())
    return Docstring("\n".join(summary).strip(), parameters)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
