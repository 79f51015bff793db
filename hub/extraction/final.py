"""The part of an answer that is marked as final: boxed, tagged, after "Answer:" or "the answer is", or after ####."""

import re
from functools import lru_cache

from hub.extraction.reading import spoken

_EDGE = r"[*_`# \t>]*"  # Markdown's dress around words
_SUBJECT = r"(?:(?:final|correct|right|best|my)\s+){0,2}(?:answer|choice)"
_WORDS = ("answer", "choice")  # one is in every subject; looking for them is far cheaper than the patterns below
# "Answer: 42", "**Final answer (in km):** 42", at the beginning of a line.
_LABELLED = re.compile(
    rf"^{_EDGE}(?:the\s+)?{_SUBJECT}(?:[ \t]*\([^()\n]{{0,60}}\))?{_EDGE}(?:is[ \t]*)?[:=：]{_EDGE}(?P<rest>.*)$",
    re.IGNORECASE,
)
# A heading "### Answer": what follows is the next line.
_HEADING = re.compile(rf"^{_EDGE}(?:the\s+)?{_SUBJECT}{_EDGE}$", re.IGNORECASE)
# "so the answer to this is 42", anywhere.
_SAID = re.compile(
    rf"\b{_SUBJECT}(?:\s+to\s+[^\n.:?!]{{0,60}}?)?(?:\s+(?:is|was|would\s+be|should\s+be|must\s+be|will\s+be)\b|\s*[:：=])"
    rf"(?!\s+not\b)[ \t]*:?{_EDGE}(?P<rest>[^\n]*)",
    re.IGNORECASE,
)
_TAG = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.IGNORECASE | re.DOTALL)
_HASHES = re.compile(r"^####[ \t]*(?P<rest>[^\n#]+)$", re.MULTILINE)


@lru_cache(maxsize=64)
def final_answer(text: str) -> str | None:
    """What is marked as the answer, its dress taken off; None where nothing is.

    The strongest mark counts, and of equal ones the last: a box, an `<answer>` tag, a line "Answer: …" (or a heading
    "Answer" and the line after it), a sentence "the answer is …", a last line `#### …`.
    """
    text = spoken(text)
    folded = text.casefold()
    worded = any(word in folded for word in _WORDS)
    for find in (_boxed, _tagged, *((_labelled, _said) if worded else ()), _hashed):
        found = find(text)
        if found is not None and bare(found):
            return bare(found)
    return None


def _boxed(text: str) -> str | None:
    start = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    if start < 0:
        return None
    open_at = text.index("{", start)
    depth = 0
    for i in range(open_at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[open_at + 1 : i]
    return text[open_at + 1 :]


def _tagged(text: str) -> str | None:
    start = text.lower().rfind("<answer>")
    match = _TAG.match(text, start) if start >= 0 else None
    return match[1] if match else None


def _labelled(text: str) -> str | None:
    lines = text.split("\n")
    for i in reversed(range(len(lines))):
        if len(lines[i]) > 4000:
            continue  # a paragraph, not a line with a label
        match = _LABELLED.match(lines[i])
        if match and match["rest"].strip():
            return _said(match["rest"]) or match["rest"]
        if match or _HEADING.match(lines[i]):
            following = next((line for line in lines[i + 1 :] if line.strip(" *_`$\t")), None)
            if following is not None:
                return following
    return None


def _said(text: str) -> str | None:
    matches = [match for match in _SAID.finditer(text) if match["rest"].strip()]
    if not matches:
        return None
    # Another sentence after it is no part of the answer.
    return re.split(r"(?<=[.!?])\s+(?=[A-Z])", matches[-1]["rest"], maxsplit=1)[0]


def _hashed(text: str) -> str | None:
    """GSM8K's mark. Four hashes are a heading too, so a text counts on the last line alone, a number anywhere."""
    matches = list(_HASHES.finditer(text))
    if matches and not text[matches[-1].end() :].strip():
        return matches[-1]["rest"]
    numbers = [m["rest"] for m in matches if re.fullmatch(r"[-−$€£]*\d[\d,.]*\s*%?\s*", m["rest"])]
    return numbers[-1] if numbers else None


def bare(text: str) -> str:
    """Without emphasis, quotes, TeX's dress and a closing full stop."""
    text = text.strip()
    text = re.sub(r"^\\?\(|\\?\)$|^\$+|\$+$", "", text) if text.startswith(("\\(", "$")) else text
    text = re.sub(r"\\(?:text|mathrm|textbf|mathbf|boldsymbol)\{([^{}]*)\}", r"\1", text)
    text = text.strip("*_` ").strip()
    text = _without_full_stop(text).strip("*_` ")
    quoted = re.fullmatch(r"([\"'`“‘])(.*)([\"'`”’])", text, re.DOTALL)
    return _without_full_stop(quoted[2].strip()) if quoted else text


def _without_full_stop(text: str) -> str:
    if not text.endswith(".") or text.endswith("..") or re.search(r"\b\w\.\w\.$", text):
        return text  # an ellipsis, or an abbreviation such as U.S.
    return text[:-1]
