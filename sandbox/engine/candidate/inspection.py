"""Descriptions of objects of the code under test, for the judge: kind, class names, special methods, attributes."""

import builtins
import types
from collections.abc import Callable
from functools import lru_cache

from ..protocol import replies
from ..protocol.operations import specials_in
from ..protocol.values import base_of

_BUILT_IN_ATTRIBUTES = ("filename", "filename2", "name", "path")  # of built-in exceptions, besides their arguments


def kind_of(value: object) -> str:
    if isinstance(value, type):
        return "exception" if issubclass(value, BaseException) else "class"
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, types.CoroutineType):
        return "coroutine"
    return "function" if callable(value) else "object"


def specials_of(value: object, base: str = "") -> list[str]:
    """Return the special methods of an object; if it extends a built-in type, only those of its own classes."""
    kind: type = type(value)
    if isinstance(value, type):
        found = _specials(kind, "")
        return [*found, *({"class_getitem"} if hasattr(value, "__class_getitem__") else ())]
    return _specials(kind, base)


@lru_cache(maxsize=256)
def _specials(kind: type, base: str) -> list[str]:
    above = getattr(builtins, base) if base else object
    classes = [c for c in kind.__mro__ if c is not object and (not base or c.__module__ != "builtins")]
    if type in classes:
        classes.remove(type)
        return sorted({*specials_in([vars(c) for c in classes]), "call"})
    found = specials_in([vars(c) for c in classes])
    if base:
        found += [name for c in classes for name in vars(c) if not name.startswith("__") and hasattr(above, name)]
        found += ["getitem"] if any("__missing__" in vars(c) for c in classes) else []
    return found


_PLAIN: dict[str, Callable[..., object]] = {
    "dict": lambda value: dict(dict.items(value)),
    "list": lambda value: list(list.__iter__(value)),
    "tuple": lambda value: tuple(tuple.__iter__(value)),
    "set": lambda value: set(set.__iter__(value)),
    "frozenset": lambda value: frozenset(frozenset.__iter__(value)),
    "int": int.__int__,
    "float": float.__float__,
    "str": str.__str__,
    "complex": complex.__complex__,
    "bytes": bytes,
    "bytearray": bytearray,
}


def plain_value(value: object) -> object:
    """Return the value of the built-in type that an object extends, read by that type's own methods."""
    return _PLAIN[base_of(type(value))](value)


def attributes_of_error(error: BaseException) -> dict[str, object]:
    """Return the additional attributes of an exception, including those of its class and its properties."""
    known = next((kind for kind in type(error).__mro__ if kind.__module__ == "builtins"), Exception)
    found = {name: value for name in _BUILT_IN_ATTRIBUTES if (value := getattr(error, name, None)) is not None}
    found |= error.__dict__
    for name in dir(type(error)):
        if not name.startswith("_") and name not in found and not hasattr(known, name):
            try:
                value = getattr(error, name)
            except Exception:
                continue
            if not callable(value):
                found[name] = value
    return {name: value for name, value in found.items() if type(name) is str and not name.startswith("_llm_")}


def class_names(value: object) -> list[str]:
    """Return the names of a class, or of an object's class, and of its bases."""
    kind = value if isinstance(value, type) else type(value)
    return [str(base.__name__)[:80] for base in kind.__mro__][: replies.MAX_NAMES]
