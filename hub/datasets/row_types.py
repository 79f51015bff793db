"""Types of dataset rows, their limits, and the check of a row."""

from collections.abc import Callable, Sequence
from typing import IO

from hub.common.problems import Problem
from hub.common.storable import unstorable_character
from hub.datasets import typed_values
from hub.manifest.problems import BundleError
from hub.protocols.messages import JSON

MAX_ROW_BYTES = 8 * 1024 * 1024
MAX_DATA_BYTES = 512 * 1024 * 1024  # after decompression
MAX_ROWS = 1_000_000
Row = dict[str, JSON]
Opener = Callable[[str], IO[bytes]]


class DatasetError(BundleError):
    """Wrong row, or a data file that cannot be read further."""

    def __init__(self, file: str, line: int | None, message: str, remedy: str = "") -> None:
        super().__init__(Problem(file=file, line=line, message=message, remedy=remedy))


def check_columns(file: str, names: Sequence[str]) -> None:
    """Raise DatasetError if two columns have one name."""
    if problem := typed_values.describe_repeated_names(names):
        raise DatasetError(file, 1, problem)


def check_row(row: object, file: str, line: int) -> Row | DatasetError:
    """Return *row* if it can be stored. NUL (PostgreSQL) and lone surrogates (UTF-8) cannot."""
    if not isinstance(row, dict):
        return DatasetError(file, line, "the row is not an object.", 'Write {"column": value, ...}.')
    if not row or not all(row):
        return DatasetError(file, line, "the row has no column, or one without a name.", "Name every column.")
    what, remedy = unstorable_text(row)
    return DatasetError(file, line, f"the row contains {what}.", remedy) if what else row


def unstorable_text(value: object) -> tuple[str, str]:
    """Return which part of a text in *value*, JSON, cannot be stored, and a remedy; ("", "") if there is none."""
    character = unstorable_character(value)
    if character == "\x00":
        return "the character U+0000", "Remove it."
    return ("half of a surrogate pair", "Write the whole character.") if character else ("", "")


def to_json_value(value: object, file: str, line: int) -> JSON:
    """Return a value of a typed table as JSON, as `typed_values.to_json_value` does. Raises DatasetError."""
    try:
        return typed_values.to_json_value(value)
    except typed_values.NotJSON as error:
        raise DatasetError(file, line, f"the row contains {error}.") from None
