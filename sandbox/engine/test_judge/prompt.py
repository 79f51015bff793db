"""The prompt of a job: its syntax tree, and the definitions in it that have no body yet (stubs)."""

import ast
from typing import TypeGuard


def parse_prompt(prompt: str) -> tuple[str, ast.Module]:
    """Return the prompt as a program: a signature without a body gets one, and prose becomes an empty program."""
    for text in (prompt, prompt.rstrip() + "\n    pass\n"):
        try:
            return text, ast.parse(text, "<prompt>")
        except (SyntaxError, ValueError):
            continue
    return "", ast.Module([], [])


def stubs_of(prompt: ast.Module) -> set[str]:
    """Return the names of functions and classes of a prompt without a body, see `is_stub`."""
    return {s.name for s in prompt.body if is_stub(s)}


def is_stub(statement: ast.stmt) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Return whether a definition contains only a docstring, `pass`, `...` or `raise NotImplementedError`."""
    if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return all(
        isinstance(s, ast.Pass)
        or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        or (isinstance(s, ast.Raise) and "NotImplemented" in ast.unparse(s))
        or is_stub(s)
        for s in statement.body
    )
