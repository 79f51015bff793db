"""Rows as a Parquet file."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def write_parquet(rows: Iterable[dict[str, object]], schema: pa.Schema, path: Path, *, group: int) -> None:
    """Write *rows*, whose values have the types of *schema*, to *path*. Without rows, no file is created.

    group  rows in memory at a time, and in a row group of the file
    """
    remaining = iter(rows)
    rows_of_group = list(islice(remaining, group))
    if not rows_of_group:
        return
    with pq.ParquetWriter(path, schema) as writer:
        while rows_of_group:
            writer.write_table(pa.Table.from_pylist(rows_of_group, schema=schema))
            rows_of_group = list(islice(remaining, group))
