"""Values on the wire: tagged JSON of exact built-in types, never pickle.

None, bool, text, 64-bit integers, finite floats and lists are themselves. Everything else is an object with one key:

    t tuple   s set   f frozenset   m mapping with text keys   d other mapping, as pairs   i integer, hexadecimal
    n nan, inf, -inf   b bytes   y bytearray   c complex   x [type, text] of the standard library
    o what cannot cross, its type's name only; it equals nothing

Subclasses are flattened to the built-in they extend by that built-in's own methods, so nothing that the sender
overrides takes part. Decoding builds only what is listed here, whatever the bytes say.
"""

import importlib
import math
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from . import compact_json

MAX_DEPTH = 150
_SAFE_INT = 1 << 63
_MAX_LIBRARY_TEXT = 8192
_CROWDED = 16  # members with one and the same hash from which a set or mapping is taken for an attack

T = TypeVar("T")
Export = Callable[[Any], dict[str, Any] | None]
Restore = Callable[[str, Any], Any]


class CodecError(ValueError):
    """The bytes are not what an honest encoder writes."""


class Opaque:
    """A value that could not cross. It equals nothing, itself included."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{self.name} object>"


def has_opaque(value: Any) -> bool:
    """Whether a decoded value is, or holds, something that could not cross."""
    if isinstance(value, list | tuple | set | frozenset | deque):
        return any(map(has_opaque, value))
    if isinstance(value, dict):
        return any(has_opaque(key) or has_opaque(item) for key, item in value.items())
    if type(value).__name__ in _WITH_ITEMS:
        return any(map(has_opaque, _WITH_ITEMS[type(value).__name__](value)))
    return isinstance(value, Opaque)


# ---- encoding -------------------------------------------------------------------------------------------------------


def _encode_scalar(value: Any) -> Any:
    """Numbers and texts of a built-in's subclass too. NotImplemented for everything else."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        number = int.__index__(value)
        return number if -_SAFE_INT <= number < _SAFE_INT else {"i": format(number, "x")}
    if isinstance(value, float):
        real = float.__float__(value)
        if math.isfinite(real):
            return real
        return {"n": "nan" if real != real else "inf" if real > 0 else "-inf"}
    if isinstance(value, complex):
        exact = complex.__complex__(value)
        return {"c": [_encode_scalar(exact.real), _encode_scalar(exact.imag)]}
    if isinstance(value, bytes):
        return {"b": bytes.hex(value)}
    if isinstance(value, bytearray):
        return {"y": bytearray.hex(value)}
    return NotImplemented


def _encode_library(value: Any, export: Export | None, depth: int) -> Any:
    """The standard library's value types, exact types only. NotImplemented for everything else."""
    kind = type(value)
    name = kind.__name__
    # Imported only where code already uses them: a zygote without them forks faster.
    module = sys.modules.get(_LIBRARY[name][0]) if name in _LIBRARY else None
    if module is None or getattr(module, _NAMES.get(name, name), None) is not kind:
        return NotImplemented
    if name in _WITH_ITEMS:
        return {"x": [name, [encode(item, export, depth) for item in _WITH_ITEMS[name](value)]]}
    if name == "range":
        return {"x": [name, f"{value.start:x} {value.stop:x} {value.step:x}"]}
    if name == "Fraction":
        return {"x": [name, f"{value.numerator:x} {value.denominator:x}"]}
    if name == "timedelta":
        return {"x": [name, f"{value.days} {value.seconds} {value.microseconds}"]}
    if name in ("date", "datetime", "time"):
        return {"x": [name, value.isoformat()]}
    return {"x": [name, str(value)]}


def _from_numpy(value: Any) -> Any:
    """The built-in equivalent of a numpy scalar or array; NotImplemented for everything else."""
    kind = type(value)
    if getattr(kind, "__module__", None) == "numpy" and callable(getattr(kind, "tolist", None)):
        return value.tolist()
    return NotImplemented


def encode(value: Any, export: Export | None = None, depth: int = 0) -> Any:
    """JSON for any value. `export` may give a tagged object for what is not a built-in; None makes it opaque."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int and -_SAFE_INT <= value < _SAFE_INT:
        return value
    if depth > MAX_DEPTH:
        return {"o": "too deeply nested"}
    deeper = depth + 1
    if kind not in _EXACT:
        library = _encode_library(value, export, deeper)
        if library is not NotImplemented:
            return library
        plain = _from_numpy(value)
        if plain is not NotImplemented:
            return encode(plain, export, deeper)
        tagged = export(value) if export else None
        if tagged is not None:
            return tagged
    if isinstance(value, list):
        return [encode(item, export, deeper) for item in list.__iter__(value)]
    if isinstance(value, tuple):
        return {"t": [encode(item, export, deeper) for item in tuple.__iter__(value)]}
    if isinstance(value, dict):
        return _encode_mapping(value, export, deeper)
    scalar = _encode_scalar(value)
    if scalar is not NotImplemented:
        return scalar
    if isinstance(value, set):
        return {"s": [encode(item, export, deeper) for item in set.__iter__(value)]}
    if isinstance(value, frozenset):
        return {"f": [encode(item, export, deeper) for item in frozenset.__iter__(value)]}
    name = type.__getattribute__(kind, "__name__")
    return {"o": str.__str__(name)[:80] if isinstance(name, str) else "unknown"}


def _encode_mapping(value: dict[Any, Any], export: Export | None, depth: int) -> Any:
    items = list(dict.items(value))
    if all(type(key) is str for key, _ in items):
        return {"m": {key: encode(item, export, depth) for key, item in items}}
    return {"d": [[encode(key, export, depth), encode(item, export, depth)] for key, item in items]}


# ---- decoding -------------------------------------------------------------------------------------------------------


_EXACT = frozenset({list, tuple, dict, str, int, float, complex, bytes, bytearray, set, frozenset})


def _numbers(kind: Any, text: str) -> Any:
    return kind(*(int(part, 16) for part in text.split()))


def _timezone(kind: Any, items: Any) -> Any:
    offset, name = items
    return kind(offset, name) if name else kind(offset)


# Type: the module that has it, and how its text becomes an object of it.
_LIBRARY: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "Decimal": ("decimal", lambda kind, text: kind(text)),
    "UUID": ("uuid", lambda kind, text: kind(text)),
    "Fraction": ("fractions", _numbers),
    "datetime": ("datetime", lambda kind, text: kind.fromisoformat(text)),
    "date": ("datetime", lambda kind, text: kind.fromisoformat(text)),
    "time": ("datetime", lambda kind, text: kind.fromisoformat(text)),
    "timedelta": ("datetime", lambda kind, text: kind(*map(int, text.split()))),
    "timezone": ("datetime", _timezone),
    "range": ("builtins", _numbers),
    "ellipsis": ("types", lambda kind, text: ...),
    "NotImplementedType": ("types", lambda kind, text: NotImplemented),
    "PurePosixPath": ("pathlib", lambda kind, text: kind(text)),
    "PosixPath": ("pathlib", lambda kind, text: kind(text)),
    "slice": ("builtins", lambda kind, items: kind(*items)),
    "deque": ("collections", lambda kind, items: kind(items[1:], items[0])),
    "Counter": ("collections", lambda kind, items: kind(_pairs(items))),
    "OrderedDict": ("collections", lambda kind, items: kind(_pairs(items))),
    "defaultdict": ("collections", lambda kind, items: kind(_factory(items[0]), _pairs(items[1:]))),
    "dict_keys": ("_collections_abc", lambda kind, items: _pairs([(item, None) for item in items]).keys()),
    "dict_values": ("_collections_abc", lambda kind, items: dict(enumerate(items)).values()),
    "dict_items": ("_collections_abc", lambda kind, items: _pairs(items).items()),
    "mappingproxy": ("types", lambda kind, items: kind(_pairs(items))),
    "ChainMap": ("collections", lambda kind, items: kind(*items)),
    "SimpleNamespace": ("types", lambda kind, items: kind(**dict(items))),
    "Pattern": ("re", lambda kind, items: importlib.import_module("re").compile(*items)),
    "array": ("array", lambda kind, items: kind(*items)),
}
_NAMES = {"ellipsis": "EllipsisType", "mappingproxy": "MappingProxyType"}  # by which the module has the type
_WITH_ITEMS: dict[str, Callable[[Any], Any]] = {
    "timezone": lambda value: (value.utcoffset(None), value.tzname(None)),
    "slice": lambda value: (value.start, value.stop, value.step),
    "deque": lambda value: (value.maxlen, *value),
    "Counter": lambda value: dict.items(value),
    "OrderedDict": lambda value: value.items(),
    "defaultdict": lambda value: (value.default_factory, *dict.items(value)),
    "mappingproxy": lambda value: value.items(),
    "ChainMap": lambda value: value.maps,
    "dict_keys": iter,
    "dict_values": iter,
    "dict_items": iter,
    "SimpleNamespace": lambda value: vars(value).items(),
    "Pattern": lambda value: (value.pattern, value.flags),
    "array": lambda value: (value.typecode, value.tolist()),
}


def _factory(value: Any) -> Any:
    return value if callable(value) else None


def _pairs(items: Any) -> dict[Any, Any]:
    """A mapping of keys whose hashes were not chosen to collide. Raises CodecError."""
    pairs = [(key, item) for key, item in items]
    if crowded([key for key, _ in pairs]):
        raise CodecError("a mapping of keys with one hash")
    return dict(pairs)


_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def crowded(keys: list[Any]) -> bool:
    """Whether keys were chosen to have one hash: inserting n of them would take n * n steps."""
    if len(keys) <= _CROWDED:
        return False
    hashes = sorted(map(hash, keys))
    return any(a == b for a, b in zip(hashes, hashes[_CROWDED:], strict=False))


def decode(data: Any, restore: Restore | None = None, depth: int = 0) -> Any:
    """The value that `data` stands for. `restore(tag, content)` builds tags that are not the codec's own.

    Raises CodecError for anything that `encode` does not write.
    """
    if isinstance(data, list):
        if depth > MAX_DEPTH + 1:
            raise CodecError("nested too deeply")
        deeper = depth + 1
        return [decode(i, restore, deeper) if type(i) is list or type(i) is dict else i for i in data]
    if not isinstance(data, dict):
        return data
    if len(data) != 1 or depth > MAX_DEPTH + 1:
        raise CodecError("an object must have one tag")
    ((tag, content),) = data.items()
    try:
        return _decode_tagged(tag, content, restore, depth + 1)
    except CodecError:
        raise
    except Exception as error:  # content of the wrong shape for its tag
        raise CodecError(f"tag {tag!r}: {type(error).__name__}") from None


def _of_type(kind: type[T], content: Any) -> T:
    """The content, if it is of the one type that an encoder writes there. Raises CodecError."""
    if type(content) is not kind:
        raise CodecError(f"{type(content).__name__} where {kind.__name__} belongs")
    return content


def _decode_tagged(tag: str, content: Any, restore: Restore | None, depth: int) -> Any:
    if tag in ("t", "s", "f"):
        items = [decode(item, restore, depth) for item in _of_type(list, content)]
        if tag == "t":
            return tuple(items)
        if crowded(items):
            return Opaque("set of members with one hash")
        return set(items) if tag == "s" else frozenset(items)
    if tag == "m":
        return {key: decode(item, restore, depth) for key, item in content.items()}
    if tag == "d":
        entries = [_of_type(list, entry) for entry in _of_type(list, content)]
        pairs = [(decode(key, restore, depth), decode(item, restore, depth)) for key, item in entries]
        return Opaque("mapping of keys with one hash") if crowded([key for key, _ in pairs]) else dict(pairs)
    if tag == "i":
        return int(_of_type(str, content), 16)
    if tag == "n":
        return _NOT_FINITE[content]
    if tag in ("b", "y"):
        return bytes.fromhex(content) if tag == "b" else bytearray.fromhex(content)
    if tag == "c":
        real, imaginary = (decode(part) for part in _of_type(list, content))
        return complex(real, imaginary)
    if tag == "x":
        name, text = _of_type(list, content)
        module, build = _LIBRARY[name]
        kind = getattr(importlib.import_module(module), _NAMES.get(str(name), str(name)))
        if name == "Pattern" and restore is None:  # compiled where the tests run, if at all
            return Opaque(name)
        if name in _WITH_ITEMS:
            return build(kind, [decode(item, restore, depth) for item in _of_type(list, text)])
        if len(_of_type(str, text)) > _MAX_LIBRARY_TEXT:  # reducing a fraction of a million digits would take seconds
            raise CodecError(f"a {name} of {len(text)} characters")
        return build(kind, text)
    if tag == "o":
        return Opaque(_of_type(str, content)[:80])
    if restore is None:
        raise CodecError(f"unknown tag {tag!r}")
    return restore(tag, content)


# ---- bytes ----------------------------------------------------------------------------------------------------------


def dumps(data: Any) -> bytes:
    """Encoded data as bytes."""
    return compact_json.dumps(data)


def loads(data: bytes) -> Any:
    """Bytes as encoded data. Raises CodecError."""
    try:
        return compact_json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"not JSON: {type(error).__name__}") from None
