"""Decides whether the code under test could have tests skipped."""

import ast
import builtins
import sys

_SKIPS = frozenset(("skip", "skipIf", "skipUnless", "skipTest", "SkipTest", "skipif"))
_METHODS = ("setUp", "setUpClass")


class SkippedTest(Exception):
    """A test that neither passed nor failed; `marked`: by a decorator, so that it was not begun."""

    def __init__(self, name: str, marked: bool) -> None:
        super().__init__(name)
        self.marked = marked


def may_depend_on_code(setup: str, tests: str, tree: ast.Module) -> bool:
    """Return whether tests, with their setup, are skipped under a condition that may use what the code returned.

    A condition about Python, its standard library and constants cannot. Raises SyntaxError.

    tree  the parsed tests, not yet changed
    """
    if "skip" not in f"{setup}\n{tests}".lower():
        return False
    tree = ast.Module([*ast.parse(setup, "<setup>").body, *tree.body], [])
    known = _names_of_libraries(tree)
    accepted: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(body=body, decorator_list=decorators):
                expressions = [*decorators, *_pytestmarks(body)]
                for method in body:
                    if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and _runs_always(method.name):
                        accepted.update(_unconditional(method.body, known))
            case ast.FunctionDef(decorator_list=decorators) | ast.AsyncFunctionDef(decorator_list=decorators):
                expressions = decorators
            case ast.Module(body=body):
                expressions = _pytestmarks(body)
            case _:
                continue
        for expression in expressions:
            if _names(expression) <= known:
                accepted.update(ast.walk(expression))
    return any(_is_skip(node) for node in ast.walk(tree) if node not in accepted)


def _is_skip(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name, asname=str()):
            return name in _SKIPS
    return False


def _pytestmarks(statements: list[ast.stmt]) -> list[ast.expr]:
    assigned = (s for s in statements if isinstance(s, ast.Assign))
    return [s.value for s in assigned if any(ast.unparse(target) == "pytestmark" for target in s.targets)]


def _runs_always(name: str) -> bool:
    return name.startswith("test") or name in _METHODS


def _unconditional(statements: list[ast.stmt], known: set[str]) -> set[ast.AST]:
    """Return the nodes of skips that no condition guards, or only one about libraries."""
    found: set[ast.AST] = set()
    for statement in statements:
        match statement:
            case ast.If(test=test, body=body) if _names(test) <= known:
                found |= _unconditional(body, known)
            case ast.For(target=ast.Name(id=name), iter=items, body=body) if _names(items) <= known:
                if not any(name in _names_bound(inner) for inner in body):
                    found |= _unconditional(body, known | {name})
            case ast.With(body=body):
                found |= _unconditional(body, known)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(), attr="skipTest"))) | ast.Raise():
                found.update(ast.walk(statement))
    return found


def _names_of_libraries(tree: ast.Module) -> set[str]:
    """Return the names of Python's functions, and of modules of its standard library and their contents."""
    found = set(dir(builtins))
    libraries = {*sys.stdlib_module_names, "pytest"}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    root = alias.name.partition(".")[0]
                    if root in libraries:
                        found.add(alias.asname or root)
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                if module.partition(".")[0] in libraries:
                    found.update(alias.asname or alias.name for alias in aliases)
    return found - _names_bound(tree)


def _names_bound(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _names(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
