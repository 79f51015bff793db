"""Pydantic's validation errors as clauses for messages to the users who wrote the file. No side effects."""

import json
import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from hub.common.wording import find_similar, unknown_key

_MAX_SHOWN = 60  # characters of the value that was found
_SUBJECT = re.compile(r"^(?:Input|List|String|Dictionary|Tuple|Set) should ")
_MAPPING = re.compile(r"(valid dictionary( or .*)?|an object)$")


class StrictNumbers(BaseModel):
    """Model whose numeric fields refuse infinity and NaN, and true and false, which pydantic reads as 1 and 0."""

    model_config = ConfigDict(allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_booleans(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, bool) and _is_numeric(cls.model_fields[info.field_name or ""].annotation):
            raise ValueError(f"must be a number, not a boolean (found {format_value(value)})")
        return value


def _is_numeric(annotation: object) -> bool:
    """Return whether values of a type are numbers, and never booleans."""
    members = _union_members(annotation)
    return any(member in (int, float) for member in members) and bool not in members


def describe_error(error: ErrorDetails, model: type[BaseModel] | None = None) -> str:
    """Return an entry of `ValidationError.errors()` as a clause: pydantic's own message with the value found.

    *model* is what was validated. With it, an unknown key is compared with the keys that are allowed at its place.
    """
    kind, path, given = error["type"], error["loc"], error["input"]
    if kind == "extra_forbidden":
        return unknown_key(str(path[-1]), keys_at(model, path[:-1]) if model else [])
    if kind == "missing":
        return "missing; this key is required"
    if kind == "value_error":
        return error["msg"].removeprefix("Value error, ")
    text = _SUBJECT.sub("must ", error["msg"]).partition(", unable to parse string")[0]
    if _MAPPING.search(text):
        text = f"must be a mapping{_expected_keys(model, path) if model else ' such as `key: value`'}"
    if kind in ("list_type", "tuple_type"):
        text = "must be a list"
        text += "; begin each item with `- `" if isinstance(given, Mapping) and given else ""
    if kind == "string_type" and isinstance(given, int | float):
        text += "; put it in quotes"
    if kind == "literal_error" and isinstance(given, str):
        allowed = re.findall(r"'([^']*)'", error["ctx"]["expected"])
        similar = find_similar(given, allowed)
        text += f"; did you mean {similar!r}?" if similar else ""
    return f"{text} (found {format_value(given)})"


def location_in(value: object, error: ErrorDetails) -> list[int | str]:
    """Return where in *value*, which was validated, an error is: its location without names of union members."""
    path: list[int | str] = []
    for part in error["loc"]:
        try:
            value = _child(value, part)
        except LookupError:
            if part != error["loc"][-1] or error["type"] != "missing":
                continue
        path.append(part)
    return path


def _child(value: object, part: int | str) -> object:
    """Return the value at a key or index. Raises LookupError."""
    if isinstance(value, dict):
        return value[part]
    if isinstance(value, list) and isinstance(part, int):
        return value[part]
    raise LookupError(part)


def _expected_keys(model: type[BaseModel], path: Sequence[int | str]) -> str:
    """Return the keys of the mapping at *path*: the required ones, else the optional ones."""
    names = keys_at(model, path, required=True) or keys_at(model, path)
    return f" with {', '.join(f'`{name}`' for name in names)}" if names else " such as `key: value`"


def format_value(value: object) -> str:
    """Return *value* as YAML would write it, shortened."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return "nothing" if value is None else text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def keys_at(model: type[BaseModel], path: Sequence[int | str], *, required: bool = False) -> list[str]:
    """Return the keys that *model* allows (or requires) at *path*; [] if any key is allowed there."""
    kinds: list[object] = [model]
    for part in path:
        kinds = [inner for kind in kinds for inner in _types_at(kind, part)]
    models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return [
        field.alias or name
        for kind in models
        for name, field in kind.model_fields.items()
        if not field.exclude and (field.is_required() or not required)
    ]


def _types_at(kind: object, part: int | str) -> list[object]:
    """Return the types of the value at *part* in a value of type *kind*."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        by_name = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
        return _union_members(by_name.get(str(part)))
    arguments = get_args(kind)
    if get_origin(kind) is list:
        return _union_members(arguments[0])
    if get_origin(kind) is dict:
        return _union_members(arguments[1])
    return [kind]  # *part* is the name of a union's member, which pydantic puts into the path


def _union_members(kind: object) -> list[object]:
    """Return the members of a union, without annotations; [kind] if it is no union."""
    if get_origin(kind) is Annotated:
        return _union_members(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [member for part in get_args(kind) for member in _union_members(part)]
    return [kind]
