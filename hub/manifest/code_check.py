"""Static checks of a bundle's Python files: that they parse, define the functions that will be called, and import
no file of the bundle that is not listed.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from sandbox.verdicts.parsing import parse


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


def undeclared_imports(paths: Sequence[str], files: Mapping[str, bytes]) -> list[str]:
    """Return a sentence for each module of the bundle that the code at *paths* imports and that is not listed."""
    problems = []
    for path in paths:
        if not path.endswith(".py"):
            continue
        try:
            tree = parse(files[path])
        except (SyntaxError, ValueError) as error:
            problems.append(f"{path} is not Python: {error}")
            continue
        modules = dict.fromkeys(f"{name.replace('.', '/')}.py" for name in _imported(tree, PurePosixPath(path).parent))
        problems += [
            f"{path} imports {module}, which is not listed; add it to `reads`"
            for module in modules
            if module in files and module not in paths
        ]
    return problems


def _imported(tree: ast.Module, folder: PurePosixPath) -> Iterator[str]:
    """Yield the full names of what code in *folder* imports; of `from lib import a` both lib and lib.a."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = folder.parts[: len(folder.parts) - node.level + 1] if node.level else ()
            module = ".".join([*above, *filter(None, [node.module])])
            yield from filter(None, [module, *(f"{module}.{alias.name}".lstrip(".") for alias in node.names)])
