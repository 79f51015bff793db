"""Divides tests into units, each of which passes or fails, and runs them."""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from . import fixtures, unittest_cases
from .recorder import BadTests, Recorder, is_counted

_EXITS = ("exit", "quit", "sys.exit", "SystemExit")
_MAX_SHOWN = 200  # characters of a test in a message


class Unit(NamedTuple):
    """One thing that passes or fails: an assert line, a test function or method; or, without a name, the whole text.

    must_assert  it contains asserts, and passing without executing one of them would prove nothing
    defines      it only defines the units that follow
    """

    name: str
    line: int | None
    run: Callable[[], None]
    must_assert: bool = False
    defines: bool = False


class _TestProgram(NamedTuple):
    """What the syntax of the tests shows, if they are one text.

    functions    line of each test function, and whether it contains asserts
    classes      names of the classes whose methods may be tests
    methods      names of the methods with asserts, by class
    must_assert  it contains asserts
    is_check     it defines `check(candidate)` and does not call it
    """

    functions: dict[str, tuple[int, bool]]
    classes: list[str]
    methods: dict[str, set[str]]
    must_assert: bool
    is_check: bool

    @property
    def defines_tests(self) -> bool:
        return bool(self.functions or self.classes)


def text_of(tests: str | list[str]) -> str:
    """Return tests as one text; a list has one assert per line."""
    return tests if isinstance(tests, str) else "\n".join(tests)


def units(
    tests: str | list[str],
    namespace: dict[str, object],
    recorder: Recorder,
    candidate: object,
    tree: ast.Module | None = None,
) -> Iterator[Unit]:
    """Yield the units of `tests`, in order. Statements at module level are executed first.

    tree  the parsed tests, if they are one text and it exists already; it is changed
    """
    if not isinstance(tests, str):
        yield from _units_of_lines(tests, namespace, recorder)
        return
    tree = tree or ast.parse(tests, "<tests>")
    program = _read_program(tree, namespace)
    must = program.must_assert
    tree.body = [s for s in tree.body if not _runs_all_tests(s)]
    defines = program.is_check or program.defines_tests
    run = partial(exec, recorder.compile(tests, "<tests>", tree), namespace)  # this changes the tree
    yield Unit("", None, run, must_assert=must and not defines, defines=defines)
    if program.is_check:
        yield Unit("", None, partial(_call, namespace, "check", candidate), must_assert=must)
    else:
        yield from _defined_units(program, namespace, recorder)


def _units_of_lines(tests: list[str], namespace: dict[str, object], recorder: Recorder) -> Iterator[Unit]:
    for number, line in enumerate(tests, start=1):
        tree = ast.parse(line, "<tests>")
        must = _has_assert(tree)
        yield Unit(line, number, partial(exec, recorder.compile(line, "<tests>", tree), namespace), must_assert=must)


def _read_program(tree: ast.Module, namespace: Mapping[str, object]) -> _TestProgram:
    functions = {s.name: s for s in tree.body if isinstance(s, ast.FunctionDef)}
    check = functions.get("check")
    definitions = [s for s in tree.body if isinstance(s, ast.ClassDef)]
    return _TestProgram(
        functions={
            s.name: (s.lineno, _has_assert(s))
            for s in tree.body
            if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef) and s.name.startswith("test")
        },
        classes=_test_classes(tree, definitions, namespace),
        methods={s.name: _asserting_methods(s) for s in definitions},
        must_assert=_has_assert(tree),
        is_check=check is not None and bool(check.args.args) and not _calls_check(tree),
    )


def _defined_units(program: _TestProgram, namespace: dict[str, object], recorder: Recorder) -> Iterator[Unit]:
    """Yield the test functions and methods that *program* has defined in *namespace*."""
    found, methods = program.functions, program.methods
    found_classes = [kind for name in program.classes if isinstance(kind := namespace.get(name), type)]
    cases = [kind for kind in found_classes if unittest_cases.is_test_case(kind)]
    kinds = [kind for kind in found_classes if kind not in cases]
    try:
        tests_found = fixtures.Suite(namespace).tests(found, kinds)
    except fixtures.UnknownFixture as error:
        raise BadTests(str(error)) from None
    except BaseException as error:  # parameters may come from the code, so it counts like an error in any unit
        yield Unit("", None, partial(_raise, error))
        return
    names = {kind: unittest_cases.test_names(kind) for kind in cases}
    has_test = bool(tests_found) or any(names.values())
    if program.defines_tests and program.must_assert and not has_test and recorder.executed == 0:
        yield Unit("", None, partial(_raise, RuntimeError("There is no test.")))
    for test, run in tests_found:
        if test.kind is None:
            yield Unit(test.name, found[test.function_name][0], run, found[test.function_name][1])
        else:
            yield Unit(test.name, None, run, _is_asserting(test.kind, test.function_name, methods))
    for kind in cases:
        for name in names[kind]:
            asserts = _is_asserting(kind, name, methods)
            yield Unit(f"{kind.__name__}.{name}", None, partial(unittest_cases.run_test, kind, name), asserts)


def _asserting_methods(statement: ast.ClassDef) -> set[str]:
    methods = (s for s in statement.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef))
    return {s.name for s in methods if _has_assert(s)}


def _call(namespace: dict[str, object], name: str, *args: object) -> None:
    function = namespace[name]
    if not callable(function):
        raise TypeError(f"{name} is not callable")
    function(*args)


def _raise(error: BaseException) -> None:
    raise error


def _has_assert(tree: ast.AST) -> bool:
    """Return whether there are asserts to be reached. `assert False` is not one: tests must not reach it."""
    return any(
        (isinstance(node, ast.Assert) and not _is_constant(node.test, False))
        or (is_counted(node) and not _fails_always(node))
        or _is_raises(node)
        for node in ast.walk(tree)
    )


def _is_raises(node: ast.AST) -> bool:
    """Return whether this is a call `pytest.raises(...)` or `raises(...)`."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("pytest.raises", "raises")


def _is_constant(node: ast.expr, truth: bool) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value) is truth


def _fails_always(node: ast.AST) -> bool:
    """Return whether this is `self.assertTrue(False)` or `self.assertFalse(True)`."""
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return node.func.attr in ("assertTrue", "assertFalse") and _is_constant(
        node.args[0], node.func.attr == "assertFalse"
    )


def _is_asserting(kind: type, name: str, methods: Mapping[str, set[str]]) -> bool:
    """Return whether a test method contains asserts. It may be inherited from another class of the tests.

    methods  names of the methods with asserts, by class
    """
    definer = next((base for base in kind.__mro__ if name in vars(base)), kind)
    return name in methods.get(definer.__name__, ())


def _test_classes(tree: ast.Module, definitions: Iterable[ast.ClassDef], namespace: Mapping[str, object]) -> list[str]:
    """Return the names of the classes whose methods may be tests: of pytest by their name, of unittest by a base.

    The base may have another name, be another class of the tests, or one of their setup.
    """
    renamed = {
        alias.asname
        for s in tree.body
        if isinstance(s, ast.ImportFrom)
        for alias in s.names
        if alias.name.endswith("TestCase") and alias.asname
    }
    cases = renamed | {
        name for name, kind in namespace.items() if isinstance(kind, type) and unittest_cases.is_test_case(kind)
    }
    found = []
    for definition in definitions:
        bases = [ast.unparse(base) for base in definition.bases]
        if any("TestCase" in base or base in cases for base in bases):
            cases.add(definition.name)
        elif not definition.name.startswith("Test"):
            continue
        found.append(definition.name)
    return found


def _runs_all_tests(statement: ast.stmt) -> bool:
    """Return whether this only starts a runner: `unittest.main()`, `sys.exit(pytest.main())`. Units are run anyway."""
    match statement:
        case ast.Expr(value=ast.Call() as call) | ast.Raise(exc=ast.Call() as call):
            if ast.unparse(call.func) in _EXITS and call.args and isinstance(call.args[0], ast.Call):
                call = call.args[0]
            return ast.unparse(call.func) in ("unittest.main", "pytest.main")
    return False


def _calls_check(tree: ast.Module) -> bool:
    """Return whether the text calls its own `check`."""
    calls = [s.value for s in tree.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    return any(isinstance(call.func, ast.Name) and call.func.id == "check" for call in calls)


def asserts_nothing(tests: ast.Module) -> bool:
    """Return whether the tests contain nothing that is meant to fail, such as `sys.exit(1)` or an alias of `exit`."""
    called = {node.func for node in ast.walk(tests) if isinstance(node, ast.Call)}
    for node in ast.walk(tests):
        if isinstance(node, ast.alias) and node.name == "exit" and node.asname:
            return False
        if isinstance(node, ast.expr) and node not in called and ast.unparse(node) in _EXITS:
            return False
        if isinstance(node, ast.Raise) or _is_assertion(node):
            return False
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _EXITS:
            if node.args and not _is_constant(node.args[0], False):
                return False
    return True


def _is_assertion(node: ast.AST) -> bool:
    """Return whether this is an assert, or a call that is one by its name."""
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Assert)
    name: str = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name.lower().startswith(("assert", "fail")) or name == "raises"


def check_conditions(tests: ast.Module) -> None:
    """Raise BadTests for an assert that is always true because its condition is a tuple: `assert (f() == 1, "one")`."""
    for node in ast.walk(tests):
        match node:
            case ast.Assert(test=ast.Tuple(elts=parts)):
                pass
            case ast.Call(func=ast.Attribute(attr="assertTrue"), args=[ast.Tuple(elts=parts), *_]) if is_counted(node):
                pass
            case _:
                continue
        if all(isinstance(part, ast.Starred) for part in parts):
            continue  # it may be empty
        raise BadTests(
            f"A test is true with any code, because its condition is a tuple: {ast.unparse(node)[:_MAX_SHOWN]}. "
            "Remove the parentheses around condition and message."
        )


def check_decorators(tests: ast.Module, names_of_code: Collection[str]) -> None:
    """Raise BadTests if the code decorates a test: it could ignore the failures of the test, or remove it."""
    classes = [s for s in tests.body if isinstance(s, ast.ClassDef)]
    for statement in [*tests.body, *(member for kind in classes for member in kind.body)]:
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for decorator in statement.decorator_list:
            while isinstance(decorator, ast.Call | ast.Attribute):
                decorator = decorator.func if isinstance(decorator, ast.Call) else decorator.value
            if not isinstance(decorator, ast.Name) or decorator.id not in names_of_code:
                continue
            name = statement.name
            is_test = isinstance(statement, ast.ClassDef) or name.startswith("test") or name == "check"
            if is_test and any(map(_is_assertion, ast.walk(statement))):
                raise BadTests(
                    f"{decorator.id} of the code decorates {name}, and could ignore that it fails. Decorate "
                    "a function inside of the test instead."
                )


def controlled(found: Iterable[Unit]) -> Iterator[Unit]:
    """Yield the units of a negative control, none of which passes."""
    for unit in found:
        yield unit if unit.defines else unit._replace(run=partial(_then_fail, unit.run), must_assert=False)


def _then_fail(run: Callable[[], None]) -> None:
    run()
    raise AssertionError("the negative control")


def line_in_tests(error: BaseException) -> int | None:
    """Return the last line of the tests that is in the traceback of an exception."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<tests>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
