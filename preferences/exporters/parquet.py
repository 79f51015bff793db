"""`parquet`: all data of each preference; nested values are columns of JSON text."""

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from preferences.exporters.jsonl import PreferenceJsonl
from preferences.models import Preference
from runs.exports.protocol import Row

_GROUP = 1000  # rows in memory at a time
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

    def write(self, rows: Iterable[Row[Preference]], path: Path) -> None:
        remaining = iter(rows)
        group = list(islice(remaining, _GROUP))
        if not group:
            return
        schema = pa.schema([(name, _TYPES.get(name, pa.string())) for name in group[0].data])
        with pq.ParquetWriter(path, schema) as writer:
            while group:
                columns = [{name: _cell(name, value) for name, value in row.data.items()} for row in group]
                writer.write_table(pa.Table.from_pylist(columns, schema=schema))
                group = list(islice(remaining, _GROUP))


def _cell(name: str, value: object) -> object:
    if name in _TYPES or value is None or isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
    return json.dumps(value)
