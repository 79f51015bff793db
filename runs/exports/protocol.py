"""Protocol of all exports (failures, rollouts, recordings, preferences): formats, rows, counts of left-out items."""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, ClassVar, Generic, TypeVar

from hub.common.errors import UserError
from hub.common.output.files import Outputs, check_suffix
from hub.protocols.messages import JSON

CHUNK = 200  # rows of the database in memory at a time; transcripts may be long

Item = TypeVar("Item")
JSONObject = dict[str, JSON]


class ExportError(UserError):
    """An export that is not possible. The message has the reason and an alternative."""


class NothingToExport(ExportError):
    """The export has no rows, so nothing was written. Commands exit with 2, REST responds with 400."""


class LeftOut(Exception):
    """An item that cannot be exported. The message is the reason, under which it is counted."""


@dataclass(slots=True)
class ExportReport:
    """Result of an export: the number of rows, the number of items left out by reason, and the files."""

    written: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    files: list[Path] = field(default_factory=list)

    def to_json(self) -> JSONObject:
        """Return `{"rows", "left_out": {reason: count}, "files": [path]}`."""
        return {"rows": self.written, "left_out": dict(self.left_out), "files": [str(path) for path in self.files]}

    def left_out_lines(self) -> list[str]:
        """Return a sentence for each reason, such as "Left out 3: no gold answer."."""
        return [f"Left out {count:,}: {reason}." for reason, count in self.left_out.items() if count]

    def require_rows(self, noun: str) -> None:
        """Raise NothingToExport if there is no row. noun: what a row is made from, such as `failing case`."""
        if not self.written:
            reason = f"There is no {noun} to export, so nothing was written."
            raise NothingToExport(" ".join([reason, *self.left_out_lines()]))


@dataclass(frozen=True, slots=True)
class Row(Generic[Item]):
    """One row of an export, with the item that it was made from."""

    item: Item
    data: JSONObject


class ExportFormat(ABC, Generic[Item]):
    """Format of an export. It turns items, such as failed responses or preferences, into the rows of a file.

    name: as in `--format`. summary: one line for help texts and menus. suffix: of the file's name. training: whether
    the rows are meant for training, so that held-out environments are refused. has_lines: whether each row is a line of
    JSON, so that a download can begin before the last row is made; `write` is then not overridden.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    suffix: ClassVar[str] = ".jsonl"
    training: ClassVar[bool] = True
    has_lines: ClassVar[bool] = True

    @abstractmethod
    def rows(self, item: Item) -> Iterable[JSONObject]:
        """Return the rows of one item. Raises LeftOut."""

    def select(self, read_rows: Callable[[], Iterator[Row[Item]]], left_out: Counter[str]) -> Iterator[Row[Item]]:
        """Return the rows that are fit in combination with the others, and count the rest in *left_out*.

        *read_rows* returns a new iterator each time, because all rows may not fit into memory.
        """
        return read_rows()

    def write(self, rows: Iterable[Row[Item]], path: Path) -> None:
        """Write *rows* to *path*; without rows, no file is created. By default, a row is a line of JSON."""
        write_json_lines((row.data for row in rows), path)


def export_items(
    export_format: ExportFormat[Item], read_items: Callable[[], Iterable[Item]], path: Path, report: ExportReport
) -> None:
    """Stream items into the file at *path*, and count rows and left-out items in *report*.

    *read_items* returns all items, each time it is called.
    """
    with closing(exported_rows(export_format, read_items, report)) as rows:  # also the query, if `write` fails
        export_format.write(rows, path)


def exported_rows(
    export_format: ExportFormat[Item], read_items: Callable[[], Iterable[Item]], report: ExportReport
) -> Generator[Row[Item], None, None]:
    """Yield the rows of items, and count them in *report*. What was left out is in it after the last row."""
    unfit: Counter[str] = Counter()

    def read_rows() -> Iterator[Row[Item]]:
        unfit.clear()  # `select` may read the rows more than once
        for item in read_items():
            try:
                rows = list(export_format.rows(item))
            except LeftOut as reason:
                unfit[str(reason)] += 1
            else:
                for data in rows:
                    yield Row(item, data)

    for row in export_format.select(read_rows, report.left_out):
        report.written += 1
        yield row
    report.left_out.update(unfit)


@dataclass(frozen=True, slots=True)
class Export(Generic[Item]):
    """Export of items that were selected and may be exported: written to a file, or read line by line."""

    format: ExportFormat[Item]
    read_items: Callable[[], Iterable[Item]]

    def write_file(self, path: Path, *, force: bool = False) -> ExportReport:
        """Write all rows to *path* or nothing. No file is created if there are no rows.

        Raises CannotWrite, also if *path* has the suffix of a file of another kind.
        """
        check_suffix(path, self.format.suffix, f"a file of the format {self.format.name}")
        report = ExportReport()
        with Outputs(force=force) as outputs:
            export_items(self.format, self.read_items, outputs.file(path), report)
        report.files = outputs.written
        return report

    def lines(self, report: ExportReport) -> Iterator[bytes]:
        """Yield the rows as lines of JSON, and count in *report*. Only for formats with `has_lines`."""
        return (json_line(row.data) for row in exported_rows(self.format, self.read_items, report))


def json_line(data: JSONObject) -> bytes:
    """Return *data* as a line of JSON. Lone surrogates, which UTF-8 cannot encode, are written as escapes."""
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def write_json_lines(rows: Iterable[JSONObject], path: Path) -> None:
    """Write *rows* as JSON lines to *path*. The file is created with the first row."""
    with ExitStack() as stack:
        file: IO[bytes] | None = None
        for data in rows:
            file = file or stack.enter_context(path.open("wb"))
            file.write(json_line(data))
