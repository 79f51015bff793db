"""Answers out of prose: what is marked as final, numbers, chosen letters."""

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from hub.extraction.reading import spoken

# ---- the final answer ------------------------------------------------------------------------------------------------

_ANSWER = re.compile(
    r"(?:\*\*|__)?\b(?:final\s+)?answer\b(?:\s+is)?(?:\*\*|__)?\s*[:=]?\s*(?:\*\*|__)?[ \t]*\n?(?P<rest>[^\n]*)",
    re.IGNORECASE,
)
_HASHES = re.compile(r"####[ \t]*(?P<rest>[^\n]+)")


def final_answer(text: str) -> str | None:
    """What follows the last `\\boxed{}`, `#### ` or "Answer:"; None where there is none of them."""
    text = spoken(text)
    places: list[tuple[int, str]] = []
    boxed = _boxed(text)
    if boxed is not None:
        places.append(boxed)
    places += [(m.start(), m["rest"]) for m in _HASHES.finditer(text)]
    places += [(m.start(), m["rest"]) for m in _ANSWER.finditer(text) if m["rest"].strip() and _is_marked(m[0])]
    if not places:
        return None
    return _bare(max(places)[1])


def _is_marked(said: str) -> bool:
    """ "the answer is 4" and "Answer: 4", but not "answer the question"."""
    return re.match(r"(?:\*\*|__)?(?:final\s+)?answer(?:\s+is\b|(?:\*\*|__)?\s*[:=])", said, re.IGNORECASE) is not None


def _boxed(text: str) -> tuple[int, str] | None:
    start = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    if start < 0:
        return None
    open_at = text.index("{", start)
    depth = 0
    for i in range(open_at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return start, text[open_at + 1 : i]
    return start, text[open_at + 1 :]


def _bare(text: str) -> str:
    """Without emphasis, quotes, TeX's dress and a closing full stop."""
    text = text.strip()
    text = re.sub(r"^\\?\(|\\?\)$|^\$+|\$+$", "", text) if text.startswith(("\\(", "$")) else text
    text = re.sub(r"\\(?:text|mathrm|textbf|mathbf)\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"^(\*\*|__|`|\"|')(.*)\1(\.?)$", r"\2\3", text)
    text = text.strip("*_` ").strip()
    return re.sub(r"(?<=[^.])\.$", "", text).strip("*_` ")


# ---- numbers ---------------------------------------------------------------------------------------------------------

_MINUS = str.maketrans({"−": "-", "–": "-", "‑": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " "})
_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[-+]?)\s?(?:[$€£¥]\s?)?(?P<inner>[-+]?)"
    r"(?P<whole>\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?:[ _]\d{3})+(?!\d)|\d+)?(?P<part>\.\d+)?"
    r"(?P<power>[eE][-+]?\d+|\s?(?:\*|x|×|\\times|\\cdot)\s?10\s?(?:\^|\*\*)\s?\{?[-+]?\d+\}?)?"
    r"(?:\s?/\s?(?P<below>\d+(?:\.\d+)?)(?![\d/]))?(?P<percent>\s?\\?%)?"
)
_FRACTION = re.compile(r"(-?)\s*\\[dt]?frac\{\s*(-?[\d.]+)\s*\}\{\s*(-?[\d.]+)\s*\}")


def number(text: str) -> Fraction | None:
    """The number that *text* gives as its answer: the last one in the final answer, or else the last one of all."""
    marked = final_answer(text)
    if marked is not None:
        found = numbers(marked)
        if found:
            # "Answer: 42 km in 3 hours" means 42; "Answer: 6 * 7 = 42" means 42.
            return (
                numbers(marked.rpartition("=")[2])[0]
                if "=" in marked and numbers(marked.rpartition("=")[2])
                else found[0]
            )
    everything = numbers(spoken(text))
    return everything[-1] if everything else None


def numbers(text: str) -> list[Fraction]:
    """Every number of *text*, in order; percent signs, currencies and units are not part of a number."""
    text = text.translate(_MINUS)
    text = (
        _FRACTION.sub(lambda m: f" {m[1]}{m[2]}/{m[3]} ", text)
        .replace("\\,", "")
        .replace("\\!", "")
        .replace("{,}", ",")
    )
    found = []
    for match in _NUMBER.finditer(text):
        if match["whole"] or match["part"]:
            value = _value(match)
            if value is not None:
                found.append(value)
    return found


def _value(match: re.Match[str]) -> Fraction | None:
    digits = re.sub(r"[,_ ]", "", match["whole"] or "0") + (match["part"] or "")
    power = re.search(r"[-+]?\d+\}?$", re.sub(r".*10\s?(?:\^|\*\*)", "", match["power"])) if match["power"] else None
    exponent = int(power[0].rstrip("}")) if power else 0
    if abs(exponent) > 400 or len(digits) > 400:
        return None
    try:
        value = Fraction(Decimal(digits)) * Fraction(10) ** exponent
        if match["below"]:
            value /= Fraction(Decimal(match["below"]))
    except (InvalidOperation, ZeroDivisionError):
        return None
    return -value if "-" in (match["sign"] + match["inner"]) else value


# ---- choices ---------------------------------------------------------------------------------------------------------


def choice(text: str, labels: Sequence[str], choices: Sequence[str] = ()) -> str | None:
    """The label that *text* chooses, or None: from the final answer, a marked letter, or an option's own text."""
    text = spoken(text)
    marked = final_answer(text)
    if marked is not None:
        found = _label(marked, labels, choices)
        if found is not None:
            return found
    options = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    patterns = [
        rf"(?:correct|right|best)\s+(?:answer|option|choice)\s+(?:is|would be)\s*:?\s*[(\[*_\s]*({options})\b",
        rf"\b(?:option|choice)\s+[(\[*_]*({options})\b(?=[)\]*_.:]*\s+(?:is|as)\b|[)\]*_.]*\s*$)",
        rf"^\s*[(\[*_]*({options})[)\].:*_]*\s*$",
        rf"\*\*\(?({options})\)?[).:]?(?:\s[^*\n]*)?\*\*",
        rf"^\s*\(?({options})[).:]\s",
        rf"\(({options})\)",
    ]
    for pattern in patterns:
        matches = re.findall(pattern, text, re.MULTILINE)
        if matches:
            return str(matches[-1])
    return _label(text.strip(), labels, choices)


def _label(said: str, labels: Sequence[str], choices: Sequence[str]) -> str | None:
    """A label at the beginning of a short answer, or an option's own text."""
    said = _bare(said)
    for label in sorted(labels, key=len, reverse=True):
        if re.match(rf"[(\[*_\s]*{re.escape(label)}(?:[)\].:,*_]|\s*$|\s+[-–—(])", said):
            return label
        if re.fullmatch(rf"{re.escape(label)}", said, re.IGNORECASE):
            return label
    flat = _squeezed(said)
    for label, option in zip(labels, choices, strict=False):
        if _squeezed(option) == flat:
            return label
    return None


def _squeezed(text: str) -> str:
    return re.sub(r"[^\w]+", " ", text.casefold()).strip()
