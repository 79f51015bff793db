"""How REST reads bodies of JSON: with a limit on how deeply they nest."""

from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

MAX_DEPTH = 100


class BoundedJSONParser(JSONParser):
    """JSON of at most MAX_DEPTH levels: deeper values end in errors of Python's recursion limit."""

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        too_deep = ParseError(f"The body nests more than {MAX_DEPTH} levels deep.")
        try:
            data: dict[str, Any] = super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise too_deep from None
        if depth_exceeds(data, MAX_DEPTH):
            raise too_deep
        return data


def depth_exceeds(value: Any, limit: int) -> bool:
    """Whether lists and objects nest more than *limit* levels deep."""
    level = [value]
    for _ in range(limit):
        level = [
            item
            for holder in level
            if isinstance(holder, dict | list)
            for item in (holder.values() if isinstance(holder, dict) else holder)
        ]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)
