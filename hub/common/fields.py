"""JSON field that preserves key order."""

import json
from collections.abc import Callable

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Transform
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast


class OrderedJSONField(models.JSONField):
    """A JSON value stored as text, so that objects keep the order of their keys on every database.

    PostgreSQL's jsonb sorts them. Prompts, tools and code that are made from the value would then differ between
    databases, and so would scores. Look-ups inside the value (`data__metadata__cluster`) work as with JSONField.
    """

    def get_internal_type(self) -> str:
        return "TextField"

    def get_db_prep_value(self, value: object, connection: BaseDatabaseWrapper, prepared: bool = False) -> str | None:
        if value is None:
            return None
        # No database stores lone surrogates, so they are written as JSON escapes.
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode("utf-8")

    def get_transform(self, lookup_name: str) -> Callable[..., Transform]:  # type: ignore[override]
        transform: Callable[..., Transform] = super().get_transform(lookup_name)
        return lambda value: transform(Cast(value, models.JSONField()))


def json_text(column: str, key: str) -> KeyTextTransform:
    """Return an expression for the value at *key* of the objects in *column*, as text."""
    return KeyTextTransform(key, Cast(column, models.JSONField()))
