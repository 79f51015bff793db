"""Parsers of request bodies: JSON with a limit on how deeply it nests."""

from collections.abc import Mapping
from typing import IO

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

MAX_DEPTH = 100


class BoundedJSONParser(JSONParser):
    """JSON of at most MAX_DEPTH levels. Deeper values would exceed Python's recursion limit later."""

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, object] | None = None
    ) -> dict[str, object]:
        too_deep = ParseError(f"The body nests more than {MAX_DEPTH} levels deep.")
        try:
            data: dict[str, object] = super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise too_deep from None
        if depth_exceeds(data, MAX_DEPTH):
            raise too_deep
        return data


def depth_exceeds(value: object, limit: int) -> bool:
    """Return whether lists and objects nest more than *limit* levels deep."""
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
