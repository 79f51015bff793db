"""Readers of .jsonl, .json and .csv files that stream their rows."""

import codecs
import csv
import itertools
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import IO

from hub.common.wording import counted
from hub.datasets.row_types import MAX_DATA_BYTES, MAX_ROW_BYTES, DatasetError, check_columns

CHUNK_BYTES = 64 * 1024


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


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


_ONE_A_LINE = "Write one object on each line; an array, or an object of several lines, belongs in a .json file."
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(parse_constant=_reject_constant, parse_float=_finite)


def read_jsonl(path: str, stream: IO[bytes]) -> Iterator[tuple[int, object]]:
    """Yield (line, row) of each line that is not empty; a wrong row is yielded as a DatasetError.

    Raises DatasetError.
    """
    for line, text in _text_lines(path, stream):
        if text.strip():
            try:
                row: object = _DECODER.decode(text)
            except (ValueError, RecursionError) as error:
                row = DatasetError(path, line, f"not JSON: {_first_sentence(error)}.", _ONE_A_LINE)
            yield line, row


def read_json(path: str, stream: IO[bytes]) -> Iterator[tuple[int, object]]:
    """Yield (line, row) of the objects of an array, or of successive objects, read in chunks. Raises DatasetError."""
    buffer = _JsonBuffer(path, stream)
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


class _JsonBuffer:
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

    def value(self) -> object:
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
                if _may_be_incomplete(error, len(self._text)) and self._more(size):
                    continue
                at = error.pos if isinstance(error, json.JSONDecodeError) else self._at
                line = self.line + self._text.count("\n", self._at, at)
                raise DatasetError(self._path, line, f"not JSON: {_first_sentence(error)}.") from None
            self._advance(end)
            return value


def _may_be_incomplete(error: Exception, end: int) -> bool:
    """Return whether a decoding error may be due to an incomplete buffer."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return "Unterminated" in error.msg or error.pos >= end - len("-Infinity")


def _first_sentence(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error).partition(";")[0]


def read_csv(path: str, stream: IO[bytes], columns: Sequence[str] | None = None) -> Iterator[tuple[int, object]]:
    """Yield (line, row) of a .csv; *columns* names them if the file has no header. Errors as in `read_jsonl`."""
    csv.field_size_limit(MAX_ROW_BYTES)
    begins, size = 1, 0  # of the current row: its first line, and its characters so far

    def lines() -> Iterator[str]:
        nonlocal size
        for _, text in _text_lines(path, stream):
            size += len(text)
            if size > MAX_ROW_BYTES:
                raise DatasetError(path, begins, f"the row is longer than {MAX_ROW_BYTES:,} characters.")
            yield text

    reader = csv.reader(lines(), strict=True)
    try:
        header = list(columns) if columns is not None else next(reader, [])
        check_columns(path, header)
        if columns is None and len(header) == 1 and (mark := next((m for m in ";\t" if m in header[0]), "")):
            message = f"the only column is {header[0]!r}."
            raise DatasetError(path, 1, message, f"Separate cells by commas instead of {mark!r}.")
        while True:
            begins, size = reader.line_num + 1, 0
            cells = next(reader, None)
            if cells is None:
                return
            if not cells:
                continue
            if len(cells) == len(header):
                yield begins, dict(zip(header, cells, strict=True))
                continue
            expected = f"the header {len(header)}" if columns is None else f"but `columns` names {len(header)}"
            message = f"the row has {counted(len(cells), 'cell')}, {expected}."
            more = len(cells) > len(header)
            remedy = "Quote cells that contain commas." if more else "Write a comma for each empty cell, too."
            yield begins, DatasetError(path, begins, message, remedy)
    except csv.Error as error:
        raise DatasetError(path, begins, f"not CSV: {error}.") from None
