"""The candidate's side of objects and functions of the tests: each use is asked of the judge."""

from collections.abc import Callable
from functools import cache
from typing import Any

Ask = Callable[[int, str, tuple[Any, ...], dict[str, Any]], Any]


class Borrowed:
    """A function of the tests; subclasses stand for objects, with the special methods that those have."""

    _llm_names: tuple[str, ...] = ()

    def __init__(self, ask: Ask, number: int) -> None:
        self.__dict__["_llm_ask"] = ask
        self.__dict__["_llm_number"] = number

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__name__", "__qualname__", "__doc__", "__module__"):
            raise AttributeError(name)
        return self._llm_ask(self._llm_number, "getattr", (name,), {})


class BorrowedFunction(Borrowed):
    """A function of the tests."""

    def __init__(self, ask: Ask, number: int) -> None:
        super().__init__(ask, number)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._llm_ask(self._llm_number, "call", args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self


class BorrowedObject(Borrowed):
    """An object of the tests."""

    def __setattr__(self, name: str, value: Any) -> None:
        self._llm_ask(self._llm_number, "setattr", (name, value), {})

    def __delattr__(self, name: str) -> None:
        self._llm_ask(self._llm_number, "delattr", (name,), {})

    def __repr__(self) -> str:
        return str(self._llm_ask(self._llm_number, "repr", (), {}))

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, Borrowed) and self._llm_names[0] in instance._llm_names


def _method(name: str) -> Callable[..., Any]:
    def method(self: Borrowed, *args: Any, **kwargs: Any) -> Any:
        return self._llm_ask(self._llm_number, name, args, kwargs)

    return method


def _leave(self: Borrowed, kind: Any, error: Any, trace: Any) -> Any:
    self._llm_ask(self._llm_number, "leave", (), {})


@cache
def borrowed_class(names: tuple[str, ...], specials: tuple[str, ...]) -> type[Borrowed]:
    """The class of stand-ins for objects of a class of the tests."""
    methods = {f"__{name}__": _method(name) for name in specials if name not in ("no_hash", "exit")}
    if "exit" in specials:
        methods["__exit__"] = _leave
    namespace: dict[str, Any] = {**methods, "_llm_names": names}
    if "no_hash" in specials:
        namespace["__hash__"] = None
    return type(names[0], (BorrowedObject,), namespace)
