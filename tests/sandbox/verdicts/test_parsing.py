"""Parsing of source in several threads at once."""

import ast
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox.verdicts.parsing import parse, parse_checked, parse_expression

DEEP = "x = " + "[" * 60 + "]" * 60 + "\n" + "def f(a):\n    return a\n" * 300


def test_parsing_in_many_threads() -> None:
    with ThreadPoolExecutor(8) as threads:
        trees = list(threads.map(lambda i: parse_checked(DEEP if i % 2 else f"y = {i}"), range(200)))
    assert all(isinstance(tree, ast.Module) for tree in trees)


def test_parse_checked_rejects_return_outside_function() -> None:
    assert parse("return 1").body
    with pytest.raises(SyntaxError):
        parse_checked("return 1")


def test_parse_expression_rejects_several_expressions() -> None:
    assert isinstance(parse_expression("1 + 1"), ast.BinOp)
    with pytest.raises(SyntaxError):
        parse_expression("x = 1")


@pytest.mark.filterwarnings("error")
def test_parsing_ignores_warnings() -> None:
    assert parse("'\\d'").body
