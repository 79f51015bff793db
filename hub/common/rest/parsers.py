"""Parsers of request bodies: JSON with a limit on how deeply it nests, and without text that cannot be stored."""

from collections.abc import Mapping
from typing import IO

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from hub.common.storable import unstorable_character

MAX_DEPTH = 100


class BoundedJSONParser(JSONParser):
    """JSON of at most MAX_DEPTH levels. Deeper values would exceed Python's recursion limit later.

    Texts with U+0000 or a lone surrogate are rejected, because databases cannot store them. Views that accept texts of
    models replace these characters instead: they use TranscriptJSONParser.
    """

    storable_only = True

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
        if self.storable_only and (character := unstorable_character(data)):
            raise ParseError(f"The body contains the character U+{ord(character):04X}, which cannot be stored.")
        return data


class TranscriptJSONParser(BoundedJSONParser):
    """JSON with texts of models. The view replaces characters that cannot be stored."""

    storable_only = False


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
