"""Tests that need no judge: their calls, and whether the answers pass."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from sandbox.engine.protocol import codec
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.literal.expressions import (
    FUNCTIONS,
    NAMES,
    Answers,
    Call,
    Compiler,
    Evaluate,
    NeedsTestJudge,
    NotLiteral,
    dotted_name,
    evaluate_constant,
)
from sandbox.verdicts.parsing import parse
from sandbox.verdicts.test_inputs import replace_tuples


@dataclass(frozen=True, slots=True)
class LiteralTest:
    """One test.

    passes(answers)  may raise NeedsTestJudge, and any exception of comparing built-in values
    describe()       returns the text of the test and of the expected value. Called for a failed test only, since it
                     takes as long as all other steps together
    note             the message of the assert, if it is a text
    """

    line: int | None
    calls: tuple[Call, ...]
    passes: Callable[[Answers], bool]
    describe: Callable[[], tuple[str, str]]
    note: str = ""


def plan_job(job: FunctionJob) -> tuple[LiteralTest, ...] | None:
    """Return the tests of a job, or None if a judge has to run them."""
    if isinstance(job.tests, str):
        return plan_text(job.tests, job.entry_point, job.setup)
    if isinstance(job.tests[0], str):
        return plan_text("\n".join(map(str, job.tests)), job.entry_point, job.setup)
    assert job.entry_point is not None  # FunctionJob checks this
    return tuple(_plan_value_test(test, job.entry_point) for test in job.tests if isinstance(test, dict))


@lru_cache(maxsize=4096)
def plan_text(tests: str, entry_point: str | None, setup: str = "") -> tuple[LiteralTest, ...] | None:
    """Return the tests in a text, or None if a judge has to run any part of it.

    With an entry point, only that name and the parameter of `check` are the function under test. Without one, each
    name is one that is neither dotted nor in FUNCTIONS or NAMES.
    """
    try:
        if not _has_only_imports(setup):
            return None
        statements, alias = _find_asserts(parse(tests), entry_point)
        known = FUNCTIONS.keys() | NAMES.keys()
        names = {alias, entry_point}

        def is_target(name: str) -> bool:
            return name in names if alias is not None else name not in known and "." not in name

        found = tuple(_plan_assert(s, is_target) for s in statements if not _is_call_of_check(s))
        if alias is not None:
            found = tuple(_rename_target(test, entry_point or alias) for test in found)
    except (
        NotLiteral,
        NeedsTestJudge,
        SyntaxError,
        ArithmeticError,
        ValueError,
        TypeError,
        RecursionError,
        MemoryError,
    ):
        return None
    return found if any(test.calls for test in found) else None


def _has_only_imports(setup: str) -> bool:
    if not setup.strip():
        return True
    return all(isinstance(statement, ast.Import | ast.ImportFrom) for statement in parse(setup).body)


def _find_asserts(module: ast.Module, entry_point: str | None) -> tuple[list[ast.stmt], str | None]:
    """Return the statements that contain the asserts, and the name by which they call the entry point."""
    statements = [s for s in module.body if not _has_no_effect(s)]
    functions = [s for s in statements if isinstance(s, ast.FunctionDef)]
    if not functions:
        return statements, entry_point
    check = functions[0]
    others = [s for s in statements if s is not check and not _is_call_of_check(s)]
    one_parameter = not check.decorator_list and len(check.args.args) == 1 and not check.args.defaults
    if check.name != "check" or others or not one_parameter or len(functions) > 1:
        raise NotLiteral
    return [s for s in check.body if not _has_no_effect(s)], check.args.args[0].arg


def _has_no_effect(statement: ast.stmt) -> bool:
    """Return whether this is a docstring, a name, `pass`, or the METADATA at the beginning of HumanEval's tests."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant | ast.Name)
    if isinstance(statement, ast.Assign):
        return [t.id for t in statement.targets if isinstance(t, ast.Name)] == ["METADATA"]
    return isinstance(statement, ast.Pass)


def _is_call_of_check(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and (dotted_name(statement.value.func) == "check")
    )


def _plan_assert(statement: ast.stmt, is_target: Callable[[str], bool]) -> LiteralTest:
    if not isinstance(statement, ast.Assert):  # its message is evaluated only after it failed, so it is not compiled
        raise NotLiteral
    if isinstance(statement.test, ast.Tuple):
        raise NotLiteral  # the judge reports that it is always true
    compiler = Compiler(is_target)
    evaluate = compiler.compile(statement.test)
    if not compiler.calls:
        evaluate_constant(statement.test)  # such as `assert True, "..."`
    return LiteralTest(
        line=statement.lineno,
        calls=tuple(compiler.calls),
        passes=lambda answers: _is_true(evaluate, answers),
        describe=lambda: (ast.unparse(statement.test), _describe_expected(statement.test)),
        note=_read_message(statement.msg),
    )


def _read_message(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_true(evaluate: Evaluate, answers: Answers) -> bool:
    try:
        return bool(evaluate(answers))
    except NotLiteral:  # arithmetic on an answer that is too large for this process
        raise NeedsTestJudge from None


def _describe_expected(node: ast.expr) -> str:
    """Return the literal side of a comparison for equality; "" for any other test."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
        for side in (node.comparators[0], node.left):
            try:
                return repr(evaluate_constant(side))
            except (NotLiteral, ValueError):
                continue
    return ""


def _rename_target(test: LiteralTest, name: str) -> LiteralTest:
    """Return the same test with its calls by the name of the function."""
    return replace(test, calls=tuple(Call(name, call.args, call.kwargs) for call in test.calls))


# ---- tests as values ------------------------------------------------------------------------------------------------


def _plan_value_test(test: Mapping[str, object], entry_point: str) -> LiteralTest:
    """Return the test in {args, kwargs, expect}. JSON has no tuples, so a tuple in an answer is compared as a list."""
    expect = replace_tuples(test["expect"])
    args, kwargs = _arguments(test)
    call = Call(entry_point, [codec.encode(a) for a in args], {k: codec.encode(v) for k, v in kwargs.items()})
    return LiteralTest(
        line=None,
        calls=(call,),
        passes=lambda answers: bool(replace_tuples(answers[0]) == expect),
        describe=lambda: _describe_value_test(test, entry_point),
    )


def _describe_value_test(test: Mapping[str, object], entry_point: str) -> tuple[str, str]:
    """Return the test as a line of Python, and the expected value."""
    args, kwargs = _arguments(test)
    arguments = [*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())]
    expected = repr(test["expect"])
    return f"{entry_point}({', '.join(arguments)}) == {expected}", expected


def _arguments(test: Mapping[str, object]) -> tuple[list[object], dict[str, object]]:
    args, kwargs = test.get("args", []), test.get("kwargs", {})
    assert isinstance(args, list) and isinstance(kwargs, dict)  # FunctionJob checks this
    return args, kwargs
