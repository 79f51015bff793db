"""Process that reads one Parquet file, started as `python -I parquet_worker.py LIMITS` with the file as its input.

PyArrow aborts its process on some damaged files. So this one gives up root, files, network and other processes, and
limits its memory and processor time. It writes lines of JSON: [row, ...] for each part of the file, at last
{"rows": number}, or {"error": message, "line": number, "remedy": text}, or {"unavailable": reason} if it cannot be
contained. LIMITS is a JSON object with the keys of Limits.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    _ROOT = str(Path(__file__).resolve().parents[2])
    sys.path.insert(0, _ROOT)

import importlib.util
import io
import json
import os
import resource
import zoneinfo
from collections.abc import Iterator
from typing import IO, TypedDict

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hub.common.containment import contain
from hub.datasets.typed_values import NotJSON, describe_repeated_names, to_json_value

if __name__ == "__main__":
    sys.path.remove(_ROOT)

MEMORY_MB = 2048  # beyond what the process has at the start
_ROWS = 256  # read at a time
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_REFERENCE = 4  # bytes of a reference to a text


class Limits(TypedDict):
    """Bytes of all rows and of one row, both unpacked, the number of rows, and seconds of processor time."""

    data_bytes: int
    row_bytes: int
    rows: int
    cpu_s: int


class WrongFile(Exception):
    """A row, or the file (line None), cannot be read."""

    def __init__(self, line: int | None, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.line, self.remedy = line, remedy


def read(file: IO[bytes], limits: Limits) -> Iterator[tuple[str, int]]:
    """Yield the rows of a file in parts: a list as JSON text, and their number. Raises WrongFile.

    Encodings can repeat a value many times in a few bytes, so the unpacked size is computed before data is unpacked.
    """
    try:
        metadata = pq.read_metadata(file)
        _check_size(metadata, limits)
        if problem := describe_repeated_names(metadata.schema.to_arrow_schema().names):
            raise WrongFile(1, problem)
        columns = [metadata.schema.column(i) for i in range(metadata.num_columns)]
        # Texts stay references to a dictionary until their row is converted.
        texts = [column.path for column in columns if _is_text(column)]
        file.seek(0)
        table = pq.ParquetFile(file, read_dictionary=texts)
        number = unpacked_bytes = 0
        for group in range(table.num_row_groups):
            for batch in table.iter_batches(batch_size=_ROWS, row_groups=[group], use_threads=False):
                for part in _split_large_batch(batch, limits, number):
                    unpacked_bytes += sum(map(_unpacked_size, part.columns))
                    if unpacked_bytes > limits["data_bytes"]:
                        limit = f"{limits['data_bytes']:,} bytes unpacked"
                        raise WrongFile(number + 1, f"the data is more than {limit}.")
                    yield _as_json(_rows(part, number), number), part.num_rows
                    number += part.num_rows
    except MemoryError:
        raise WrongFile(None, f"reading it needs more than {MEMORY_MB:,} MiB of memory.") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise WrongFile(None, f"not parquet: {' '.join(str(error).split())[:200]}") from None


def _rows(part: pa.RecordBatch, before: int) -> list[dict[str, object]]:
    """Return the rows of *part*; *before* rows were read earlier. Raises WrongFile for values Python cannot have."""
    try:
        rows: list[dict[str, object]] = part.to_pylist()
    except (ValueError, OverflowError):  # texts that are not UTF-8, times after the year 9999
        for index in range(part.num_rows):
            try:
                part.slice(index, 1).to_pylist()
            except (ValueError, OverflowError) as error:
                raise WrongFile(before + index + 1, f"a value of the row cannot be read: {error}.") from None
        raise
    return rows


def _as_json(rows: list[dict[str, object]], before: int) -> str:
    """Return *rows* as JSON text; *before* rows were read earlier. Raises WrongFile for values that JSON lacks."""
    try:
        return json.dumps(rows, default=to_json_value, allow_nan=False)  # `to_json_value` of all is four times slower
    except ValueError:
        for number, row in enumerate(rows, before + 1):
            try:
                to_json_value(row)
            except NotJSON as error:
                raise WrongFile(number, f"the row contains {error}.") from None
        raise


def _split_large_batch(batch: pa.RecordBatch, limits: Limits, before: int) -> Iterator[pa.RecordBatch]:
    """Yield *batch*, or each of its rows if it is large; *before* rows were read earlier. Raises WrongFile."""
    if sum(map(_unpacked_size, batch.columns)) <= limits["row_bytes"]:
        yield batch
        return
    for index in range(batch.num_rows):
        row = batch.slice(index, 1)
        if sum(map(_unpacked_size, row.columns)) > limits["row_bytes"]:
            raise WrongFile(before + index + 1, f"the row is more than {limits['row_bytes']:,} bytes unpacked.")
        yield row


def _is_text(column: pq.ColumnSchema) -> bool:
    return bool(column.physical_type == "BYTE_ARRAY" and column.logical_type.type != "DECIMAL")


def _check_size(metadata: pq.FileMetaData, limits: Limits) -> None:
    """Raise WrongFile if the metadata announces too much data, by the pages or by the number of values."""
    pages = values = 0
    for group in (metadata.row_group(i) for i in range(metadata.num_row_groups)):
        pages += group.total_byte_size
        for i in range(group.num_columns):
            column = metadata.schema.column(i)
            values += group.column(i).num_values * (_WIDTHS.get(column.physical_type) or column.length or _REFERENCE)
    if max(pages, values) > limits["data_bytes"]:
        raise WrongFile(None, f"the data is more than {limits['data_bytes']:,} bytes unpacked.")
    if metadata.num_rows > limits["rows"]:
        raise WrongFile(None, f"more than {limits['rows']:,} rows.", "Split the environment.")


def _unpacked_size(array: pa.Array) -> int:
    """Return the bytes of *array* after every reference to a text is replaced by the text."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        lengths = pc.binary_length(array.dictionary)
        return int(pc.sum(lengths.take(array.indices)).as_py() or 0) + 8 * len(array)
    if pa.types.is_map(kind):
        first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
        entries = (array.keys.slice(first, last - first), array.items.slice(first, last - first))
        return sum(map(_unpacked_size, entries)) + 8 * len(array)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return int(_unpacked_size(array.flatten())) + 8 * len(array)
    if pa.types.is_struct(kind):
        return sum(map(_unpacked_size, array.flatten())) + 8 * len(array)
    return int(max(array.nbytes, 8 * len(array)))


def preload() -> None:
    """Load what PyArrow loads at first use, since a contained process can open no files."""
    table = pa.table({"time": pa.array([0], pa.timestamp("us", "Europe/Paris")), "text": ["x"]})
    out = io.BytesIO()
    pq.write_table(table, out)
    out.seek(0)
    for _ in read(out, {"data_bytes": 1 << 20, "row_bytes": 1 << 20, "rows": 1, "cpu_s": 60}):
        pass


def _time_zones() -> list[str]:
    """Return the folders with time zones, which are read when a file names one."""
    spec = importlib.util.find_spec("tzdata")
    return [*zoneinfo.TZPATH, *(spec.submodule_search_locations or [] if spec else [])]


def main(limits: Limits) -> None:
    """Write the rows of the file on the standard input to the standard output."""
    out = sys.stdout
    preload()
    try:
        contain(memory_mb=MEMORY_MB, cpu_s=limits["cpu_s"], readable=_time_zones())
    except OSError as error:
        out.write(json.dumps({"unavailable": str(error)}) + "\n")
        return
    try:
        number = 0
        for text, count in read(os.fdopen(0, "rb"), limits):
            number += count
            out.write(f"{text}\n")
        last: dict[str, object] = {"rows": number}
    except WrongFile as error:
        last = {"error": str(error), "line": error.line, "remedy": error.remedy}
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    out.write(json.dumps(last) + "\n")
    out.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
