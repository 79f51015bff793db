"""The `pytest` that tests import: fixtures, parameters, `raises` and `approx`, on the standard library alone.

The package collects and runs tests in its own way, and is not installed in every sandbox. So tests get this module
instead, whether or not the package is there. Names that are not here are the package's, if it is installed.
"""

import importlib
import math
import re
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from ..proxies.remote import Remote

SCOPES = ("function", "class", "module", "package", "session")


class Unsupported(BaseException):
    """The tests need something of pytest that the sandbox does not have. Tests that catch Exception do not catch it."""


class Failed(AssertionError):
    """What `pytest.raises` and `pytest.fail` raise."""


# ---- fixtures and marks ---------------------------------------------------------------------------------------------


class Parameters(NamedTuple):
    """The values of one argument, or of several, one set after another."""

    names: list[str]
    values: list[tuple[Any, ...]]
    ids: list[str]


class Fixture:
    """A function that `@pytest.fixture` decorates."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function = function
        self.name: str = options.get("name") or function.__name__
        self.scope: str = options.get("scope", "function")
        self.autouse = bool(options.get("autouse"))
        self.parameters: Parameters | None = None
        if self.scope not in SCOPES:
            raise Unsupported(f"fixture {self.name} has scope {self.scope!r}")
        if options.get("params") is not None:
            self.parameters = parameters(["request"], options["params"], options.get("ids"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"Fixture {self.name} is called directly. Name it as an argument of the test instead.")


_FIXTURE_OPTIONS = frozenset({"scope", "params", "autouse", "ids", "name"})


def fixture(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`@pytest.fixture`, with or without options."""
    unknown = options.keys() - _FIXTURE_OPTIONS
    if unknown:
        raise TypeError(f"fixture() got an unexpected keyword argument {min(unknown)!r}")
    if function is not None:
        return Fixture(function, options)
    return lambda decorated: Fixture(decorated, options)


class Set(NamedTuple):
    """What `pytest.param` makes: one set of values with an id and marks."""

    values: tuple[Any, ...]
    id: str | None
    marks: tuple[Any, ...]


def param(*values: Any, id: str | None = None, marks: Any = ()) -> Set:
    """`pytest.param`."""
    return Set(values, id, tuple(marks) if isinstance(marks, list | tuple | set) else (marks,))


def parameters(names: list[str], values: Iterable[Any], ids: Any = None) -> Parameters:
    """The sets of values for these arguments, without those that are to be skipped."""
    sets, texts = [], []
    values = list(values)
    if not values:
        raise ValueError(f"parametrize: no values for {', '.join(names)}")  # else the test would be left out
    given = list(ids) if ids is not None and not callable(ids) else None
    for number, value in enumerate(values):
        one = value if isinstance(value, Set) else None
        items = one.values if one else (value,) if len(names) == 1 else tuple(value)
        if len(items) != len(names):
            raise ValueError(f"parametrize: {len(names)} names ({', '.join(names)}), but {len(items)} values")
        if one and any(_skips(mark) for mark in one.marks):
            continue
        text = one.id if one else None
        if text is None and given is not None:
            text = str(given[number]) if number < len(given) and given[number] is not None else None
        if text is None:
            texts_of_items = (_id_of(name, item, number, ids) for name, item in zip(names, items, strict=True))
            text = "-".join(texts_of_items)
        sets.append(items)
        texts.append(text)
    repeated = {text for text in texts if texts.count(text) > 1}
    texts = [f"{text}{number}" if text in repeated else text for number, text in enumerate(texts)]
    return Parameters(names, sets, texts)


def _id_of(name: str, value: Any, number: int, make: Any) -> str:
    made = make(value) if callable(make) else None
    if made is not None:
        return str(made)
    if type(value) in (str, int, float, bool, type(None)):
        return str(value)
    if isinstance(value, type | types.FunctionType):
        return value.__name__
    return f"{name}{number}"


class Mark:
    """A mark: a decorator that adds itself to `pytestmark`, where pytest keeps marks too."""

    def __init__(self, name: str, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> None:
        self.name, self.args, self.kwargs = name, args, kwargs or {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType | type):
            target: Any = args[0]
            target.pytestmark = [*_own_marks(target), self]
            return target
        return Mark(self.name, (*self.args, *args), {**self.kwargs, **kwargs})


def _own_marks(target: Any) -> list[Mark]:
    found = vars(target).get("pytestmark", [])
    return list(found) if isinstance(found, list | tuple) else [found]


class _Marks:
    def __getattr__(self, name: str) -> Mark:
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "xfail":
            raise Unsupported("the tests use pytest.mark.xfail")
        return Mark(name)


def marks_of(target: Any) -> list[Mark]:
    """The marks of a test function, a class or a module, the one that stands nearest to it first."""
    return [mark for mark in _own_marks(target) if isinstance(mark, Mark)]


def parameters_of(marks: list[Mark]) -> list[Parameters]:
    """What the `parametrize` among marks give."""
    found = []
    for mark in marks:
        if mark.name == "parametrize":
            given = dict(zip(("argnames", "argvalues", "indirect", "ids"), mark.args, strict=False)) | mark.kwargs
            if given.get("indirect"):
                raise Unsupported("the tests use pytest.mark.parametrize with indirect")
            names = given["argnames"]
            names = [n.strip() for n in names.split(",") if n.strip()] if isinstance(names, str) else list(names)
            found.append(parameters(names, given["argvalues"], given.get("ids")))
    return found


def _skips(mark: Mark) -> bool:
    return mark.name == "skip" or (mark.name == "skipif" and any(condition is True for condition in mark.args))


def is_skipped(marks: list[Mark]) -> bool:
    """Whether a test with these marks is left out."""
    return any(map(_skips, marks))


# ---- raises ---------------------------------------------------------------------------------------------------------


class ExceptionInfo:
    """What `with pytest.raises(...) as info` gives."""

    def __init__(self) -> None:
        self._error: BaseException | None = None

    @property
    def value(self) -> BaseException:
        if self._error is None:
            raise AttributeError("The `with` block of pytest.raises has not ended.")
        return self._error

    @property
    def type(self) -> type[BaseException]:
        return type(self.value)

    @property
    def typename(self) -> str:
        return self.type.__name__

    @property
    def tb(self) -> Any:
        return self.value.__traceback__

    def match(self, pattern: str | re.Pattern[str]) -> bool:
        """Assert that the exception's text has the pattern in it."""
        text = str(self.value)
        if not re.search(pattern, text):
            raise Failed(f"Regex pattern did not match. Regex: {pattern!r}. Input: {text!r}")
        return True

    def errisinstance(self, kinds: Any) -> bool:
        return isinstance(self.value, kinds)


class Raises:
    """The context manager of `pytest.raises`. `count` is told when a check begins and when it held."""

    def __init__(self, count: Callable[[bool], None], kinds: Any, match: Any, check: Any) -> None:
        self._count, self._kinds, self._match, self._check = count, kinds, match, check
        self._info = ExceptionInfo()

    def __enter__(self) -> ExceptionInfo:
        return self._info

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        self._count(False)
        if error is None:
            raise Failed(f"DID NOT RAISE {self._kinds!r}")
        if not isinstance(error, self._kinds):
            return False
        self._info._error = error
        if self._match is not None:
            self._info.match(self._match)
        if self._check is not None and not self._check(error):
            raise Failed(f"{self._check!r} did not return True for {error!r}")
        self._count(True)
        return True


# ---- approx ---------------------------------------------------------------------------------------------------------

_NUMBERS = (int, float, complex, bool, Decimal, Fraction)


class approx:
    """`pytest.approx`: a number, or a sequence or mapping of numbers, up to a tolerance."""

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # numpy leaves comparisons to this class
    __array_priority__ = 100

    def __init__(self, expected: Any, rel: Any = None, abs: Any = None, nan_ok: bool = False) -> None:
        self._expected, self._rel, self._abs, self._nan_ok = expected, rel, abs, nan_ok
        for name, value in (("rel", rel), ("abs", abs)):
            if value is not None and not value >= 0:
                raise ValueError(f"{name} of approx must not be negative: {value}")

    def __eq__(self, actual: object) -> bool:
        return self._near(_plain(actual), _plain(self._expected))

    def __ne__(self, actual: object) -> bool:
        return not self == actual

    def __bool__(self) -> bool:
        raise AssertionError("approx() is not supported in a boolean context. Did you mean: assert a == approx(b)?")

    def __repr__(self) -> str:
        return f"approx({self._expected!r})"

    def _near(self, actual: Any, expected: Any) -> bool:
        if isinstance(expected, dict):
            return (
                isinstance(actual, dict)
                and actual.keys() == expected.keys()
                and all(self._near(_plain(actual[key]), _plain(expected[key])) for key in expected)
            )
        if isinstance(expected, list | tuple):
            return (
                type(actual) in (list, tuple)
                and len(actual) == len(expected)
                and all(self._near(_plain(a), _plain(e)) for a, e in zip(actual, expected, strict=True))
            )
        if type(expected) not in _NUMBERS or type(actual) not in _NUMBERS or isinstance(expected, bool):
            return type(actual) is not Remote and bool(actual == expected)
        return self._is_close(actual, expected)

    def _is_close(self, actual: Any, expected: Any) -> bool:
        if actual == expected:
            return True
        if actual != actual or expected != expected:
            return self._nan_ok and actual != actual and expected != expected
        if type(expected) is not complex and math.isinf(expected):
            return False
        exact = Decimal if Decimal in (type(expected), type(actual)) else None
        if exact and not all(type(v) in (int, bool, Decimal) for v in (actual, expected)):
            actual, expected, exact = float(actual), float(expected), None
        size = abs(expected)
        absolute = self._abs if self._abs is not None else 1e-12
        relative = self._rel if self._rel is not None else (1e-6 if self._abs is None else 0)
        if exact:
            absolute, relative = Decimal(str(absolute)), Decimal(str(relative))
        return bool(abs(actual - expected) <= max(relative * size, absolute))


def _plain(value: Any) -> Any:
    """A value of exactly a built-in type, where there is one for it."""
    if isinstance(value, Remote):
        return value._llm_plain() if value._llm_base else value
    if type(value).__module__ == "numpy" and callable(getattr(value, "tolist", None)):
        return value.tolist()
    return value


# ---- the module -----------------------------------------------------------------------------------------------------


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(_package(), name, None)
        if found is None:
            raise Unsupported(f"the tests use pytest.{name}, which the sandbox does not have")
        return found


_KEPT_OUT = frozenset({"skip", "xfail", "exit"})  # they end a test by exceptions that only pytest's own runner knows


def _package() -> Any:
    """The installed package, or nothing."""
    ours = sys.modules.pop("pytest", None)
    try:
        found = importlib.import_module("pytest")
    except ImportError:
        return None
    finally:
        if ours is not None:
            sys.modules["pytest"] = ours
    return types.SimpleNamespace(**{name: value for name, value in vars(found).items() if name not in _KEPT_OUT})


def install(count: Callable[[bool], None]) -> None:
    """Make `import pytest` give the names above. `count` is told of each check by `raises`, see `Raises`."""

    def raises(expected: Any, *args: Any, match: Any = None, check: Any = None, **kwargs: Any) -> Any:
        context = Raises(count, expected, match, check)
        if not args:
            return context
        function, *rest = args
        with context as info:
            function(*rest, **kwargs)
        return info

    def fail(reason: str = "", pytrace: bool = True) -> None:
        raise Failed(reason)

    module = _Module("pytest", "Fixtures, parameters, `raises` and `approx`, as pytest has them.")
    own: dict[str, Any] = {"fixture": fixture, "param": param, "mark": _Marks(), "approx": approx}
    module.__dict__.update(own, raises=raises, fail=fail, ExceptionInfo=ExceptionInfo)
    sys.modules["pytest"] = module


def uses_pytest(*sources: str | Sequence[str]) -> bool:
    """Whether any of these texts mentions pytest."""
    return any("pytest" in text for source in sources for text in ([source] if isinstance(source, str) else source))
