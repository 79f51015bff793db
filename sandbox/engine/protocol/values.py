"""What crosses by name or by attributes: types of the standard library, instances of classes that both sides define."""

import builtins
import collections
import enum
import importlib
import sys
import types
from collections.abc import Callable
from functools import cache
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
    attributes = decode(data)
    if type(attributes) is not dict:
        raise TypeError("attributes that are no mapping")
    instance = blank(name, attributes, classes)
    fill(instance, attributes, classes)
    return instance


def blank(name: str, attributes: dict[str, Any], classes: dict[str, Any]) -> Any:
    """An instance of a shared class without attributes; the member itself of an enumeration."""
    kind = classes[name]
    return kind[attributes[_MEMBER]] if issubclass(kind, enum.Enum) else object.__new__(kind)


def fill(instance: Any, attributes: dict[str, Any], classes: dict[str, Any]) -> None:
    """Set attributes of an instance of a shared class, without asking the class's own code."""
    kind = type(instance)
    if classes.get(kind.__name__) is not kind:
        raise TypeError("attributes of an object that is not shared")
    if isinstance(instance, enum.Enum):
        return
    for attribute, value in attributes.items():
        if not _is_behaviour(kind, attribute):
            object.__setattr__(instance, attribute, value)


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


def crosses_by_value(kind: Any) -> bool:
    """Whether the instances of a class of the prompt are their attributes and nothing else."""
    if not isinstance(kind, type):
        return False
    return issubclass(kind, enum.Enum) or all(base.__module__ != "builtins" for base in kind.__mro__[:-1])


# ---- types and functions of the standard library --------------------------------------------------------------------

# Types that the code may give to the tests by name. None of them does anything with its arguments but keep them.
_KNOWN = {
    **dict.fromkeys(
        "bool int float complex str bytes bytearray list tuple dict set frozenset object range".split(), ""
    ),
    **dict.fromkeys(("Counter", "OrderedDict", "defaultdict", "deque"), "collections"),
    **dict.fromkeys(("date", "datetime", "time", "timedelta"), "datetime"),
    "Decimal": "decimal",
    "Fraction": "fractions",
    "UUID": "uuid",
    "NoneType": "types",
}


def library_name(value: Any) -> str:
    """The name of a type or function of the standard library, "module:name" or that of a built-in; else nothing."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if type(name) is not str or "<" in name:
        return ""
    if getattr(builtins, name, None) is value:
        return name
    if value is type(None):
        return "types:NoneType"
    module = getattr(value, "__module__", None) or getattr(getattr(value, "__objclass__", None), "__module__", None)
    if type(module) is not str or module.split(".")[0] not in sys.stdlib_module_names:
        return ""
    for path in (module, module.lstrip("_")):
        try:
            found: Any = sys.modules[path]
            for part in name.split("."):
                found = getattr(found, part)
        except (KeyError, AttributeError):
            continue
        if found is value:
            return f"{path}:{name}"
    return ""


def from_library(name: str) -> Any:
    """What `library_name` named."""
    module, _, path = name.rpartition(":")
    found: Any = importlib.import_module(module) if module else builtins
    for part in path.split("."):
        found = getattr(found, part)
    return found


def known_name(kind: Any) -> str:
    """The name by which the code may give a type to the tests; else nothing."""
    name = kind.__name__ if isinstance(kind, type) else ""
    module = _KNOWN.get(name)
    if module is None:
        return ""
    return name if getattr(sys.modules.get(module or "builtins"), name, None) is kind else ""


def known_type(name: Any) -> Any:
    """The type of a `known_name`. Raises KeyError."""
    module = _KNOWN[name]
    return getattr(importlib.import_module(module) if module else builtins, name)


# ---- named tuples ---------------------------------------------------------------------------------------------------


def is_named_tuple(value: Any) -> bool:
    """Whether this is a tuple with names and nothing else."""
    kind: Any = type(value)
    fields = getattr(kind, "_fields", None)
    if kind.__mro__[1:] != (tuple, object) or type(fields) is not tuple:
        return False
    return adds_nothing(kind) and all(type(name) is str for name in fields)


def named_tuple(content: Any, decode: Callable[[Any], Any]) -> Any:
    """The named tuple that [name, fields, encoded items] stands for."""
    name, fields, items = content
    kind = _tuple_class(str(name), tuple(map(str, fields)))
    return kind._make([decode(item) for item in items])


@cache
def _tuple_class(name: str, fields: tuple[str, ...]) -> Any:
    return collections.namedtuple(name, fields, rename=True)


# ---- classes that extend built-in types -----------------------------------------------------------------------------

BASES = (str, int, float, complex, bytes, bytearray, list, tuple, dict, set, frozenset)
_ADDS_NOTHING = frozenset(
    "__module__ __doc__ __qualname__ __slots__ __dict__ __weakref__ __annotations__ __firstlineno__ __init__ __new__ "
    "__static_attributes__ __orig_bases__ __parameters__ __type_params__ __getnewargs__ __match_args__ __repr__ "
    "_fields _field_defaults _make _replace _asdict __replace__".split()
)


def base_of(kind: Any) -> str:
    """The built-in type that a class extends; else nothing."""
    return next((base.__name__ for base in BASES if issubclass(kind, base)), "")


@cache
def adds_nothing(kind: Any) -> bool:
    """Whether a class that extends a built-in type has neither methods nor members of its own."""
    own = [base for base in kind.__mro__ if base.__module__ != "builtins"]
    fields = getattr(kind, "_fields", ())
    return all(vars(base).keys() <= _ADDS_NOTHING | set(fields) for base in own)
