"""Static checks of a bundle's Python file: that it parses and defines the functions that will be called."""

import ast
from collections.abc import Mapping


def code_problems(path: str, source: bytes, calls: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the problems of *source* as sentences; *calls* maps each required function to its parameters."""
    try:
        tree = ast.parse(source, path)
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        return [f"{path}{line} is not Python: {error.msg if isinstance(error, SyntaxError) else error}"]
    defined = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    # An assignment or an import may bind a function, so only a name that is bound nowhere is reported.
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    bound |= {alias.asname or alias.name for node in imports for alias in node.names}
    is_async = {node.name: node for node in tree.body if isinstance(node, ast.AsyncFunctionDef)}
    problems = []
    for name, parameters in calls.items():
        call = f"{name}({', '.join(parameters)})"
        if name in is_async and name not in defined:
            problems.append(f"{path}:{is_async[name].lineno}: {name} is async; write a plain function {call}")
        elif name in defined and not _takes(defined[name].args, len(parameters)):
            problems.append(f"{path}:{defined[name].lineno}: {name} cannot be called as {call}")
        elif name not in defined and name not in bound and "*" not in bound:
            problems.append(f"{path} defines no function {call}")
    return problems


def _takes(arguments: ast.arguments, count: int) -> bool:
    """Return whether a function with these *arguments* can be called with *count* positional values."""
    places = len(arguments.posonlyargs) + len(arguments.args)
    return places - len(arguments.defaults) <= count and (places >= count or arguments.vararg is not None)
