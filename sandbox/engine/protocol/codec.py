"""Encoding of values in messages: tagged JSON of exact built-in types, never pickle.

None, bool, text, 64-bit integers, finite floats and lists are encoded as themselves. Everything else is an object with
one key, its tag:

    t tuple   s set   f frozenset   m mapping with text keys   d other mapping, as pairs   i integer, hexadecimal
    n nan, inf, -inf   b bytes   y bytearray   c complex   x [type, text] of the standard library
    o value that cannot be encoded: only the name of its type; it equals nothing

An instance of a subclass is reduced to the built-in type that it extends, by that type's own methods, so nothing that
the sender overrides takes part. Decoding builds only the types listed here.
"""

import importlib
import math
import sys
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from . import compact_json

OPAQUE = b'{"o":'  # the start of an encoded opaque value; inside a text the quotation mark would be escaped
MAX_DEPTH = 150
_SAFE_INT = 1 << 63
_MAX_LIBRARY_TEXT = 8192
_MANY_EQUAL_HASHES = 16  # a set or mapping with more members of one hash is taken for an attack

T = TypeVar("T")
Export = Callable[[object], "dict[str, object] | None"]
Restore = Callable[[str, object], object]


class CodecError(ValueError):
    """The data cannot be the output of the encoder."""


class Opaque:
    """A value that could not be encoded. It equals nothing, not even itself."""

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


def has_opaque(value: object) -> bool:
    """Return whether a decoded value is or contains one that could not be encoded."""
    if isinstance(value, list | tuple | set | frozenset | deque):
        return any(map(has_opaque, value))
    if isinstance(value, dict):
        return any(has_opaque(key) or has_opaque(item) for key, item in value.items())
    known = _LIBRARY.get(type(value).__name__)
    if known is not None and known.items is not None:
        return any(map(has_opaque, known.items(value)))
    return isinstance(value, Opaque)


# ---- encoding -------------------------------------------------------------------------------------------------------


def _encode_scalar(value: object) -> object:
    """Encode a number or text, also of a built-in type's subclass. Return NotImplemented for everything else."""
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


def _encode_library(value: object, export: Export | None, depth: int) -> object:
    """Encode a value type of the standard library, exact types only. Return NotImplemented for everything else."""
    kind = type(value)
    name = kind.__name__
    known = _LIBRARY.get(name)
    if known is None:
        return NotImplemented
    # The modules are imported only if code uses them: forks of a zygote without them are faster.
    module = sys.modules.get(known.module)
    if module is None or getattr(module, known.attribute or name, None) is not kind:
        return NotImplemented
    if known.items is not None:
        return {"x": [name, [encode(item, export, depth) for item in known.items(value)]]}
    return {"x": [name, _TEXT_OF.get(name, str)(value)]}


def _from_numpy(value: object) -> object:
    """Return the built-in equivalent of a numpy scalar or array; NotImplemented for everything else."""
    kind = type(value)
    to_list = getattr(kind, "tolist", None)
    return to_list(value) if kind.__module__ == "numpy" and callable(to_list) else NotImplemented


def encode(value: object, export: Export | None = None, depth: int = 0) -> object:
    """Return the encoding of any value. `export` may return a tagged object for one that the codec does not know."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if type(value) is int and -_SAFE_INT <= value < _SAFE_INT:
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


def _encode_mapping(value: dict[object, object], export: Export | None, depth: int) -> object:
    """Encode a mapping: with text keys as `m`, else as pairs."""
    items = list(dict.items(value))
    if all(type(key) is str for key, _ in items):
        return {"m": {str(key): encode(item, export, depth) for key, item in items}}
    return {"d": [[encode(key, export, depth), encode(item, export, depth)] for key, item in items]}


# ---- decoding -------------------------------------------------------------------------------------------------------


_EXACT = frozenset({list, tuple, dict, str, int, float, complex, bytes, bytearray, set, frozenset})


class LibraryType(NamedTuple):
    """A value type of the standard library.

    module  has the type, as an attribute of the name `attribute` or else of the type's own name
    build   makes an object of the type from its text, or from its items
    items   gives the items of an object whose encoding is not a text; they are encoded themselves
    """

    module: str
    build: Callable[..., object]
    items: Callable[..., Iterable[object]] | None = None
    attribute: str = ""


def _from_hexadecimal(kind: Callable[..., object], text: str) -> object:
    return kind(*(int(part, 16) for part in text.split()))


def _from_text(kind: Callable[..., object], text: str) -> object:
    return kind(text)


def _from_items(kind: Callable[..., object], items: list[object]) -> object:
    return kind(*items)


def _from_pairs(kind: Callable[..., object], items: Iterable[Iterable[object]]) -> object:
    return kind(_mapping_of(items))


def _timezone(kind: Callable[..., object], items: list[object]) -> object:
    offset, name = items
    return kind(offset, name) if name else kind(offset)


def _mapping_of(items: Iterable[Iterable[object]]) -> dict[object, object]:
    """Return a mapping whose keys were not chosen to have one hash. Raises CodecError."""
    pairs = [(key, item) for key, item in items]
    if have_colliding_hashes([key for key, _ in pairs]):
        raise CodecError("a mapping of keys with one hash")
    return dict(pairs)


_VIEWS = "_collections_abc"
_LIBRARY: dict[str, LibraryType] = {
    "Decimal": LibraryType("decimal", _from_text),
    "UUID": LibraryType("uuid", _from_text),
    "PurePosixPath": LibraryType("pathlib", _from_text),
    "PosixPath": LibraryType("pathlib", _from_text),
    "Fraction": LibraryType("fractions", _from_hexadecimal),
    "range": LibraryType("builtins", _from_hexadecimal),
    "datetime": LibraryType("datetime", lambda kind, text: kind.fromisoformat(text)),
    "date": LibraryType("datetime", lambda kind, text: kind.fromisoformat(text)),
    "time": LibraryType("datetime", lambda kind, text: kind.fromisoformat(text)),
    "timedelta": LibraryType("datetime", lambda kind, text: kind(*map(int, text.split()))),
    "timezone": LibraryType("datetime", _timezone, lambda value: (value.utcoffset(None), value.tzname(None))),
    "ellipsis": LibraryType("types", lambda kind, text: ..., attribute="EllipsisType"),
    "NotImplementedType": LibraryType("types", lambda kind, text: NotImplemented),
    "slice": LibraryType("builtins", _from_items, lambda value: (value.start, value.stop, value.step)),
    "array": LibraryType("array", _from_items, lambda value: (value.typecode, value.tolist())),
    "Pattern": LibraryType(
        "re",
        lambda kind, items: importlib.import_module("re").compile(*items),
        lambda value: (value.pattern, value.flags),
    ),
    "deque": LibraryType(
        "collections", lambda kind, items: kind(items[1:], items[0]), lambda value: (value.maxlen, *value)
    ),
    "Counter": LibraryType("collections", _from_pairs, lambda value: dict.items(value)),
    "OrderedDict": LibraryType("collections", _from_pairs, lambda value: value.items()),
    "defaultdict": LibraryType(
        "collections",
        lambda kind, items: kind(items[0] if callable(items[0]) else None, _mapping_of(items[1:])),
        lambda value: (value.default_factory, *dict.items(value)),
    ),
    "ChainMap": LibraryType("collections", _from_items, lambda value: value.maps),
    "mappingproxy": LibraryType("types", _from_pairs, lambda value: value.items(), "MappingProxyType"),
    "SimpleNamespace": LibraryType("types", lambda kind, items: kind(**dict(items)), lambda value: vars(value).items()),
    "dict_keys": LibraryType(_VIEWS, lambda kind, items: _mapping_of([(i, None) for i in items]).keys(), iter),
    "dict_values": LibraryType(_VIEWS, lambda kind, items: dict(enumerate(items)).values(), iter),
    "dict_items": LibraryType(_VIEWS, lambda kind, items: _mapping_of(items).items(), iter),
}
_TEXT_OF: dict[str, Callable[..., str]] = {  # of the others it is what `str` returns
    "range": lambda value: f"{value.start:x} {value.stop:x} {value.step:x}",
    "Fraction": lambda value: f"{value.numerator:x} {value.denominator:x}",
    "timedelta": lambda value: f"{value.days} {value.seconds} {value.microseconds}",
    **dict.fromkeys(("date", "datetime", "time"), lambda value: value.isoformat()),
}


_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def have_colliding_hashes(keys: list[object]) -> bool:
    """Return whether keys were chosen to have one hash: inserting n of them would take n * n steps."""
    if len(keys) <= _MANY_EQUAL_HASHES:
        return False
    hashes = sorted(map(hash, keys))
    return any(a == b for a, b in zip(hashes, hashes[_MANY_EQUAL_HASHES:], strict=False))


def decode(data: object, restore: Restore | None = None, depth: int = 0) -> object:
    """Return the value that `data` encodes. Raises CodecError for data that `encode` does not produce.

    restore  builds the value of a tag that is not the codec's own, from the tag and its content
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


def of_type(kind: type[T], content: object) -> T:
    """Return the content if it is of the type that an encoder produces there. Raises CodecError."""
    if type(content) is not kind:
        raise CodecError(f"{type(content).__name__} where {kind.__name__} belongs")
    return content


def _decode_tagged(tag: str, content: object, restore: Restore | None, depth: int) -> object:
    if tag in ("t", "s", "f"):
        items = [decode(item, restore, depth) for item in of_type(list, content)]
        if tag == "t":
            return tuple(items)
        if have_colliding_hashes(items):
            return Opaque("set of members with one hash")
        return set(items) if tag == "s" else frozenset(items)
    if tag == "m":
        return {key: decode(item, restore, depth) for key, item in of_type(dict, content).items()}
    if tag == "d":
        entries = [of_type(list, entry) for entry in of_type(list, content)]
        pairs = [(decode(key, restore, depth), decode(item, restore, depth)) for key, item in entries]
        return (
            Opaque("mapping of keys with one hash") if have_colliding_hashes([key for key, _ in pairs]) else dict(pairs)
        )
    if tag == "i":
        return int(of_type(str, content), 16)
    if tag == "n":
        return _NOT_FINITE[of_type(str, content)]
    if tag in ("b", "y"):
        text = of_type(str, content)
        return bytes.fromhex(text) if tag == "b" else bytearray.fromhex(text)
    if tag == "c":
        real, imaginary = (decode(part) for part in of_type(list, content))
        return complex(of_type(float, real), of_type(float, imaginary))
    if tag == "x":
        return _decode_library(of_type(list, content), restore, depth)
    if tag == "o":
        return Opaque(of_type(str, content)[:80])
    if restore is None:
        raise CodecError(f"unknown tag {tag!r}")
    return restore(tag, content)


def _decode_library(content: list[object], restore: Restore | None, depth: int) -> object:
    name, encoded = content
    known = _LIBRARY[of_type(str, name)]
    kind = getattr(importlib.import_module(known.module), known.attribute or str(name))
    if name == "Pattern" and restore is None:  # compiled only in the process that runs the tests
        return Opaque("Pattern")
    if known.items is not None:
        return known.build(kind, [decode(item, restore, depth) for item in of_type(list, encoded)])
    text = of_type(str, encoded)
    if len(text) > _MAX_LIBRARY_TEXT:  # reducing a fraction of a million digits would take seconds
        raise CodecError(f"a {name} of {len(text)} characters")
    return known.build(kind, text)


# ---- bytes ----------------------------------------------------------------------------------------------------------


def dumps(data: object) -> bytes:
    """Return encoded data as bytes."""
    return compact_json.dumps(data)


def loads(data: bytes) -> object:
    """Return the encoded data that the bytes contain. Raises CodecError."""
    try:
        return compact_json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"not JSON: {type(error).__name__}") from None
