"""Test functions and methods: one run for each set of parameters, with their fixtures set up and torn down."""

import types
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import TypeVar, cast

from .pytest_marks import SCOPES, Fixture, Mark, Parameters, Unsupported, is_skipped, marks_of, parameters_of
from .skips import SkippedTest

T = TypeVar("T")
_GENERATOR = 0x20  # flags of code objects
_COROUTINE = 0x80

BUILT_IN = frozenset(
    "tmp_path tmp_path_factory tmpdir tmpdir_factory monkeypatch capsys capfd capsysbinary capfdbinary caplog recwarn "
    "cache pytestconfig record_property doctest_namespace mocker".split()
)
"""Fixtures of pytest and pytest-mock that act on their own process."""


class UnknownFixture(Exception):
    """A test takes an argument that is neither a fixture nor a parameter."""


def argument_names(function: object) -> list[str]:
    """Return the arguments without a default, `self` included, of a function or of the one that decorators wrap."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    if not isinstance(code, types.CodeType):
        return []
    positional = list(code.co_varnames[: code.co_argcount])
    defaults = getattr(function, "__defaults__", None) or ()
    keyword_defaults = getattr(function, "__kwdefaults__", None) or {}
    keyword = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    needed = positional[: len(positional) - len(defaults)] if defaults else positional
    return needed + [name for name in keyword if name not in keyword_defaults]


Scope = str | type
"""function, module, or the class of the tests."""


class FixtureRequest:
    """The fixture `request`."""

    def __init__(self, runner: "_Run", param: tuple[object, int] | None, scope: Scope) -> None:
        self._runner, self._scope = runner, scope
        self._param = param
        self.node = runner.test
        self.function, self.cls, self.instance = runner.test.function, runner.test.kind, runner.instance

    @property
    def param(self) -> object:
        if self._param is None:
            raise AttributeError("request.param: the fixture has no params")
        return self._param[0]

    def addfinalizer(self, finalizer: Callable[[], object]) -> None:
        self._runner.suite.finalizers.setdefault(self._scope, []).append(finalizer)

    def getfixturevalue(self, name: str) -> object:
        return self._runner.value(name)


@dataclass
class Test:
    """One test with one set of parameters.

    name     as pytest shows it
    params   fixture -> (value, index) of its own parameters
    ends     scopes that end with this test
    skipped  whether a mark says that it is skipped
    """

    name: str
    function_name: str
    function: Callable[..., object]
    kind: type | None
    names: list[str]
    values: dict[str, object]
    params: dict[str, tuple[object, int]]
    ends: list[Scope] = field(default_factory=list)
    skipped: bool = False


class Suite:
    """All tests of one text, with the fixtures that it defines."""

    def __init__(self, namespace: dict[str, object]) -> None:
        self._namespace = namespace
        self._fixtures = {f.name: f for f in namespace.values() if isinstance(f, Fixture)}
        self._of_kind: dict[type, dict[str, Fixture]] = {}
        marks = namespace.get("pytestmark", [])
        self._marks = [m for m in (marks if isinstance(marks, list | tuple) else [marks]) if isinstance(m, Mark)]
        self.kept: dict[tuple[Scope, str, int], object] = {}  # values of fixtures
        self.finalizers: dict[Scope, list[Callable[[], object]]] = {}
        self.prepared: set[Scope] = set()

    def tests(self, functions: Iterable[str], kinds: Iterable[type]) -> list[tuple[Test, Callable[[], None]]]:
        """Return each test with the function that runs it, in order. Raises UnknownFixture."""
        found = [test for name in functions for test in self._expand(name, self._namespace.get(name), None)]
        for kind in kinds:
            names = dict.fromkeys(n for base in reversed(kind.__mro__) for n in vars(base) if n.startswith("test"))
            of_kind = [test for n in names for test in self._expand(n, getattr(kind, n), kind)]
            if of_kind:
                of_kind[-1].ends.append(kind)
            found += of_kind
        if found:
            found[-1].ends.append("module")
        return [(test, partial(self._run, test)) for test in found]

    def fixture(self, name: str, kind: type | None, below: Fixture | None = None) -> Fixture | None:
        """Return the fixture of this name.

        below  a fixture that takes one of its own name: return the one that it replaces
        """
        layers = [self._fixtures] if kind is None else [self._fixtures_of(kind), self._fixtures]
        found = [layer[name] for layer in layers if name in layer]
        if below is not None and below in found:
            found = found[found.index(below) + 1 :]
        return found[0] if found else None

    def _fixtures_of(self, kind: type) -> dict[str, Fixture]:
        if kind not in self._of_kind:
            members = (f for base in reversed(kind.__mro__) for f in vars(base).values())
            self._of_kind[kind] = {f.name: f for f in members if isinstance(f, Fixture)}
        return self._of_kind[kind]

    def _expand(self, name: str, function: object, kind: type | None) -> Iterator[Test]:
        """Yield the tests of a function: one for each combination of its parameters and of those of its fixtures."""
        if not callable(function):
            return
        marks = [*marks_of(function), *(marks_of(kind) if kind else []), *self._marks]
        function_name, name = name, f"{kind.__name__}.{name}" if kind else name
        if is_skipped(marks):
            yield Test(name, function_name, function, kind, [], {}, {}, skipped=True)
            return
        given = parameters_of(marks)
        direct = {argument for parameters in given for argument in parameters.names}
        arguments = self._arguments(function_name, function, kind, direct)
        wanted = [*self._requested(marks, kind), *arguments]
        closure: dict[str, Fixture] = {}
        for argument in wanted:
            self._close(argument, name, kind, direct, closure, None)
        taken = {*arguments, *(argument for fixture in closure.values() for argument in fixture_arguments(fixture))}
        if direct - taken:
            raise UnknownFixture(
                f"{name} does not take `{min(direct - taken)}`, for which pytest.mark.parametrize gives values."
            )
        wanted = sorted(dict.fromkeys(wanted), key=lambda n: -SCOPES.index(closure[n].scope) if n in closure else 0)
        sets = [*given, *(fixture.parameters for fixture in closure.values() if fixture.parameters)]
        if any(parameters.skipped for parameters in sets):
            yield Test(f"{name}[skipped]", function_name, function, kind, [], {}, {}, skipped=True)
        for text, values, params in _combinations(given, closure.values()):
            names = [argument for argument in wanted if argument not in values]
            shown = f"{name}[{text}]" if text else name
            yield Test(shown, function_name, function, kind, names, values, params)

    def _arguments(self, name: str, function: object, kind: type | None, direct: set[str]) -> list[str]:
        """Return the arguments of a test that parameters and fixtures give, without `self` and mocks."""
        arguments = argument_names(function)
        if kind is not None:
            is_static = isinstance(_member(kind, name), staticmethod | classmethod)
            if not is_static or arguments[:1] == ["cls"]:
                arguments = arguments[1:]
        if hasattr(function, "patchings"):  # its other arguments are mocks
            return [a for a in arguments if a in direct or a in BUILT_IN or self.fixture(a, kind)]
        return arguments

    def _requested(self, marks: Iterable[Mark], kind: type | None) -> list[str]:
        """Return the fixtures that a test has without an argument: those with `autouse`, and of `usefixtures`."""
        layers = {**self._fixtures, **(self._fixtures_of(kind) if kind else {})}
        automatic = [fixture.name for fixture in layers.values() if fixture.autouse]
        return automatic + [str(text) for mark in marks if mark.name == "usefixtures" for text in mark.args]

    def _close(
        self,
        argument: str,
        test: str,
        kind: type | None,
        direct: set[str],
        closure: dict[str, Fixture],
        below: Fixture | None,
    ) -> None:
        """Add a fixture, and those that it takes, to `closure`."""
        if argument in direct or argument == "request":
            return
        found = self.fixture(argument, kind, below)
        if found is None:
            if argument in BUILT_IN:
                return
            raise UnknownFixture(
                f"{test} takes `{argument}`, which is neither a fixture nor a parameter. Define it with "
                "@pytest.fixture or @pytest.mark.parametrize."
            )
        if closure.get(argument) is found:
            return
        closure.setdefault(argument, found)
        for name in fixture_arguments(found):
            self._close(name, test, kind, direct, closure, found if name == argument else None)

    def _run(self, test: Test) -> None:
        error: BaseException | None = None
        try:
            if test.skipped:
                raise SkippedTest(test.name, marked=True)
            _Run(self, test).call()
        except BaseException as raised:
            error = raised
        for scope in ["function", *test.ends]:
            self.prepared.discard(scope)
            for finalizer in reversed(self.finalizers.pop(scope, [])):
                try:
                    finalizer()
                except BaseException as raised:
                    error = error or raised
            self.kept = {key: value for key, value in self.kept.items() if key[0] != scope}
        if error is not None:
            raise error

    def once(self, scope: Scope, setup: Callable[[], object] | None, teardown: Callable[[], object] | None) -> None:
        """Call `setup` unless it was called for this scope, and `teardown` at its end."""
        if scope in self.prepared:
            return
        self.prepared.add(scope)
        if setup is not None:
            setup()
        if teardown is not None:
            self.finalizers.setdefault(scope, []).append(teardown)

    def function(self, name: str) -> Callable[..., object] | None:
        """Return a function that the tests define at module level, or None."""
        found = self._namespace.get(name)
        return found if callable(found) else None


def _combinations(
    given: Sequence[Parameters], fixtures: Iterable[Fixture]
) -> Iterator[tuple[str, dict[str, object], dict[str, tuple[object, int]]]]:
    """Yield each combination of parameters: its text, the values of arguments, and `Test.params`.

    given: the parameters of the test. fixtures: those that it uses.
    """
    own = [(fixture.name, fixture.parameters) for fixture in fixtures if fixture.parameters]
    sets = [*(parameters for _, parameters in own), *given]
    for numbers in product(*(range(len(parameters.values)) for parameters in sets)):
        values: dict[str, object] = {}
        for parameters, number in zip(given, numbers[len(own) :], strict=True):
            values.update(zip(parameters.names, parameters.values[number], strict=True))
        params = {name: (p.values[i][0], i) for (name, p), i in zip(own, numbers, strict=False)}
        yield "-".join(p.ids[i] for p, i in zip(sets, numbers, strict=True)), values, params


def fixture_arguments(fixture: Fixture) -> list[str]:
    return [name for name in argument_names(fixture.function) if name != "self"]


def _member(kind: type, name: str) -> object:
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _with_argument(
    function: Callable[..., object] | None, argument: object, own: int = 0
) -> Callable[[], object] | None:
    """Return a setup function with the argument that it may take: the function that it prepares."""
    if function is None:
        return None
    return partial(function, argument) if len(argument_names(function)) > own else function


class _Run:
    """One run of one test."""

    def __init__(self, suite: Suite, test: Test) -> None:
        self.suite, self.test = suite, test
        self.instance = test.kind() if test.kind else None

    def call(self) -> None:
        suite, test = self.suite, self.test
        suite.once("module", suite.function("setup_module"), suite.function("teardown_module"))
        if test.kind is None:
            setup = _with_argument(suite.function("setup_function"), test.function)
            suite.once("function", setup, _with_argument(suite.function("teardown_function"), test.function))
        else:
            kind = test.kind
            suite.once(kind, getattr(kind, "setup_class", None), getattr(kind, "teardown_class", None))
            setup, teardown = (getattr(self.instance, f"{what}_method", None) for what in ("setup", "teardown"))
            function = test.function
            suite.once("function", _with_argument(setup, function, 1), _with_argument(teardown, function, 1))
        found = {name: self.value(name) for name in test.names}
        arguments = set(argument_names(test.function))
        taken = {name: value for name, value in {**found, **test.values}.items() if name in arguments}
        function = getattr(self.instance, test.function_name) if test.kind else test.function
        result = function(**taken)
        if hasattr(result, "__await__"):
            import asyncio  # takes long to import, and few tests need it

            asyncio.run(cast("Coroutine[object, object, object]", result))

    def value(self, name: str, below: Fixture | None = None, requester: Fixture | None = None) -> object:
        """Return the value of a fixture; set it up unless it is already."""
        test, suite = self.test, self.suite
        if name in test.values:
            return test.values[name]
        if name == "request":
            param = test.params.get(requester.name) if requester else None
            return FixtureRequest(self, param, self._scope(requester) if requester else "function")
        found = suite.fixture(name, test.kind, below)
        if found is None:
            raise Unsupported(f"the tests use the fixture `{name}`, which acts on its own process")
        scope = self._scope(found)
        number = test.params[name][1] if name in test.params else 0
        key = scope, f"{name} {id(found)}", number
        if key not in suite.kept:
            suite.kept[key] = self._made(found, scope)
        return suite.kept[key]

    def _scope(self, fixture: Fixture) -> Scope:
        if fixture.scope == "class" and self.test.kind is not None:
            return self.test.kind
        return "function" if fixture.scope in ("function", "class") else "module"

    def _made(self, fixture: Fixture, scope: Scope) -> object:
        """Call the function of a fixture with the fixtures that it takes. Raises Unsupported for a coroutine."""
        function = getattr(fixture.function, "__func__", fixture.function)
        taken = {n: self.value(n, fixture if n == fixture.name else None, fixture) for n in fixture_arguments(fixture)}
        args = (self.instance,) if argument_names(function)[:1] == ["self"] else ()
        flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
        if flags & _COROUTINE:
            raise Unsupported(f"the fixture {fixture.name} is a coroutine")
        made = function(*args, **taken)
        return self._finished(cast("Iterator[object]", made), scope) if flags & _GENERATOR else made

    def _finished(self, generator: Iterator[T], scope: Scope) -> T:
        """Return the value that a fixture yields; the rest of the fixture runs at the end of its scope."""
        value = next(generator)

        def finish() -> None:
            for _ in generator:
                raise RuntimeError("a fixture yields more than once")

        self.suite.finalizers.setdefault(scope, []).append(finish)
        return value
