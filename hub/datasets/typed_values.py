"""Columns and values of typed tables, such as Parquet, as JSON. Imports nothing else of the product."""

import base64
import datetime
import decimal
from collections.abc import Sequence


class NotJSON(ValueError):
    """A value that JSON cannot represent; the message names it."""


def describe_repeated_names(names: Sequence[str]) -> str:
    """Return the message about columns with one name; "" if every name occurs once."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    return f"two columns are named {', '.join(map(repr, repeated))}." if repeated else ""


def to_json_value(value: object) -> object:
    """Return *value* as JSON: times as ISO 8601, decimals as text, bytes as `{"b64"}`. Raises NotJSON."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise NotJSON(f"{value}, which JSON cannot represent")
        return value
    if isinstance(value, dict):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode("ascii")}
    raise NotJSON(f"a {type(value).__name__}, which JSON cannot represent")
