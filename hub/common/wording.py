"""Error messages for files that users write: pydantic's errors as sentences, suggestions. No side effects."""

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

_MAX_LISTED = 20
_CLOSE = 0.65  # of 1: at the usual 0.6, `name` would mean `sample`
_MAX_SHOWN = 60  # characters of what was found
_NUMBER = "must be a number"
_WHOLE = "must be a whole number"
_TRUTH = "must be true or false"
_MAPPING = "must be a mapping such as `key: value`"
_SENTENCES = {
    "missing": "missing; this key is required",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "must be a finite number",
    "bool_type": _TRUTH,
    "bool_parsing": _TRUTH,
    "string_type": "must be text",
    "list_type": "must be a list, such as [a, b]",
    "dict_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "greater_than_equal": "must be {ge:g} or more",
    "greater_than": "must be more than {gt:g}",
    "less_than_equal": "must be {le:g} or less",
    "less_than": "must be less than {lt:g}",
    "too_long": "must have at most {max_length} entries",
    "string_too_long": "must have at most {max_length} characters",
    "literal_error": "must be {expected}",
}


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 case`, `1,200 cases`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def suggest(word: str, known: Iterable[str]) -> str:
    """Return `did you mean x?` if one of *known* is close to *word*, else `known are a, b`; "" if none is known."""
    names = list(dict.fromkeys(known))
    near = get_close_matches(word, names, n=1, cutoff=_CLOSE) or [n for n in names if n.lower() == word.lower()]
    if near:
        return f"did you mean {near[0]!r}?"
    more = f" and {len(names) - _MAX_LISTED:,} more" if len(names) > _MAX_LISTED else ""
    return f"known are {', '.join(names[:_MAX_LISTED])}{more}" if names else ""


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the message for an unknown *key*."""
    advice = suggest(key, known)
    return f"unknown key; {advice}" if advice else "unknown key; remove it"


def sentence(error: Mapping[str, Any], model: type[BaseModel] | None = None) -> str:
    """Return an entry of `ValidationError.errors()` as a clause about its key, with the value found.

    *model* is what was validated: an unknown key is then compared with those that stand at its place.
    """
    kind, given = error["type"], error.get("input")
    if kind == "extra_forbidden":
        path = error["loc"]
        return unknown_key(str(path[-1]), keys_at(model, path[:-1]) if model else [])
    context = error.get("ctx", {})
    if kind in ("too_short", "string_too_short"):
        least = context.get("min_length", 1)
        return "must not be empty" if least == 1 else f"must have at least {least}"
    text = _SENTENCES.get(kind, "").format_map(context) or str(error["msg"]).removeprefix("Value error, ")
    if kind == "literal_error" and isinstance(given, str):
        near = get_close_matches(
            given, str(context["expected"]).replace("'", "").replace(" or ", ", ").split(", "), n=1
        )
        text += f"; did you mean {near[0]!r}?" if near else ""
    if kind in ("missing", "value_error"):
        return text
    if text == _MAPPING and model:
        text = f"must be a mapping{_needed_keys(model, error['loc'])}"
    if kind == "string_type" and isinstance(given, int | float):
        text += "; put it in quotes"
    return f"{text} (found {found(given)})"


def _needed_keys(model: type[BaseModel], path: Sequence[int | str]) -> str:
    """Return the keys of the mapping at *path*: the required ones, else the optional ones."""
    needed = [f"`{key}`" for key in keys_at(model, path, required=True)] or [f"`{key}`" for key in keys_at(model, path)]
    return f" with {', '.join(needed)}" if needed else " such as `key: value`"


def found(value: Any) -> str:
    """Return *value* as YAML would write it, shortened."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return "nothing" if value is None else text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def keys_at(model: type[BaseModel], path: Sequence[int | str], *, required: bool = False) -> list[str]:
    """The keys that stand at *path* of what *model* describes, or must stand there; [] where any do."""
    here: list[Any] = [model]
    for part in path:
        here = [inner for kind in here for inner in _inside(kind, part)]
    models = [kind for kind in here if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return [
        field.alias or name
        for kind in models
        for name, field in kind.model_fields.items()
        if not field.exclude and (field.is_required() or not required)
    ]


def _inside(kind: Any, part: int | str) -> list[Any]:
    """Return the types of the value at *part* in a value of type *kind*."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        by_name = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
        return _members(by_name.get(str(part)))
    arguments = get_args(kind)
    if get_origin(kind) is list:
        return _members(arguments[0])
    if get_origin(kind) is dict:
        return _members(arguments[1])
    return [kind]  # the name of a union's member, which pydantic puts into the path


def _members(kind: Any) -> list[Any]:
    """Return the members of a union, without annotations."""
    if get_origin(kind) is Annotated:
        return _members(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [member for part in get_args(kind) for member in _members(part)]
    return [kind]
