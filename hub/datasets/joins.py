"""Rows joined with the rows of a second file."""

import json
from collections.abc import Iterator

from hub.datasets.disk_index import DiskIndex
from hub.datasets.files import read_file
from hub.datasets.row_types import DatasetError, Opener, Row


def join_rows(
    found: Iterator[tuple[str, int, Row | DatasetError]], path: str, on: str, open_file: Opener
) -> Iterator[tuple[str, int, Row | DatasetError]]:
    """Yield *found* with the columns of the row of *path* that has the same value in the column *on*."""
    with DiskIndex() as index:
        _fill(index, path, on, open_file)
        for file, line, row in found:
            yield file, line, row if isinstance(row, DatasetError) else _joined(row, on, index, file, line)


def _joined(row: Row, on: str, index: DiskIndex, file: str, line: int) -> Row | DatasetError:
    key = _join_key(row, on)
    other = index.get(key) if key is not None else None
    if other is None:
        return DatasetError(file, line, f"the file to join has no row with {row.get(on)!r} in its column {on!r}.")
    return {**json.loads(other)[1], **row}


def _fill(index: DiskIndex, path: str, on: str, open_file: Opener) -> None:
    for line, row in read_file(path, open_file):
        if isinstance(row, DatasetError):
            raise row
        key = _join_key(row, on)
        if key is None:
            raise DatasetError(path, line, f"the column {on!r} to join on is missing, or neither text nor a number.")
        earlier = index.add(key, json.dumps([line, row]))
        if earlier is not None:
            first = json.loads(earlier)[0]
            raise DatasetError(path, line, f"{on!r} is {key!r}, as on line {first}.", "Each value may come once.")


def _join_key(row: Row, on: str) -> str | None:
    value = row.get(on)
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
