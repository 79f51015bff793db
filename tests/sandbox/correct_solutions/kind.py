"""Correct solutions, each tested in every style of tests."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from textwrap import dedent, indent
from typing import Any

from sandbox.limits import Limits
from sandbox.verdicts.jobs import FunctionJob, Trust

LIMITS = Limits(cpu_s=5, wall_s=15)


@dataclass(frozen=True, slots=True)
class Kind:
    """A correct solution and its tests.

    code    the solution
    body    statements of the tests, which use the solution's names
    entry   the name that is the entry point, in styles that have one
    rows    the tests as values, where they can be
    prompt  what the case's prompt defines
    setup   imports and helpers of the tests
    """

    name: str
    code: str
    body: str
    entry: str = "f"
    rows: list[dict[str, Any]] = field(default_factory=list)
    prompt: str = ""
    setup: str = ""


@dataclass(frozen=True, slots=True)
class StyledSolution:
    """A correct solution with tests in one style."""

    kind: Kind
    style: str
    tests: str | list[dict[str, Any]]
    entry_point: str | None

    @property
    def id(self) -> str:
        return f"{self.kind.name}-{self.style}"

    def job(self, trust: Trust) -> FunctionJob:
        kind = self.kind
        return FunctionJob(
            dedent(kind.code),
            self.entry_point,
            self.tests,
            setup=dedent(kind.setup),
            prompt=dedent(kind.prompt),
            trust=trust,
            limits=LIMITS,
        )


def in_every_style(kinds: list[Kind]) -> Iterator[StyledSolution]:
    """Yield every solution in every style that fits it."""
    for kind in kinds:
        body = dedent(kind.body).strip("\n")
        yield StyledSolution(
            kind, "check", f"def check(candidate):\n    {kind.entry} = candidate\n{_in(body, 1)}\n", kind.entry
        )
        yield StyledSolution(kind, "named", f"{body}\n", None)
        if kind.rows:
            yield StyledSolution(kind, "rows", kind.rows, kind.entry)
        yield StyledSolution(kind, "pytest", f"def test_{kind.entry.lower()}():\n{_in(body, 1)}\n", None)
        cased = f"class T(unittest.TestCase):\n    def test_it(self):\n{_in(_with_methods(body), 2)}\n"
        yield StyledSolution(kind, "unittest", f"import unittest\n{cased}", None)


def _in(text: str, levels: int) -> str:
    return indent(text, "    " * levels)


class _Methods(ast.NodeTransformer):
    """Replaces asserts by methods of unittest."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        test, name, args = node.test, "assertTrue", [node.test]
        if isinstance(test, ast.Constant) and not test.value:
            name = "fail"
            args = []
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            found = {ast.Eq: "assertEqual", ast.NotEq: "assertNotEqual", ast.Is: "assertIs", ast.In: "assertIn"}.get(
                type(test.ops[0])
            )
            if found:
                name, args = found, [test.left, test.comparators[0]]
        method = ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load())
        return ast.copy_location(ast.Expr(ast.Call(method, args, [])), node)


def _with_methods(body: str) -> str:
    return ast.unparse(ast.fix_missing_locations(_Methods().visit(ast.parse(body))))
