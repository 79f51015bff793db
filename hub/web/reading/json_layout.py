"""JSON text laid out on indented lines, each token as it was written and with its position in the source."""

import json
import re

MAX_LAID_OUT = 100_000  # characters; longer text is shown as it is
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_OPENING, _CLOSING = "{[", "}]"

Piece = tuple[str, int | None, str]  # text, position in the source (None: added white space), class


def lay_out_json(source: str) -> list[Piece] | None:
    """Return *source* as indented JSON, or None if it is not an object or a list. No token is changed or left out."""
    if len(source) > MAX_LAID_OUT or not source.lstrip()[:1] or source.lstrip()[0] not in _OPENING:
        return None
    try:
        json.loads(source)
    except (ValueError, RecursionError):
        return None
    pieces: list[Piece] = []
    depth, before = 0, ""
    words = list(_WORD.finditer(source))
    for match, after in zip(words, [*words[1:], None], strict=True):
        word = match[0]
        if word in ("}", "]"):
            depth -= 1
        if (before in ("{", "[", ",") and word not in _CLOSING) or (word in _CLOSING and before not in ("{", "[")):
            pieces.append(("\n" + "  " * depth, None, ""))
        pieces.append((word, match.start(), _class(word, after[0] if after else "")))
        if word == ":":
            pieces.append((" ", None, ""))
        if word in _OPENING:
            depth += 1
        before = word
    return pieces


def _class(word: str, after: str) -> str:
    if word[0] == '"':
        return "nk" if after == ":" else "s"
    if word in ("true", "false", "null"):
        return "k"
    return "m" if word[0] in "-0123456789" else ""
