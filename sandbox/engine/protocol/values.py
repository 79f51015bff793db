"""Values encoded by name or attributes: standard library types, and instances of classes that both processes define."""

import builtins
import collections
import enum
import importlib
import sys
import types
from collections.abc import Callable, Mapping
from functools import cache

from . import codec

_MEMBER = "_member_"


Classes = Mapping[str, type]
"""Classes of the prompt that both processes define, by name."""


def attributes_of(value: object, classes: Classes) -> tuple[str, dict[str, object]] | None:
    """Return (class name, attributes) of an instance of one of `classes`; None for everything else."""
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


def rebuild(content: object, classes: Classes, decode: Callable[[object], object]) -> object:
    """Return the instance that (class name, encoded attributes) describes, of this process's own class.

    No code of the class is called, so the other process decides only the values of the attributes.
    Raises KeyError for a class that is not shared.
    """
    name, data = codec.of_type(list, content)
    attributes = codec.of_type(dict, decode(data))
    instance = blank(name, attributes, classes)
    fill(instance, attributes, classes)
    return instance


def blank(name: str, attributes: Mapping[str, object], classes: Classes) -> object:
    """Return an instance of a shared class without attributes; for an enumeration, the member."""
    kind = classes[name]
    return kind[str(attributes[_MEMBER])] if issubclass(kind, enum.Enum) else object.__new__(kind)


def fill(instance: object, attributes: Mapping[str, object], classes: Classes) -> None:
    """Set attributes of an instance of a shared class, without calling code of the class."""
    kind = type(instance)
    if classes.get(kind.__name__) is not kind:
        raise TypeError("attributes of an object that is not shared")
    if isinstance(instance, enum.Enum):
        return
    for attribute, value in attributes.items():
        if not _is_behaviour(kind, attribute):
            object.__setattr__(instance, attribute, value)


def _is_behaviour(kind: type, name: str) -> bool:
    """Return whether the class computes the attribute of this name, so that a value must not replace it.

    Everything with `__get__` is computed, such as methods, properties and cached properties. Slots contain data. Other
    attributes of a class are defaults for those of its instances, unless their names are those of constants.
    """
    if name.startswith("__"):
        return True
    found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    if isinstance(found, types.MemberDescriptorType):
        return False
    return callable(found) or hasattr(type(found), "__get__") or (found is not None and name.isupper())


def crosses_by_value(kind: type) -> bool:
    """Return whether instances of this class of the prompt are described completely by their attributes."""
    return issubclass(kind, enum.Enum) or all(base.__module__ != "builtins" for base in kind.__mro__[:-1])


# ---- types and functions of the standard library --------------------------------------------------------------------

# Types that the code may pass to the tests by name. They do nothing with their arguments except store them.
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


def library_name(value: object) -> str:
    """Return "module:name" of a type or function of the standard library, or the name of a built-in; else ""."""
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
            found: object = sys.modules[path]
            for part in name.split("."):
                found = getattr(found, part)
        except (KeyError, AttributeError):
            continue
        if found is value:
            return f"{path}:{name}"
    return ""


def from_library(name: str) -> object:
    """Return the object of a `library_name`."""
    module, _, path = name.rpartition(":")
    found: object = importlib.import_module(module) if module else builtins
    for part in path.split("."):
        found = getattr(found, part)
    return found


def known_name(kind: object) -> str:
    """Return the name by which the code may pass a type to the tests; else ""."""
    name = kind.__name__ if isinstance(kind, type) else ""
    module = _KNOWN.get(name)
    if module is None:
        return ""
    return name if getattr(sys.modules.get(module or "builtins"), name, None) is kind else ""


def known_type(name: object) -> object:
    """Return the type of a `known_name`. Raises KeyError."""
    text = codec.of_type(str, name)
    module = _KNOWN[text]
    return getattr(importlib.import_module(module) if module else builtins, text)


# ---- named tuples ---------------------------------------------------------------------------------------------------


def is_named_tuple(value: object) -> bool:
    """Return whether this is a tuple with names and nothing else."""
    kind: type = type(value)
    fields = getattr(kind, "_fields", None)
    if kind.__mro__[1:] != (tuple, object) or type(fields) is not tuple:
        return False
    return adds_nothing(kind) and all(type(name) is str for name in fields)


def named_tuple(content: object, decode: Callable[[object], object]) -> object:
    """Return the named tuple that [name, fields, encoded items] describes."""
    name, fields, items = codec.of_type(list, content)
    kind = _tuple_class(str(name), tuple(map(str, fields)))
    return kind(*[decode(item) for item in items])


@cache
def _tuple_class(name: str, fields: tuple[str, ...]) -> Callable[..., object]:
    return collections.namedtuple(name, fields, rename=True)


# ---- classes that extend built-in types -----------------------------------------------------------------------------

BASES = (str, int, float, complex, bytes, bytearray, list, tuple, dict, set, frozenset)
_ADDS_NOTHING = frozenset(
    "__module__ __doc__ __qualname__ __slots__ __dict__ __weakref__ __annotations__ __firstlineno__ __init__ __new__ "
    "__static_attributes__ __orig_bases__ __parameters__ __type_params__ __getnewargs__ __match_args__ __repr__ "
    "_fields _field_defaults _make _replace _asdict __replace__".split()
)


def base_of(kind: type) -> str:
    """Return the name of the built-in type that a class extends; else ""."""
    return next((base.__name__ for base in BASES if issubclass(kind, base)), "")


def adds_nothing(kind: type) -> bool:
    """Return whether a class that extends a built-in type has no methods and no members of its own."""
    return _adds_nothing(kind)


@cache
def _adds_nothing(kind: type) -> bool:
    own = [base for base in kind.__mro__ if base.__module__ != "builtins"]
    fields = getattr(kind, "_fields", ())
    return all(vars(base).keys() <= _ADDS_NOTHING | set(fields) for base in own)
