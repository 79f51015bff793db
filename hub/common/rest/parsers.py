"""Parsers of request bodies: JSON with a limit on how deeply it nests, and without text that cannot be stored."""

from collections.abc import Mapping
from typing import IO

from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser
from rest_framework.utils import json

from hub.common.storable import storable, unstorable_character

MAX_DEPTH = 100
TOO_DEEP = f"nests more than {MAX_DEPTH} levels deep"


class BoundedJSONParser(JSONParser):
    """JSON of at most MAX_DEPTH levels, without an object that has a key twice.

    Deeper values would exceed Python's recursion limit later.

    Texts with U+0000 or a lone surrogate are rejected, because databases cannot store them. Views that accept texts of
    models use TranscriptJSONParser, which replaces these characters.
    """

    storable_only = True

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, object] | None = None
    ) -> dict[str, object]:
        try:
            data = _read_json(stream, str((parser_context or {}).get("encoding", settings.DEFAULT_CHARSET)))
        except RecursionError:
            raise ParseError(f"The body {TOO_DEEP}.") from None
        except ValueError as error:
            raise ParseError(f"JSON parse error - {error}") from None
        if problem := find_problem(data, storable_only=self.storable_only):
            raise ParseError(f"The body {problem}.")
        return data


class TranscriptJSONParser(BoundedJSONParser):
    """JSON with texts of models, which may contain any character. Those that cannot be stored become U+FFFD."""

    storable_only = False

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, object] | None = None
    ) -> dict[str, object]:
        return storable(super().parse(stream, media_type, parser_context))


def _read_json(stream: IO[bytes], encoding: str) -> dict[str, object]:
    """Return the JSON of *stream*. Raises ParseError for a key that is given twice, and ValueError."""
    value: dict[str, object] = json.loads(stream.read().decode(encoding), object_pairs_hook=_object_of)
    return value


def _object_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value: dict[str, object] = {}
    for key, member in pairs:
        if key in value:
            raise ParseError(f"The body has the key {key[:100]!r} twice in one object; remove one.")
        value[key] = member
    return value


def find_problem(value: object, *, storable_only: bool = True) -> str:
    """Return why JSON from a request is refused, as the end of a sentence, or "" if it is not.

    With *storable_only*, texts that databases cannot store are refused, too.
    """
    if depth_exceeds(value, MAX_DEPTH):
        return TOO_DEEP
    if storable_only and (character := unstorable_character(value)):
        return f"contains the character U+{ord(character):04X}, which cannot be stored"
    return ""


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
