"""Text of models, datasets and users, made safe to print on a terminal."""

import re
import unicodedata

# Terminal sequences: CSI (colours, cursor), OSC (titles, links), and the two-character ones.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")


def clean(text: str, *, lines: bool = False) -> str:
    """Return foreign text without terminal sequences, control and format characters, and lone surrogates.

    A model's answer may contain them to hide its text or to overwrite other text on the screen. The result is one line,
    unless *lines* keeps line ends and tabs.
    """
    text = _ESCAPES.sub("", text)
    if not lines:
        text = " ".join(text.split())
    keep = "\n\t" if lines else ""
    return "".join(c for c in text if c in keep or c.isprintable() or unicodedata.category(c) in ("Zs", "Co"))
