"""Numbers out of prose and TeX: separators, fractions, powers, percentages, units around them."""

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from hub.extraction.final import final_answer
from hub.extraction.reading import spoken

MAX_DIGITS = 400  # of a number, and of its exponent's value: more is a mistake, and slow

_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_NUMBER = re.compile(
    r"(?<![\w.^])(?P<sign>[-+]?)(?:[$€£¥₹]\s?)?(?P<inner>[-+]?)"
    r"(?:"
    r"(?P<european>\d{1,3}(?:\.\d{3})+,\d{1,2})(?![\d,.]\d)"
    r"|(?P<whole>\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?:['’_]\d{3})+(?!\d)|\d{1,3}(?:[ ]\d{3})+(?!\d)|\d+)(?P<part>\.\d+)?"
    r"|(?P<only>\.\d+)"
    r")"
    r"(?:"
    r"(?P<science>[eE][-+]?\d+(?!\w)|\s?(?:[*x×·]|\\times|\\cdot)\s?10\s?(?:\^|\*\*)\s?\{?[-+]?\d+\}?)"
    r"|(?:\^|\*\*)\s?\{?(?P<power>-?\d+)\}?"
    r"|\s?/\s?(?P<below>\d+(?:\.\d+)?)(?![\d/])"
    r"|\s(?P<above_mixed>\d+)\s?/\s?(?P<below_mixed>\d+)(?![\d/])"
    r")?"
    r"(?P<scale>\s?\\?%|\s(?:percent|thousand|million|billion|trillion)\b)?"
    r"(?P<ordinal>(?:st|nd|rd|th)\b)?",
    re.IGNORECASE,
)
_NOTHING_ELSE = re.compile(r"\d{1,18}(?:\.\d{1,18})?", re.ASCII)
_TEX_FRACTION = re.compile(r"(-?)\s*\\[dt]?frac\{\s*(-?[\d.]{1,400})\s*\}\{\s*(-?[\d.]{1,400})\s*\}")
_SUPERSCRIPT = re.compile(r"(?<=\d)(⁻?[⁰¹²³⁴-⁹]+)")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_DASHES = str.maketrans({"−": "-", "‑": "-", "⁄": "/"})


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written, and what a percent sign or a word such as million would make of it (1: nothing)."""

    value: Fraction
    scale: Fraction = Fraction(1)
    ordinal: bool = False

    def near(self, other: "Quantity", allowed: Fraction, relative: Fraction = Fraction(0)) -> bool:
        """Whether the two mean the same, up to *allowed*, or to the share *relative* of this one.

        "50 %" may stand for 50 or for 0.5, and "3 million" for 3 or for 3000000, unless both are written that way.
        """
        if self.value == other.value and self.scale == other.scale:
            return True
        if self.scale != 1 and other.scale != 1:
            pairs = [(self.value * self.scale, other.value * other.scale)]
            allowed *= self.scale  # the tolerance is meant for the numbers as written
        else:
            pairs = [(a, b) for a in self._readings() for b in other._readings()]
        return any(abs(a - b) <= max(allowed, abs(a) * relative) for a, b in pairs)

    def _readings(self) -> set[Fraction]:
        return {self.value, self.value * self.scale}


def number(text: str) -> Fraction | None:
    """The value of `quantity`."""
    found = quantity(text)
    return found.value if found else None


def quantity(text: str) -> Quantity | None:
    """The number that *text* gives as its answer: the one in the marked answer, or else the last one of all."""
    if _NOTHING_ELSE.fullmatch(text):
        return Quantity(Fraction(text))  # most targets are that
    marked = final_answer(text)
    if marked is not None:
        found = quantities(_clause(marked))
        if found:
            return found[0]
    everything = quantities(spoken(text))
    plain = [found for found in everything if not found.ordinal] or everything
    return plain[-1] if plain else None


def _clause(marked: str) -> str:
    """The part that gives the number: "5, since 2 = 2" up to the comma, "6 * 7 = 42" from the sign on."""
    clause = re.split(r"[,;]\s|\.\s|\s\(|\bbecause\b|\bsince\b", marked, maxsplit=1)[0]
    if not quantities(clause):
        clause = marked
    after = re.split(r"=|≈|\bequals\b", clause)[-1]
    return after if quantities(after) else clause


def numbers(text: str) -> list[Fraction]:
    """The values of `quantities`."""
    return [found.value for found in quantities(text)]


def quantities(text: str) -> list[Quantity]:
    """Every number of *text*, in order. Currencies and units are no part of a number; ranges are two."""
    found = []
    for match in _NUMBER.finditer(_plain(text)):
        value = _value(match)
        if value is not None:
            found.append(Quantity(value, _scale(match["scale"] or ""), bool(match["ordinal"])))
    return found


def _plain(text: str) -> str:
    """TeX and typography as plain characters."""
    if not text.isascii():
        text = _SUPERSCRIPT.sub(lambda match: f"^{match[1].translate(_SUPERSCRIPTS)}", text)
        text = re.sub(r"(?<=\d)(?=[¼½¾⅐-⅞])", " ", text)
        text = unicodedata.normalize("NFKC", text).translate(_DASHES)
        # A dash before a number is a minus unless it makes a range.
        text = re.sub(r"(?<![\w.)])–(?=[\d.$€£¥])", "-", text)
    if "\\" not in text and "{" not in text:
        return text
    text = _TEX_FRACTION.sub(lambda m: f" {m[1]}{m[2]}/{m[3]} ", text)
    return text.replace("\\,", "").replace("\\!", "").replace("{,}", ",").replace("\\$", "$")


def _scale(word: str) -> Fraction:
    word = word.strip().lower()
    if word.endswith("%") or word == "percent":
        return Fraction(1, 100)
    return Fraction(_SCALES.get(word, 1))


def _value(match: re.Match[str]) -> Fraction | None:
    if match["european"]:
        digits = match["european"].replace(".", "").replace(",", ".")
    else:
        digits = re.sub(r"[,_'’ ]", "", match["whole"] or "0") + (match["part"] or match["only"] or "")
    try:
        value = _powered(Fraction(Decimal(digits)), match) if len(digits) <= MAX_DIGITS else None
    except (InvalidOperation, ZeroDivisionError):
        return None
    if value is None:
        return None
    return -value if "-" in match["sign"] + match["inner"] else value


def _powered(value: Fraction, match: re.Match[str]) -> Fraction | None:
    """*value* with the exponent or denominator that follows it; None where that is beyond all bounds."""
    if match["science"]:
        exponent = _small(re.sub(r"[{}]", "", re.split(r"\^|\*\*|[eE]", match["science"])[-1]))
        return None if exponent is None else value * Fraction(10) ** exponent
    if match["power"]:
        exponent = _small(match["power"])
        return None if exponent is None or value.numerator > 10**6 else value**exponent
    if match["below"]:
        return value / Fraction(Decimal(match["below"][:MAX_DIGITS]))
    if match["below_mixed"]:
        return value + Fraction(int(match["above_mixed"][:MAX_DIGITS]), int(match["below_mixed"][:MAX_DIGITS]))
    return value


def _small(exponent: str) -> int | None:
    exponent = exponent.strip()
    return int(exponent) if len(exponent) <= 4 and abs(int(exponent)) <= MAX_DIGITS else None
