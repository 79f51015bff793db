"""`parquet`: all data of each preference; nested values are columns of JSON text."""

import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pyarrow as pa
from django.db import models

from preferences.decision_fields import decision_fields
from preferences.exporters.formats.jsonl import PreferenceJsonl
from preferences.models import Preference
from runs.exports.parquet import write_parquet
from runs.exports.protocol import Row

_GROUP = 1000  # rows
_TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "run": pa.int64(),
    "suggestion": pa.int64(),
    "supersedes": pa.int64(),
    "confidence": pa.float64(),
    "seconds": pa.float64(),
    "order_sensitive": pa.bool_(),
    "saw_evidence": pa.bool_(),
    "self_preference": pa.bool_(),
    "disputes_tests": pa.bool_(),
    "tests_found_wrong": pa.bool_(),
    "suggestion_taken": pa.bool_(),
}


class Parquet(PreferenceJsonl):
    name = "parquet"
    summary = "all data, as Parquet"
    suffix = ".parquet"
    has_lines = False

    def write(self, rows: Iterable[Row[Preference]], path: Path) -> None:
        remaining = iter(rows)
        first = next(remaining, None)
        if first is None:
            return
        types = {**_decision_types(), **_TYPES}
        schema = pa.schema([(name, types.get(name, pa.string())) for name in first.data])
        cells = (
            {name: _cell(value, types.get(name)) for name, value in row.data.items()}
            for row in chain([first], remaining)
        )
        write_parquet(cells, schema, path, group=_GROUP)


def _decision_types() -> dict[str, pa.DataType]:
    """Return the types of the fields that reviewers fill in, without texts."""
    kinds = {models.IntegerField: pa.int64(), models.FloatField: pa.float64(), models.BooleanField: pa.bool_()}
    return {
        field.name: arrow for field in decision_fields() for kind, arrow in kinds.items() if isinstance(field, kind)
    }


def _cell(value: object, column: pa.DataType | None) -> object:
    if column is not None or value is None or isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
    return json.dumps(value)
