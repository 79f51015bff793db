"""Removal of the markup around an answer: emphasis, quotation marks, TeX, a final full stop."""

import re

_MATHS = re.compile(
    r"(?:\\\((?P<round>.*)\\\)|\\\[(?P<square>.*)\\\]|(?P<mark>\${1,2})(?P<dollars>[^$]+)(?P=mark))\.?", re.DOTALL
)


def strip_markup(text: str) -> str:
    """Return *text* without emphasis, quotation marks, TeX markup and a final full stop."""
    text = text.strip()
    if maths := _MATHS.fullmatch(text):
        text = (maths["round"] or maths["square"] or maths["dollars"] or "").strip()
    text = re.sub(r"\\(?:text|mathrm|textbf|mathbf|boldsymbol)\{([^{}]*)\}", r"\1", text)
    text = text.strip("*_` ").strip()
    text = without_full_stop(text).strip("*_` ")
    quoted = re.fullmatch(r"([\"'`“‘„«「『])(.*)([\"'`”’“»」』])", text, re.DOTALL)
    return without_full_stop(quoted[2].strip()) if quoted else text


_ABBREVIATION_END = re.compile(r"\b(?:\w\.\w|Jr|Sr|Inc|Ltd|Corp)\.$")  # "U.S.", "Martin Luther King Jr."


def without_full_stop(text: str) -> str:
    if text.endswith("。"):
        return text[:-1]
    if not text.endswith(".") or text.endswith("..") or _ABBREVIATION_END.search(text):
        return text  # an ellipsis, or an abbreviation
    return text[:-1]
