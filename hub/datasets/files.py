"""Rows of one data file: .jsonl, .json, .csv or .parquet, each also .gz."""

import functools
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO

from hub.datasets.parquet import read_parquet
from hub.datasets.row_types import DatasetError, Opener, Row, check_row
from hub.datasets.text_formats import read_csv, read_json, read_jsonl

_READERS: dict[str, Callable[[str, IO[bytes]], Iterator[tuple[int, object]]]] = {
    "jsonl": read_jsonl,
    "json": read_json,
    "csv": read_csv,
    "parquet": read_parquet,
}


def read_file(
    path: str, open_file: Opener, columns: Sequence[str] | None = None
) -> Iterator[tuple[int, Row | DatasetError]]:
    """Yield (line, row) of one data file; a wrong row is yielded as a DatasetError. Raises DatasetError.

    *columns* are those of a .csv without a header.
    """
    reader = _READERS[path.removesuffix(".gz").rpartition(".")[2]]
    if columns is not None:
        reader = functools.partial(read_csv, columns=columns)
    with open_file(path) as raw:
        stream: IO[bytes] = gzip.GzipFile(fileobj=raw) if path.endswith(".gz") else raw  # type: ignore[assignment]
        try:
            for line, row in reader(path, stream):
                yield line, row if isinstance(row, DatasetError) else check_row(row, path, line)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DatasetError(path, None, f"the file is incomplete or not gzip: {error}.") from None
