"""Rows of .jsonl, .json, .csv and .parquet files (each also .gz) or of the Hugging Face hub, streamed.

Memory does not grow with the data: one row of at most MAX_ROW_BYTES at a time, look-ups on disk.
"""

import base64
import codecs
import csv
import datetime
import decimal
import functools
import gzip
import itertools
import json
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from hub.common.problems import Problem
from hub.common.storable import unstorable_character
from hub.datasets.disk_index import DiskIndex
from hub.manifest.problems import BundleError
from hub.manifest.schema import Dataset
from hub.protocols.messages import JSON

MAX_ROW_BYTES = 8 * 1024 * 1024
MAX_DATA_BYTES = 512 * 1024 * 1024  # after decompression
MAX_ROWS = 1_000_000
CHUNK_BYTES = 64 * 1024

Row = dict[str, JSON]
Opener = Callable[[str], IO[bytes]]


class DatasetError(BundleError):
    """A row that is wrong, or a data file that cannot be read further."""

    def __init__(self, file: str, line: int | None, message: str, remedy: str = "") -> None:
        super().__init__(Problem(file=file, line=line, message=message, remedy=remedy))


# ---- rows ------------------------------------------------------------------------------------------------------------


def rows(dataset: Dataset, open_file: Opener) -> Iterator[tuple[str, int, Row | DatasetError]]:
    """Yield (file, line, row) for every row, joined if the dataset has `join`. *open_file* opens a file of the bundle.

    `line` is the row's first line in a text file, its number from 1 in parquet or on the Hugging Face hub.
    A DatasetError is yielded in place of a wrong row, and raised if reading cannot continue after it.
    """
    source = dataset.hf or dataset.path or ""
    read = _hugging_face(dataset) if dataset.hf is not None else file_rows(source, open_file, dataset.columns)
    found = _limited((source, line, row) for line, row in read)
    yield from join_rows(found, dataset.join.path, dataset.join.on, open_file) if dataset.join else found


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


def file_rows(
    path: str, open_file: Opener, columns: Sequence[str] | None = None
) -> Iterator[tuple[int, Row | DatasetError]]:
    """Yield (line, row) of one data file; a wrong row is yielded as a DatasetError. Raises DatasetError.

    *columns* are those of a .csv without a header.
    """
    reader = _READERS[path.removesuffix(".gz").rpartition(".")[2]]
    if columns is not None:
        reader = functools.partial(_csv, columns=columns)
    with open_file(path) as raw:
        stream: IO[bytes] = gzip.GzipFile(fileobj=raw) if path.endswith(".gz") else raw  # type: ignore[assignment]
        try:
            for line, row in reader(path, stream):
                problem = None if isinstance(row, DatasetError) else _row_problem(row)
                yield line, row if problem is None else DatasetError(path, line, *problem)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DatasetError(path, None, f"the file is not whole or not gzip: {error}.") from None


def _limited(
    found: Iterator[tuple[str, int, Row | DatasetError]],
) -> Iterator[tuple[str, int, Row | DatasetError]]:
    for number, item in enumerate(found, 1):
        if number > MAX_ROWS:
            raise DatasetError(item[0], item[1], f"more than {MAX_ROWS:,} rows.", "Split the environment.")
        yield item


def _row_problem(row: Any) -> tuple[str, str] | None:
    """Return the problem of *row* and its remedy. NUL (PostgreSQL) and lone surrogates (UTF-8) cannot be stored."""
    if not isinstance(row, dict):
        return "the row is not an object.", 'Write {"column": value, ...}.'
    if not row or not all(row):
        return "the row has no column, or one without a name.", "Name every column."
    character = unstorable_character(row)
    if character == "\x00":
        return "the row contains the character U+0000.", "Remove it."
    if character:
        return "the row contains half of a surrogate pair.", "Write the whole character."
    return None


def _text_lines(path: str, stream: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Yield (line, text) with line ends. Limits the length of a line and of the file."""
    total = 0
    for number in itertools.count(1):
        raw = stream.readline(MAX_ROW_BYTES + 1)
        if not raw:
            return
        total += len(raw)
        if len(raw) > MAX_ROW_BYTES:
            raise DatasetError(path, number, f"the line is longer than {MAX_ROW_BYTES:,} bytes.")
        if total > MAX_DATA_BYTES:
            raise DatasetError(path, number, f"the data is more than {MAX_DATA_BYTES:,} bytes.")
        try:
            yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise DatasetError(path, number, "the line is not UTF-8.", "Save the file as UTF-8.") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _jsonl(path: str, stream: IO[bytes]) -> Iterator[tuple[int, Any]]:
    for line, text in _text_lines(path, stream):
        if text.strip():
            try:
                row = _DECODER.decode(text)
            except (ValueError, RecursionError) as error:
                row = DatasetError(path, line, f"not JSON: {_first_sentence(error)}.")
            yield line, row


def _json(path: str, stream: IO[bytes]) -> Iterator[tuple[int, Any]]:
    """Yield objects of an array, or successive objects, read in chunks."""
    buffer = _Buffer(path, stream)
    buffer.skip_space()
    array = buffer.take("[")
    while not buffer.skip_space():
        if array and buffer.take("]"):
            array = False
            continue
        line = buffer.line
        yield line, buffer.value()
        buffer.skip_space()
        buffer.take(",")
    if array:
        raise DatasetError(path, buffer.line, "the array is not closed.", "End the file with ].")


class _Buffer:
    """Buffer on JSON text: the current value and one further chunk, with the current line."""

    def __init__(self, path: str, stream: IO[bytes]) -> None:
        self._path, self._stream = path, stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._text, self._at, self._read = "", 0, 0
        self.line = 1

    def _more(self, characters: int) -> bool:
        """Read until *characters* more are available or the file ends; return False if nothing was read."""
        pieces, size = [self._text[self._at :]], 0
        while size < characters and (raw := self._stream.read(CHUNK_BYTES)):
            self._read += len(raw)
            if self._read > MAX_DATA_BYTES:
                raise DatasetError(self._path, self.line, f"the data is more than {MAX_DATA_BYTES:,} bytes.")
            try:
                pieces.append(self._decode(raw))
            except UnicodeDecodeError:
                raise DatasetError(self._path, self.line, "not UTF-8.", "Save the file as UTF-8.") from None
            size += len(pieces[-1])
        self._text, self._at = "".join(pieces), 0
        return size > 0

    def _advance(self, end: int) -> None:
        self.line += self._text.count("\n", self._at, end)
        self._at = end

    def skip_space(self) -> bool:
        """Skip white space; return True at the end of the file."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._advance(space.end() if space else self._at)
            if self._at < len(self._text):
                return False
            if not self._more(1):
                return True

    def take(self, character: str) -> bool:
        """Skip *character* if it is the next one; return whether it was."""
        found = self._text.startswith(character, self._at)
        self._at += found
        return found

    def value(self) -> Any:
        """Decode and return the value at the current position. Raises DatasetError."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                size = len(self._text) - self._at
                if size > MAX_ROW_BYTES:
                    raise DatasetError(
                        self._path,
                        self.line,
                        f"not JSON, or a row of more than {MAX_ROW_BYTES:,} characters.",
                    ) from None
                if _may_go_on(error, len(self._text)) and self._more(size):
                    continue
                at = error.pos if isinstance(error, json.JSONDecodeError) else self._at
                line = self.line + self._text.count("\n", self._at, at)
                raise DatasetError(self._path, line, f"not JSON: {_first_sentence(error)}.") from None
            self._advance(end)
            return value


def _may_go_on(error: Exception, end: int) -> bool:
    """Return whether a decoding error may be due to an incomplete buffer."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return "Unterminated" in error.msg or error.pos >= end - len("-Infinity")


def _first_sentence(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error).partition(";")[0]


def _csv(path: str, stream: IO[bytes], columns: Sequence[str] | None = None) -> Iterator[tuple[int, Any]]:
    csv.field_size_limit(MAX_ROW_BYTES)
    reader = csv.reader((text for _, text in _text_lines(path, stream)), strict=True)
    begins = 1
    try:
        header = list(columns) if columns is not None else next(reader, [])
        twice = sorted({name for name in header if header.count(name) > 1})
        if twice:
            raise DatasetError(path, 1, f"two columns are named {', '.join(map(repr, twice))}.")
        while True:
            begins = reader.line_num + 1
            cells = next(reader, None)
            if cells is None:
                return
            if not cells:
                continue
            if len(cells) == len(header):
                yield begins, dict(zip(header, cells, strict=True))
                continue
            message = f"the row has {len(cells)} cells, the header {len(header)}."
            yield begins, DatasetError(path, begins, message, "Quote cells that contain commas.")
    except csv.Error as error:
        raise DatasetError(path, begins, f"not CSV: {error}.") from None


def _parquet(path: str, stream: IO[bytes]) -> Iterator[tuple[int, Any]]:
    """Rows of a parquet file. What a few bytes stand for by repetition is measured before it is unfolded."""
    import pyarrow as pa  # slow to import, and only this format needs it
    import pyarrow.parquet as pq

    with tempfile.TemporaryFile() as file:  # parquet is read from its end: a zip's member or a .gz has to be unpacked
        size = 0
        while chunk := stream.read(1 << 20):
            size += len(chunk)
            if size > MAX_DATA_BYTES:
                raise DatasetError(path, None, f"the data is more than {MAX_DATA_BYTES:,} bytes.")
            file.write(chunk)
        file.seek(0)
        try:
            metadata = pq.read_metadata(file)
            _check_parquet_size(path, metadata)
            columns = [metadata.schema.column(i) for i in range(metadata.num_columns)]
            # Texts stay references to a dictionary until a row is taken out of its batch.
            texts = [column.path for column in columns if _is_text(column)]
            file.seek(0)
            table = pq.ParquetFile(file, read_dictionary=texts)
            number = unfolded = 0
            for group in range(table.num_row_groups):
                for batch in table.iter_batches(batch_size=_PARQUET_ROWS, row_groups=[group]):
                    for part in _unfoldable(batch, path, number):
                        unfolded += sum(map(_unfolded_size, part.columns))
                        if unfolded > MAX_DATA_BYTES:
                            limit = f"{MAX_DATA_BYTES:,} bytes unpacked"
                            raise DatasetError(path, number + 1, f"the data is more than {limit}.")
                        for row in part.to_pylist():
                            number += 1
                            yield number, _plain(row, path, number)
        except (pa.ArrowException, OSError) as error:
            raise DatasetError(path, None, f"not parquet: {' '.join(str(error).split())[:200]}") from None


_PARQUET_ROWS = 256  # read at a time
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_REFERENCE = 4  # bytes of a reference to a text


def _unfoldable(batch: Any, path: str, before: int) -> Iterator[Any]:
    """*batch*, or each of its rows if they are large together; *before* rows came earlier. Raises DatasetError."""
    if sum(map(_unfolded_size, batch.columns)) <= MAX_ROW_BYTES:
        yield batch
        return
    for index in range(batch.num_rows):
        row = batch.slice(index, 1)
        if sum(map(_unfolded_size, row.columns)) > MAX_ROW_BYTES:
            limit = f"{MAX_ROW_BYTES:,} bytes unpacked"
            raise DatasetError(path, before + index + 1, f"the row is more than {limit}.")
        yield row


def _is_text(column: Any) -> bool:
    return bool(column.physical_type == "BYTE_ARRAY" and column.logical_type.type != "DECIMAL")


def _check_parquet_size(path: str, metadata: Any) -> None:
    """Refuse a file that says itself that it is too large, by its pages or by the number of its values."""
    pages = values = 0
    for group in (metadata.row_group(i) for i in range(metadata.num_row_groups)):
        pages += group.total_byte_size
        for i in range(group.num_columns):
            column = metadata.schema.column(i)
            values += group.column(i).num_values * (_WIDTHS.get(column.physical_type) or column.length or _REFERENCE)
    if max(pages, values) > MAX_DATA_BYTES:
        raise DatasetError(path, None, f"the data is more than {MAX_DATA_BYTES:,} bytes unpacked.")
    if metadata.num_rows > MAX_ROWS:
        raise DatasetError(path, None, f"more than {MAX_ROWS:,} rows.", "Split the environment.")


def _unfolded_size(array: Any) -> int:
    """Bytes that *array* has once every reference to a text is replaced by the text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_dictionary(kind):
        lengths = pc.binary_length(array.dictionary)
        return int(pc.sum(lengths.take(array.indices)).as_py() or 0) + 8 * len(array)
    if pa.types.is_map(kind):
        first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
        entries = (array.keys.slice(first, last - first), array.items.slice(first, last - first))
        return sum(map(_unfolded_size, entries)) + 8 * len(array)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return int(_unfolded_size(array.flatten())) + 8 * len(array)
    if pa.types.is_struct(kind):
        return sum(map(_unfolded_size, array.flatten())) + 8 * len(array)
    return int(max(array.nbytes, 8 * len(array)))


def _plain(value: Any, file: str, line: int) -> JSON:
    """Return a value of a typed table as JSON: times as ISO 8601, decimals as text, bytes as `{"b64"}`."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise DatasetError(file, line, f"the row contains {value}, which JSON cannot hold.")
        return value
    if isinstance(value, dict):
        return {str(key): _plain(item, file, line) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, file, line) for item in value]
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode("ascii")}
    raise DatasetError(file, line, f"the row contains a {type(value).__name__}, which JSON cannot hold.")


_READERS: dict[str, Callable[[str, IO[bytes]], Iterator[tuple[int, Any]]]] = {
    "jsonl": _jsonl,
    "json": _json,
    "csv": _csv,
    "parquet": _parquet,
}


def _hugging_face(dataset: Dataset) -> Iterator[tuple[int, Row | DatasetError]]:
    name = dataset.hf or ""
    try:
        import datasets  # optional, large, and only this source needs it
    except ImportError:
        raise DatasetError(
            "environment.yaml",
            None,
            f"the dataset {name} comes from the Hugging Face hub, which needs the package `datasets`.",
            "Install it with `.venv/bin/pip install datasets`, or put the data into a file of the bundle.",
        ) from None
    try:
        table = datasets.load_dataset(
            name, dataset.config, split=dataset.split, revision=dataset.revision, streaming=True
        )
        for number, row in enumerate(table, 1):
            plain = {str(key): _plain(value, name, number) for key, value in row.items()}
            problem = _row_problem(plain)
            yield number, plain if problem is None else DatasetError(name, number, *problem)
    except BundleError:
        raise
    except Exception as error:  # the package raises errors of a dozen libraries below it
        raise DatasetError(name, None, f"the Hugging Face hub returned an error: {error}") from None


# ---- joins -----------------------------------------------------------------------------------------------------------


def _fill(index: DiskIndex, path: str, on: str, open_file: Opener) -> None:
    for line, row in file_rows(path, open_file):
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
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
