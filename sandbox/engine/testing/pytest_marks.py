"""Fixtures, parameters and marks of pytest, as far as the sandbox supports them."""

import types
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, cast

SCOPES = ("function", "class", "module", "package", "session")


class Unsupported(BaseException):
    """The tests need a part of pytest that the sandbox does not have. `except Exception` does not catch it."""


class Parameters(NamedTuple):
    """Sets of values for one or more arguments, with an id each.

    skipped  number of further sets, which are marked to be skipped
    """

    names: list[str]
    values: list[tuple[object, ...]]
    ids: list[str]
    skipped: int


class Fixture:
    """A function that `@pytest.fixture` decorates."""

    def __init__(self, function: Callable[..., object], options: Mapping[str, object]) -> None:
        self.function = function
        self.name = str(options.get("name") or getattr(function, "__name__", ""))
        self.scope = str(options.get("scope", "function"))
        self.autouse = bool(options.get("autouse"))
        self.parameters: Parameters | None = None
        if self.scope not in SCOPES:
            raise Unsupported(f"fixture {self.name} has scope {self.scope!r}")
        params = options.get("params")
        if params is not None:
            self.parameters = parameters(["request"], cast("Iterable[object]", params), options.get("ids"))

    def __call__(self, *args: object, **kwargs: object) -> object:
        raise TypeError(f"Fixture {self.name} is called directly. Name it as an argument of the test instead.")


_FIXTURE_OPTIONS = frozenset({"scope", "params", "autouse", "ids", "name"})


def fixture(
    function: Callable[..., object] | None = None, **options: object
) -> Fixture | Callable[[Callable[..., object]], Fixture]:
    """`@pytest.fixture`, with or without options."""
    unknown = options.keys() - _FIXTURE_OPTIONS
    if unknown:
        raise TypeError(f"fixture() got an unexpected keyword argument {min(unknown)!r}")
    if function is not None:
        return Fixture(function, options)
    return lambda decorated: Fixture(decorated, options)


class ParameterSet(NamedTuple):
    """Result of `pytest.param`: one set of values with an id and marks."""

    values: tuple[object, ...]
    id: str | None
    marks: tuple[object, ...]


def param(*values: object, id: str | None = None, marks: object = ()) -> ParameterSet:
    """`pytest.param`."""
    return ParameterSet(values, id, tuple(marks) if isinstance(marks, list | tuple | set) else (marks,))


def parameters(names: list[str], values: Iterable[object], ids: object = None) -> Parameters:
    """Return the sets of values for these arguments."""
    sets: list[tuple[object, ...]] = []
    texts: list[str] = []
    values = list(values)
    if not values:
        raise ValueError(f"parametrize: no values for {', '.join(names)}")  # else the test would be left out
    given = list(cast("Iterable[object]", ids)) if ids is not None and not callable(ids) else None
    for number, value in enumerate(values):
        one = value if isinstance(value, ParameterSet) else None
        items = one.values if one else (value,) if len(names) == 1 else tuple(cast("Iterable[object]", value))
        if len(items) != len(names):
            raise ValueError(f"parametrize: {len(names)} names ({', '.join(names)}), but {len(items)} values")
        if one and any(isinstance(mark, Mark) and _skips(mark) for mark in one.marks):
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
    return Parameters(names, sets, texts, len(values) - len(sets))


def _id_of(name: str, value: object, number: int, make: object) -> str:
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

    def __init__(self, name: str, args: tuple[object, ...] = (), kwargs: Mapping[str, object] | None = None) -> None:
        self.name, self.args, self.kwargs = name, args, kwargs or {}

    def __call__(self, *args: object, **kwargs: object) -> object:
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType | type):
            target = args[0]
            setattr(target, "pytestmark", [*_own_marks(target), self])  # noqa: B010
            return target
        return Mark(self.name, (*self.args, *args), {**self.kwargs, **kwargs})


def _own_marks(target: object) -> list[object]:
    found = vars(target).get("pytestmark", [])
    return list(found) if isinstance(found, list | tuple) else [found]


class Marks:
    """`pytest.mark`."""

    def __getattr__(self, name: str) -> Mark:
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "xfail":
            raise Unsupported("the tests use pytest.mark.xfail")
        return Mark(name)


def marks_of(target: object) -> list[Mark]:
    """Return the marks of a test function, a class or a module, the closest first."""
    return [mark for mark in _own_marks(target) if isinstance(mark, Mark)]


def parameters_of(marks: list[Mark]) -> list[Parameters]:
    """Return the parameters that the `parametrize` among marks give."""
    found = []
    for mark in marks:
        if mark.name == "parametrize":
            given: dict[str, object] = dict(zip(_PARAMETRIZE, mark.args, strict=False)) | dict(mark.kwargs)
            if given.get("indirect"):
                raise Unsupported("the tests use pytest.mark.parametrize with indirect")
            found.append(_parameters_given(given["argnames"], given["argvalues"], given.get("ids")))
    return found


_PARAMETRIZE = ("argnames", "argvalues", "indirect", "ids")


def _parameters_given(argnames: object, argvalues: object, ids: object) -> Parameters:
    if isinstance(argnames, str):
        names = [name.strip() for name in argnames.split(",") if name.strip()]
    else:
        names = list(map(str, cast("Iterable[object]", argnames)))
    return parameters(names, cast("Iterable[object]", argvalues), ids)


def _skips(mark: Mark) -> bool:
    return mark.name == "skip" or (mark.name == "skipif" and any(condition is True for condition in mark.args))


def is_skipped(marks: list[Mark]) -> bool:
    """Return whether a test with these marks is skipped."""
    return any(map(_skips, marks))
