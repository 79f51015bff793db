"""References in the candidate's process to objects and functions of the tests. The judge carries out each operation."""

from collections.abc import Callable
from functools import cache
from typing import Protocol


class UseObject(Protocol):
    """Function that asks the judge to apply an operation to one of its objects, and returns the result."""

    def __call__(self, number: int, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> object: ...


class JudgeReference:
    """A reference to a function or an object of the tests."""

    _llm_use: UseObject
    _llm_number: int
    _llm_names: tuple[str, ...] = ()

    def __init__(self, use: UseObject, number: int) -> None:
        self.__dict__["_llm_use"] = use
        self.__dict__["_llm_number"] = number

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name not in ("__name__", "__qualname__", "__doc__", "__module__"):
            raise AttributeError(name)
        return self._llm_use(self._llm_number, "getattr", (name,), {})


class JudgeFunction(JudgeReference):
    """A function of the tests."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._llm_use(self._llm_number, "call", args, kwargs)

    def __get__(self, instance: object, owner: object = None) -> object:
        return self


class JudgeObject(JudgeReference):
    """An object of the tests."""

    def __setattr__(self, name: str, value: object) -> None:
        self._llm_use(self._llm_number, "setattr", (name, value), {})

    def __delattr__(self, name: str) -> None:
        self._llm_use(self._llm_number, "delattr", (name,), {})

    def __repr__(self) -> str:
        return str(self._llm_use(self._llm_number, "repr", (), {}))

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, JudgeReference) and self._llm_names[0] in instance._llm_names


def _method(name: str) -> Callable[..., object]:
    def method(self: JudgeReference, *args: object, **kwargs: object) -> object:
        return self._llm_use(self._llm_number, name, args, kwargs)

    return method


def _leave(self: JudgeReference, kind: object, error: object, trace: object) -> None:
    self._llm_use(self._llm_number, "leave", (), {})


@cache
def judge_object_class(names: tuple[str, ...], specials: tuple[str, ...]) -> type[JudgeReference]:
    """Return the class of references to objects of a class of the tests, with that class's special methods."""
    methods = {f"__{name}__": _method(name) for name in specials if name not in ("no_hash", "exit")}
    if "exit" in specials:
        methods["__exit__"] = _leave
    namespace: dict[str, object] = {**methods, "_llm_names": names}
    if "no_hash" in specials:
        namespace["__hash__"] = None
    return type(names[0], (JudgeObject,), namespace)
