"""JSON fields that preserve the order of keys, and fields that keep large values in files."""

import gzip
import hashlib
import json
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Protocol, cast

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Transform
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import MD5, Cast, Length, Substr

from hub.common.errors import UserError
from hub.common.storage.folder import is_temporary

logger = logging.getLogger(__name__)

_REFERENCE = '{"$file":'  # the reference to a file begins with it
_REFERENCE_LENGTH = 1000  # characters; no reference is longer
FOLDER = "transcripts"  # in the storage of archives


class OrderedJSONField(models.JSONField):
    """A JSON value stored as text, so that objects keep the order of their keys on every database.

    PostgreSQL's jsonb sorts them. Prompts, tools and code that are made from the value would then differ between
    databases, and so would scores. Look-ups inside the value (`data__metadata__cluster`) work as with JSONField.
    """

    def get_internal_type(self) -> str:
        return "TextField"

    def get_db_prep_value(self, value: object, connection: BaseDatabaseWrapper, prepared: bool = False) -> str | None:
        return None if value is None else _to_text(value)

    def get_transform(self, lookup_name: str) -> Callable[..., Transform]:  # type: ignore[override]
        transform: Callable[..., Transform] = super().get_transform(lookup_name)
        return lambda value: transform(Cast(value, models.JSONField()))


def json_text(column: str, key: str) -> KeyTextTransform:
    """Return an expression for the value at *key* of the objects in *column*, as text."""
    return KeyTextTransform(key, Cast(column, models.JSONField()))


def _to_text(value: object) -> str:
    # No database stores lone surrogates, so they are written as JSON escapes.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode("utf-8")


# ---- large values ----------------------------------------------------------------------------------------------------


class ContentUnavailable(UserError):
    """The file of a large value is missing or damaged, or its storage cannot be reached."""

    exit_code = 3
    status_code = 503


class ContentUnreachable(ContentUnavailable):
    """The storage does not respond. A later attempt may succeed."""


class _NamesFiles(Protocol):
    """Row whose large values are in files. `file_folder` is the folder of all files of its model."""

    file_folder: str

    def file_stem(self) -> str:
        """Return a folder and the beginning of the names of its files in it. No other row has the same."""


class _Stored(str):
    """Text in the column: that of the value, or a reference to its file."""

    __slots__ = ()


class LargeField(models.Field):  # type: ignore[type-arg]
    """A value that is kept in a file if its text exceeds LLMEVAL_LARGE_TRANSCRIPT_KB, so that rows stay small.

    The file is compressed and lies in the storage of archives. The column then has a reference: the name of the file,
    the digest and the length of the text. Whoever reads the row gets the value itself, or ContentUnavailable. The name
    of the file begins with `file_stem()` of the row, so a write that is repeated replaces its file.

    Values given to `QuerySet.update` stay in the column; `update_row` moves them into files. Code that deletes or
    replaces rows does so within `unused_files_deleted`.
    """

    suffix = "txt"

    def to_text(self, value: object) -> str:
        """Return the text of *value*, as the file has it."""
        return str(value)

    def pre_save(self, model_instance: models.Model, add: bool) -> object:
        return self.stored_value(model_instance, super().pre_save(model_instance, add))

    def stored_value(self, model_instance: models.Model, value: object) -> object:
        """Return what the column has for *value*. Writes a file if it is large. Raises ContentUnavailable."""
        if value is None or hasattr(value, "resolve_expression"):
            return value
        text = self.to_text(value)
        limit = settings.LARGE_TRANSCRIPT_BYTES
        content = text.encode()
        # A value that looks like a reference is always in a file, so that nothing is mistaken for one.
        if not text.startswith(_REFERENCE) and (not limit or len(content) <= limit):
            return _Stored(text)
        digest = hashlib.sha256(content).hexdigest()
        row = cast(_NamesFiles, model_instance)
        name = f"{FOLDER}/{row.file_folder}/{row.file_stem()}-{self.column}-{digest[:16]}.{self.suffix}.gz"
        try:
            name = storages["archives"].save(name, ContentFile(gzip.compress(content, 6, mtime=0)))
        except Exception as error:
            raise content_unavailable(error, f"The file {name} cannot be written") from error
        return _Stored(_to_text({"$file": name, "sha256": digest, "characters": len(text)}))

    def get_db_prep_value(self, value: object, connection: BaseDatabaseWrapper, prepared: bool = False) -> str | None:
        if isinstance(value, _Stored):
            return str(value)
        return cast(str | None, super().get_db_prep_value(value, connection, prepared))


class LargeTextField(LargeField, models.TextField):  # type: ignore[type-arg]
    """A text that is kept in a file if it is large. Look-ups compare what the column has."""

    def from_db_value(
        self, value: str | None, expression: models.Expression, connection: BaseDatabaseWrapper
    ) -> str | None:
        return _read(json.loads(value)).decode() if value is not None and value.startswith(_REFERENCE) else value


class LargeJSONField(LargeField, OrderedJSONField):
    """A JSON value that is kept in a file if its text is large."""

    suffix = "json"

    def to_text(self, value: object) -> str:
        return _to_text(value)

    def from_db_value(
        self, value: str | None, expression: models.Expression, connection: BaseDatabaseWrapper
    ) -> object:
        if value is None or not value.startswith(_REFERENCE):
            return super().from_db_value(value, expression, connection)
        return json.loads(_read(json.loads(value)))


def _read(reference: dict[str, str]) -> bytes:
    name = reference["$file"]
    try:
        with storages["archives"].open(name) as file:
            content = gzip.decompress(file.read())
    except FileNotFoundError:
        raise ContentUnavailable(
            f"This content is missing: the storage of archives has no file {name}. Restore it from a backup. If it is "
            "in a folder of another machine, let all machines use one storage (LLMEVAL_ARCHIVES)."
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        content = b""
    except Exception as error:
        raise content_unavailable(error, f"The file {name} cannot be read") from error
    if hashlib.sha256(content).hexdigest() != reference["sha256"]:
        raise ContentUnavailable(
            f"This content is damaged: the file {name} in the storage of archives is not the one that was written. "
            "Restore it from a backup."
        )
    return content


def content_unavailable(error: Exception, what: str, variable: str = "LLMEVAL_ARCHIVES") -> ContentUnavailable:
    """Return the error to raise after *error* of the storage that *variable* names. *what* could not be done."""
    kind = ContentUnreachable if is_temporary(error) else ContentUnavailable
    return kind(f"{what}: {type(error).__name__}: {error}. Check {variable} and its storage.")


def _as_text(column: str) -> Cast:
    return Cast(column, models.TextField())


def length_of(model: type[models.Model], column: str) -> models.expressions.Combinable:
    """Return an expression for the number of characters in a column, those in its file included."""
    length = Length(column)
    if not isinstance(model._meta.get_field(column), LargeField):
        return length
    in_file = models.When(_is_in_file(column), then=Cast(json_text(column, "characters"), models.IntegerField()))
    return models.Case(in_file, default=length, output_field=models.IntegerField())


def digest_of(column: str) -> models.expressions.Combinable:
    """Return an expression for a digest of a large text, which is equal for equal texts of one limit."""
    in_file = models.When(_is_in_file(column), then=json_text(column, "sha256"))
    return models.Case(in_file, default=MD5(column), output_field=models.TextField())


def _is_in_file(column: str) -> "models.lookups.Exact[str]":
    return models.lookups.Exact(Substr(_as_text(column), 1, len(_REFERENCE)), _REFERENCE)


def _is_in_column(column: str) -> models.Q:
    return models.Q(**{f"{column}__isnull": True}) | ~models.Q(_is_in_file(column))


def _large_fields(model: type[models.Model]) -> list[LargeField]:
    return [field for field in model._meta.concrete_fields if isinstance(field, LargeField)]


def file_names(rows: models.QuerySet[models.Model]) -> list[str]:
    """Return the names of the files that *rows* refer to."""
    columns = [field.name for field in _large_fields(rows.model)]
    beginnings = {f"beginning_{name}": Substr(_as_text(name), 1, _REFERENCE_LENGTH) for name in columns}
    in_file = models.Q()
    for beginning in beginnings:
        in_file |= models.Q(**{f"{beginning}__startswith": _REFERENCE})
    found = rows.order_by().annotate(**beginnings).filter(in_file).values_list(*beginnings) if columns else []
    return [_name(text) for texts in found for text in texts if text and text.startswith(_REFERENCE)]


def _name(reference: str) -> str:
    return str(json.loads(reference)["$file"])


@contextmanager
def unused_files_deleted(*rows: models.QuerySet[models.Model], must_respond: bool = False) -> Iterator[None]:
    """Delete, once the block is committed, the files that *rows* referred to before it and do not refer to after it.

    must_respond  raise ContentUnavailable if the storage does not respond: before the block, so that no row is deleted
                  whose files would be left, or while the files are deleted. Otherwise this is logged.
    """
    before = [file_names(part) for part in rows]
    names = [name for part in before for name in part]
    if must_respond and names:
        _check_storage(names[0])
    yield
    for earlier, part in zip(before, rows, strict=True):
        if earlier:
            transaction.on_commit(partial(_delete_unused, earlier, part, must_respond=must_respond))


def _check_storage(name: str) -> None:
    try:
        storages["archives"].exists(name)
    except Exception as error:
        raise content_unavailable(error, f"The file {name} cannot be deleted") from error


def update_row(row: models.Model, rows: models.QuerySet[models.Model], changes: Mapping[str, object]) -> bool:
    """Update *row* if it is among *rows*, and return whether it was updated. Large values are stored in files.

    The files of the earlier values are deleted after an update. If *row* is not among *rows*, the new files are
    deleted. Raises ContentUnavailable without changing anything.
    """
    large = {field.name: field for field in _large_fields(type(row)) if field.name in changes}
    stored = {name: field.stored_value(row, changes[name]) for name, field in large.items()}
    written = [_name(str(value)) for value in stored.values() if str(value).startswith(_REFERENCE)]
    current = type(row)._default_manager.filter(pk=row.pk)
    new = {**changes, **stored}
    # Few rows have files, so the names of theirs are only read if the row is not updated without them.
    if rows.filter(*map(_is_in_column, large), pk=row.pk).update(**new):
        return True
    with unused_files_deleted(current):
        updated = bool(rows.filter(pk=row.pk).update(**new))
    if written and not updated:
        _delete_unused(written, current)
    return updated


def _delete_unused(names: Iterable[str], rows: models.QuerySet[models.Model], *, must_respond: bool = False) -> None:
    used = set(file_names(rows.all()))
    try:
        delete_files(name for name in names if name not in used)
    except ContentUnreachable as error:
        if must_respond:
            raise
        logger.warning("files that are no longer needed are left: %s", error)


def delete_files(names: Iterable[str]) -> None:
    """Delete files of large values. A file that cannot be deleted is logged and left.

    Raises ContentUnreachable at the first file if the storage does not respond, and leaves all later ones.
    """
    for name in names:
        try:
            storages["archives"].delete(name)
        except Exception as error:
            if is_temporary(error):
                raise content_unavailable(error, f"The file {name} cannot be deleted") from error
            logger.warning("the file %s is no longer needed and cannot be deleted: %s", name, error)
