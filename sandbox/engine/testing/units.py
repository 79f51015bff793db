"""Executes tests and keeps count: asserts that held, units that passed, and what the first failure was."""

import ast
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from . import fixtures, negative_control
from .negative_control import EQUALITIES, is_method_of_self

_ASSERT = "__llm_eval_assert__"
_METHOD = "__llm_eval_method__"
LISTED = "__llm_eval_listed__"
"""What tests of values call their answers by: JSON has no tuples, so tuples count as lists."""

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}


class BadTests(Exception):
    """The tests cannot be run, whatever the code is."""


class Recorder:
    """Counts asserts. With `control` the tests are a negative control, see `controls`."""

    def __init__(self, control: bool = False) -> None:
        self.control = negative_control.Control(_OPERATORS) if control else None
        self.asserts: list[ast.expr] = []  # the condition of each
        self.passed = self.total = 0
        self.failed: tuple[int, str, tuple[Any, ...]] | None = None  # assert, operator, operands

    def check(self, index: int, name: str, *operands: Any) -> bool:
        """What an assert's condition is replaced by."""
        self.total += 1
        self.failed = index, name, operands
        held = bool(_OPERATORS[name](*operands)) if name else bool(operands[0])
        if held:
            self.passed += 1
            self.failed = None
        return held

    def call(self, index: int, name: str, method: Callable[..., Any], *operands: Any, **options: Any) -> Any:
        """What a call that counts as an assert is replaced by."""
        self.total += 1
        self.failed = index, "Eq" if name in EQUALITIES else "", operands
        result = method(*operands, **options)
        self.passed += 1
        self.failed = None
        return result

    def count_raises(self, held: bool) -> None:
        """Count a `pytest.raises`: once when its block ends, and once if it held."""
        if self.control is not None:
            self.control.total += not held
        elif held:
            self.passed += 1
        else:
            self.total += 1

    def compile(self, source: str, filename: str, tree: ast.Module | None = None) -> Any:
        """The code of `source` with every assert reporting to this recorder. Raises SyntaxError.

        tree  of the source, where there is one already; it is changed
        """
        tree = tree or ast.parse(source, filename)
        if self.control is not None:
            self.control.note(source)
            instrumented = negative_control.Instrument().visit(tree)
        else:
            instrumented = _Instrument(self.asserts, methods="self" in source or "testing" in source).visit(tree)
        return compile(instrumented, filename, "exec", dont_inherit=True)

    def hooks(self) -> dict[str, Any]:
        """Names that compiled code needs."""
        own = {_ASSERT: self.check, _METHOD: self.call} if self.control is None else self.control.hooks()
        return {LISTED: without_tuples, **own}

    @property
    def held(self) -> int:
        """Comparisons of a control that hold though they must not."""
        return self.control.held if self.control is not None else 0

    @property
    def executed(self) -> int:
        """Asserts executed so far."""
        return self.total if self.control is None else self.control.total


def without_tuples(value: Any) -> Any:
    """The value with lists for its tuples."""
    if isinstance(value, list | tuple):
        return [without_tuples(item) for item in value]
    if type(value) is dict:
        return {key: without_tuples(item) for key, item in value.items()}
    return value


class _Instrument(ast.NodeTransformer):
    def __init__(self, asserts: list[ast.expr], methods: bool) -> None:
        """`methods`: there may be calls that count as asserts, which stand in expressions."""
        self._asserts, self._methods = asserts, methods

    def _number(self, node: ast.expr) -> ast.Constant:
        self._asserts.append(node)
        return ast.Constant(len(self._asserts) - 1, **_place(node))

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and not self._methods:
            return node
        return super().visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if is_counted(node):
            place = _place(node)
            name = ast.Constant(node.func.attr, **place)  # type: ignore[attr-defined]
            hook = ast.Name(_METHOD, ast.Load(), **place)
            return ast.Call(hook, [self._number(node), name, node.func, *node.args], node.keywords, **place)
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        test, place = node.test, _place(node.test)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            values = [ast.Constant(type(test.ops[0]).__name__, **place), test.left, test.comparators[0]]
        else:
            values = [ast.Constant("", **place), test]
        hook = ast.Call(ast.Name(_ASSERT, ast.Load(), **place), [self._number(test), *values], [], **place)
        return ast.Assert(hook, node.msg, **_place(node))


def _place(node: ast.expr | ast.stmt) -> dict[str, Any]:
    """Where a node stands, for those that take its place."""
    end = {"end_lineno": node.end_lineno, "end_col_offset": node.end_col_offset}
    return {"lineno": node.lineno, "col_offset": node.col_offset, **end}


_COUNTED = EQUALITIES | {"assertTrue", "assertFalse"}


def is_counted(node: ast.AST) -> bool:
    """Whether this is a call that counts as an assert: a unittest method, or one of numpy.testing's functions."""
    if is_method_of_self(node):
        return node.func.attr in _COUNTED  # type: ignore[attr-defined]
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.startswith("assert_")
        and ast.unparse(node.func.value) in ("np.testing", "numpy.testing")
    )


class Unit(NamedTuple):
    """One thing that passes or fails: an assert line, a test function or method; nameless: the text, or its `check`.

    must_assert  it holds asserts and not one of them being executed would be no proof of anything
    defines      it only defines the units that follow
    """

    name: str
    line: int | None
    run: Callable[[], None]
    must_assert: bool = False
    defines: bool = False


def units(
    tests: str | list[str],
    namespace: dict[str, Any],
    recorder: Recorder,
    candidate: Any,
    tree: ast.Module | None = None,
) -> Iterator[Unit]:
    """The units of `tests`, in order. What stands at module level is executed first.

    tree  of tests that are one text, where there is one already; it is changed
    """
    if not isinstance(tests, str):
        for number, line in enumerate(tests, start=1):
            tree = ast.parse(line, "<tests>")
            must = _has_assert(tree)
            yield Unit(
                line, number, partial(exec, recorder.compile(line, "<tests>", tree), namespace), must_assert=must
            )
        return
    tree = tree or ast.parse(tests, "<tests>")
    functions = {s.name: s for s in tree.body if isinstance(s, ast.FunctionDef)}
    check = functions.get("check")
    is_check = check is not None and bool(check.args.args) and not _calls_check(tree)
    found = {
        s.name: (s.lineno, _has_assert(s))
        for s in tree.body
        if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef) and s.name.startswith("test")
    }
    classes = {s.name: _asserting_methods(s) for s in tree.body if isinstance(s, ast.ClassDef) and _is_test_class(s)}
    must = _has_assert(tree)
    defines = is_check or bool(found or classes)
    program = partial(exec, recorder.compile(tests, "<tests>", tree), namespace)  # from here on the tree is another
    yield Unit("", None, program, must_assert=must and not defines, defines=defines)
    if is_check:
        yield Unit("", None, partial(_call, namespace, "check", candidate), must_assert=must)
        return
    cases, kinds = [], []
    unittest = sys.modules.get("unittest")  # large, so imported by the tests that use it and nobody else
    for kind in (namespace.get(name) for name in classes):
        if unittest is not None and isinstance(kind, type) and issubclass(kind, unittest.TestCase):
            cases.append(kind)
        elif isinstance(kind, type):
            kinds.append(kind)
    try:
        tests_found = fixtures.Suite(namespace).tests(found, kinds)
    except fixtures.UnknownFixture as error:
        raise BadTests(str(error)) from None
    except BaseException as error:  # by values that may come from the code: its fault or the tests', as in any unit
        yield Unit("", None, partial(_raise, error))
        return
    if found and not tests_found and not cases and not kinds:
        yield Unit("", None, partial(_raise, RuntimeError("All tests are marked to be skipped.")))
    for test, run in tests_found:
        if test.kind is None:
            yield Unit(test.name, found[test.function_name][0], run, found[test.function_name][1])
        else:
            yield Unit(test.name, None, run, test.function_name in classes.get(test.kind.__name__, ()))
    for kind in cases:
        for name in unittest.TestLoader().getTestCaseNames(kind):  # type: ignore[union-attr]
            asserts = name in classes.get(kind.__name__, ())
            yield Unit(f"{kind.__name__}.{name}", None, partial(_run_case, unittest, kind, name), asserts)


def _asserting_methods(statement: ast.ClassDef) -> set[str]:
    methods = (s for s in statement.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef))
    return {s.name for s in methods if _has_assert(s)}


def _call(namespace: dict[str, Any], name: str, *args: Any) -> None:
    namespace[name](*args)


def _raise(error: BaseException) -> None:
    raise error


def _has_assert(tree: ast.AST) -> bool:
    """Whether there are asserts to be reached. `assert False` is not: it stands where the tests must not come."""
    return any(
        (isinstance(node, ast.Assert) and not _is_constant(node.test, False))
        or (is_counted(node) and not _fails_always(node))
        or _is_raises(node)
        for node in ast.walk(tree)
    )


def _is_raises(node: ast.AST) -> bool:
    """Whether this is a call `pytest.raises(...)` or `raises(...)`."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("pytest.raises", "raises")


def _is_constant(node: ast.expr, truth: bool) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value) is truth


def _fails_always(node: ast.AST) -> bool:
    """Whether this is `self.assertTrue(False)` or `self.assertFalse(True)`."""
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return node.func.attr in ("assertTrue", "assertFalse") and _is_constant(
        node.args[0], node.func.attr == "assertFalse"
    )


def _is_test_class(statement: ast.ClassDef) -> bool:
    return statement.name.startswith("Test") or any("TestCase" in ast.unparse(base) for base in statement.bases)


def _calls_check(tree: ast.Module) -> bool:
    """Whether the text calls its own `check`."""
    calls = [s.value for s in tree.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    return any(isinstance(call.func, ast.Name) and call.func.id == "check" for call in calls)


def asserts_nothing(tests: ast.Module) -> bool:
    """Whether nothing in the tests could ever fail by intention."""
    for node in ast.walk(tests):
        if isinstance(node, ast.Assert | ast.Raise):
            return False
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name.lower().startswith(("assert", "fail")) or name == "raises":
                return False
    return True


def controlled(found: Iterable[Unit]) -> Iterator[Unit]:
    """The units of a control, none of which passes."""
    for unit in found:
        yield unit if unit.defines else unit._replace(run=partial(_then_fail, unit.run), must_assert=False)


def _then_fail(run: Callable[[], None]) -> None:
    run()
    raise AssertionError("the negative control")


class _Result:
    """What unittest reports to: keeps the exception of a test method as it was raised."""

    shouldStop = False

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.skipped = False
        self.ran = False

    def startTest(self, test: Any) -> None:
        self.ran = True

    def stopTest(self, test: Any) -> None: ...

    def addSuccess(self, test: Any) -> None: ...

    def addFailure(self, test: Any, err: Any) -> None:
        self.error = self.error or err[1]

    def addError(self, test: Any, err: Any) -> None:
        self.error = self.error or err[1]

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        self.error = self.error or (err and err[1])

    def addSkip(self, test: Any, reason: str) -> None:
        self.skipped = True

    def addExpectedFailure(self, test: Any, err: Any) -> None: ...

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.error = self.error or AssertionError("unexpected success")

    def addDuration(self, test: Any, elapsed: float) -> None: ...


def _run_case(unittest: Any, kind: Any, name: str) -> None:
    result = _Result()
    unittest.TestSuite([kind(name)]).run(result)
    if result.error is not None:
        raise result.error
    if not result.ran and not result.skipped:
        raise RuntimeError(f"{kind.__name__}.{name} was not run")


def line_in_tests(error: BaseException) -> int | None:
    """The line of the tests' text at which an exception passed through it last."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<tests>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
