"""Characters that hide or reorder text, each replaced by one visible character, so that offsets do not change."""

import unicodedata
from html import escape


def visible(text: str) -> str:
    """Return *text* with characters that hide or reorder text, or cannot be encoded, replaced by visible ones."""
    return text if _is_plain(text) else "".join(map(_shown, text))


def escaped(text: str) -> str:
    """Return *text* as HTML. A replaced character has its name as tooltip."""
    if _is_plain(text):
        return escape(text)
    return "".join(
        f'<span class="odd" title="{_name(c)}">{shown}</span>' if (shown := _shown(c)) != c else escape(c) for c in text
    )


def _is_plain(text: str) -> bool:
    return text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()


def _shown(c: str) -> str:
    if c in "\n\t" or c.isprintable():
        return c
    code = ord(c)
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode block Control Pictures
    category = unicodedata.category(c)
    if category in ("Zs", "Co") or c == "\u200d":  # spaces, private use, and the zero-width joiner of emoji
        return c
    return "\u2421" if code == 0x7F else "\ufffd"


def _name(c: str) -> str:
    return f"U+{ord(c):04X} {unicodedata.name(c, 'control')}"
