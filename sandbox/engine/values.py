"""Instances of classes that both judge and code define, from the same prompt: they cross as their attributes."""

import enum
import types
from collections.abc import Callable
from typing import Any

_MEMBER = "_member_"


def attributes_of(value: Any, classes: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """(class name, attributes) of an instance of one of `classes`; None for everything else."""
    kind = type(value)
    name = kind.__name__
    if classes.get(name) is not kind:
        return None
    if isinstance(value, enum.Enum):
        return name, {_MEMBER: value.name}
    slots = [slot for base in kind.__mro__ for slot in _slots(base) if hasattr(value, slot)]
    return name, {slot: getattr(value, slot) for slot in slots} | getattr(value, "__dict__", {})


def _slots(kind: type) -> list[str]:
    slots = kind.__dict__.get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def rebuild(content: Any, classes: dict[str, Any], decode: Callable[[Any], Any]) -> Any:
    """The instance that (class name, encoded attributes) stands for, made of this process's own class.

    The class's own code is not asked, so the other side decides no more than the attributes' values.
    Raises KeyError for a class that is not shared.
    """
    name, data = content
    kind = classes[name]
    attributes = decode(data)
    if type(attributes) is not dict:
        raise TypeError("attributes that are no mapping")
    if issubclass(kind, enum.Enum):
        return kind[attributes[_MEMBER]]
    instance = object.__new__(kind)
    for attribute, value in attributes.items():
        if not _is_behaviour(kind, attribute):
            object.__setattr__(instance, attribute, value)
    return instance


def _is_behaviour(kind: type, name: str) -> bool:
    """Whether the class computes something under that name, which no attribute may take the place of.

    Everything with `__get__` does, such as methods, properties and cached properties. Slots hold data, and so do other
    attributes of a class, which are defaults for those of its instances, unless they are constants by their name.
    """
    if name.startswith("__"):
        return True
    found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    if isinstance(found, types.MemberDescriptorType):
        return False
    return callable(found) or hasattr(type(found), "__get__") or (found is not None and name.isupper())
