"""Mapping of rows to cases by the `fields` of a bundle's dataset."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from hub.common.problems import Problem
from hub.common.wording import find_similar
from hub.datasets.images import embed_images
from hub.datasets.row_types import Opener, unstorable_text
from hub.manifest.problems import BundleError
from hub.protocols.cases import CaseData
from hub.protocols.messages import JSON, Message
from hub.templating import templates

MAX_ID = 200  # characters; the column's width
_ALL_OR_NONE = "Give every row an id, or give none to all rows: the ids are then the numbers of the rows."


class CaseMapper:
    """Mapper of rows to cases by the manifest's `fields`; an unmapped field uses the column of its name.

    *open_file* opens the images of the bundle that messages name. null_ids: whether the position replaces an id that is
    null, or that only some rows do not have. It always replaces the id if no row has one.
    """

    def __init__(self, fields: Mapping[str, object], open_file: Opener, *, null_ids: bool = True) -> None:
        self._null_ids = null_ids
        self._rows_have_ids: bool | None = None  # known after the first row
        self._fields = dict(fields)
        self._open_file = open_file

    def case(self, row: dict[str, JSON], *, file: str, line: int, position: int) -> CaseData:
        """Return the case of *row*. Raises BundleError with every wrong field; *position* counts from 1."""
        problems: list[Problem] = []
        values: dict[str, Any] = {}
        for name, convert in _CONVERT.items():
            try:
                value = self._value(name, row)
                if name == "id":
                    if not self._null_ids:
                        self._check_id(value, has_id="id" in self._fields or "id" in row)
                    value = str(position) if value is None else value
                values[name] = convert(value)
                if name == "input" and isinstance(values[name], list):
                    values[name] = embed_images(values[name], self._open_file)
            except ValueError as error:
                problems.append(Problem(file=file, line=line, path=f"dataset.fields.{name}", message=f"{error}"))
        if problems:
            raise BundleError(problems)
        return CaseData(**values, row=row)

    def _check_id(self, value: JSON, *, has_id: bool) -> None:
        """Raise ValueError for an id that is null, and if only some of the rows so far have an id."""
        if has_id and value is None:
            raise ValueError(f"the id is null. {_ALL_OR_NONE}")
        if self._rows_have_ids is None:
            self._rows_have_ids = has_id
        if has_id != self._rows_have_ids:
            missing = "earlier rows have no id" if has_id else "the row has no id, and earlier rows have one"
            raise ValueError(f"{missing}. {_ALL_OR_NONE}")

    def _value(self, name: str, row: dict[str, JSON]) -> JSON:
        """Return the value of the case field *name*: a column, or a rendered template. Raises ValueError."""
        if name not in self._fields:
            return row.get(name)
        source = self._fields[name]
        if not isinstance(source, str) or templates.is_template(source):
            return _storable(templates.render(source, {**row, "row": row}))
        if source not in row:
            similar = find_similar(source, sorted(row))
            near = f"Did you mean {similar!r}? " if similar else ""
            raise ValueError(
                f"the row has no column {source!r}; its columns are {', '.join(sorted(row))}. "
                f'{near}Write a fixed text as a template: {{{{ "text" }}}}.'
            )
        return row[source]


def _storable(value: object) -> JSON:
    """Return a rendered *value* if it can be stored as the columns of a row can. Raises ValueError."""
    what, _ = unstorable_text(value)
    if what:
        raise ValueError(f"the rendered value contains {what}.")
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise ValueError("the rendered value contains a number that is not finite.") from None
    return value


def _id(value: JSON) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("the id must be text or a number.")
    text = str(value)
    if not text.strip() or len(text) > MAX_ID or not text.isprintable():
        raise ValueError(f"the id {text[:40]!r} must have 1 to {MAX_ID} printable characters.")
    return text


def _input(value: JSON) -> str | list[Message]:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and value and all(_is_message(item) for item in value):
        return cast(list[Message], value)
    raise ValueError('the input must be text, or a list of messages {"role": ..., "content": ...}.')


def _is_message(item: JSON) -> bool:
    return isinstance(item, dict) and item.get("role") in ("system", "developer", "user", "assistant", "tool")


def _choices(value: JSON) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(v, str | int | float) for v in value):
        raise ValueError("the choices must be a list of texts.")
    return [str(item) for item in value]


def _files(value: JSON) -> dict[str, JSON]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError('the files must be a mapping such as {"app.py": "text"}.')
    for path, content in value.items():
        if path.startswith("/") or "\\" in path or any(part in ("", ".", "..") for part in path.split("/")):
            raise ValueError(f"the file path {path!r} must be relative, without . and ..")
        if not isinstance(content, str) and not (isinstance(content, dict) and _is_base64(content)):
            raise ValueError(f'the file {path!r} must be text or {{"b64": "..."}}.')
        if above := next((folder for folder in _folders_above(path) if folder in value), None):
            raise ValueError(f"{above!r} is the name of a file and the folder of {path!r}; rename one of the two.")
    return value


def _folders_above(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts)))


def _is_base64(content: dict[str, JSON]) -> bool:
    encoded = content.get("b64")
    if not isinstance(encoded, str) or len(content) != 1:
        return False
    try:
        base64.b64decode(encoded, validate=True)
    except ValueError:
        return False
    return True


def _metadata(value: JSON) -> dict[str, JSON]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError("the metadata must be a mapping.")
    return value


_CONVERT: dict[str, Callable[[JSON], object]] = {
    "id": _id,
    "input": _input,
    "target": lambda value: value,
    "choices": _choices,
    "files": _files,
    "metadata": _metadata,
}
