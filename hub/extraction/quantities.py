"""Numbers as they are written: separators, fractions, powers, percentages, TeX, currencies and units around them."""

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import NamedTuple

MAX_DIGITS = 400  # of a number, and of its exponent's value: more is a mistake, and slow

_SCALES = {
    "hundred": 100,
    "thousand": 10**3,
    "lakh": 10**5,
    "lakhs": 10**5,
    "million": 10**6,
    "crore": 10**7,
    "crores": 10**7,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
}
# Written at the number, they are part of its value: 18k, $1.2M, €3bn.
_SUFFIXES = {"k": 10**3, "m": 10**6, "mn": 10**6, "b": 10**9, "bn": 10**9, "t": 10**12, "tn": 10**12}
_NUMBER = re.compile(
    r"(?<![\w.^])(?P<sign>[-+]?)(?P<money>[$€£¥₹]\s?)?(?P<inner>[-+]?)"
    r"(?:"
    r"(?P<european>\d{1,3}(?:\.\d{3})+,\d{1,2}(?![\d,.]\d)|\d{1,3}(?:\.\d{3}){2,}(?![\d.]))"
    r"|(?P<whole>\d{1,3}(?:,\d{3})+(?!\d)|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)|\d{1,3}(?:['’_]\d{3})+(?!\d)"
    r"|\d{1,3}(?:[ ]\d{3})+(?!\d)|(?P<comma>\d++,\d{1,2}(?!\d|[,.]\d))|\d+)(?P<part>\.\d+)?"
    r"|(?P<only>\.\d+)"
    r")"
    r"(?:"
    r"(?P<science>[eE][-+]?\d+(?!\w)|\s?(?:[*x×·]|\\times|\\cdot)\s?10\s?(?:\^|\*\*)\s?\{?[-+]?\d+\}?)"
    r"|(?:\^|\*\*)\s?\{?(?P<power>-?\d+)\}?"
    r"|\s?/\s?(?P<below>\d+(?:\.\d+)?)(?![\d/])"
    r"|\s(?P<above_mixed>\d+)\s?/\s?(?P<below_mixed>\d+)(?![\d/])"
    r"|(?P<suffix>\s?(?:bn|mn|tn|[kmbt]))(?![\w°/])"
    r")?"
    r"(?P<scale>\s?\\?%|\s(?:percent|per cent|prozent|por ciento|pour cent|hundred|thousand|million|billion|trillion"
    r"|lakhs?|crores?|dozen)\b)?"
    r"(?P<ordinal>(?:st|nd|rd|th)\b)?",
    re.IGNORECASE,
)
_TEX_FRACTION = re.compile(
    r"(-?)[ ]{0,3}\\[dtc]?frac[ ]?(?:\{\s?(-?[\d.,]{1,400})\s?\}|(\d))[ ]?(?:\{\s?(-?[\d.,]{1,400})\s?\}|(\d))"
)
_SUPERSCRIPT = re.compile(r"(?<=\d)(⁻?[⁰¹²³⁴-⁹]+)")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_DASHES = str.maketrans({"−": "-", "‑": "-", "⁄": "/"})
_CURRENCY_NAME = re.compile(
    r"\b(?:US|CA|AU|NZ|HK|R|A|C)?(?=\$\s?\d)|\b(?:Rs\.?|INR|USD|EUR|GBP|JPY|CHF|CAD|AUD)[ ]?(?=[-\d])"
)
_NEGATIVE = re.compile(r"(?<![\d)%] )(?<![\w)%])(?:negative|minus)\s+(?=[$€£]?[\d.])", re.IGNORECASE)
_MIXED = re.compile(r"(?<=\d) and (?=(?:an? )?\d{1,3}/\d)(?:an? )?", re.IGNORECASE)
_TEX_SPACE = re.compile(r"(?<=\d)(?:\\[,!; :]|~)(?=\d{3})|\\[,!;:]")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written, and what a percent sign or a word such as million would make of it (1: nothing)."""

    value: Fraction
    scale: Fraction = Fraction(1)
    ordinal: bool = False
    rounded: Fraction | None = None  # the same number as a rounded decimal, if the text gives both: 5/6 ≈ 0.83

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

    def agrees(self, other: "Quantity") -> bool:
        """Whether the two may be the same number."""
        return bool(self._readings() & other._readings())

    def _readings(self) -> set[Fraction]:
        rounded = set() if self.rounded is None else {self.rounded}
        return {self.value, self.value * self.scale} | rounded


class Found(NamedTuple):
    """A number and where it stands in a text."""

    quantity: Quantity
    start: int
    end: int


def numbers(text: str) -> list[Fraction]:
    """The values of `quantities`."""
    return [found.value for found in quantities(text)]


def quantities(text: str) -> list[Quantity]:
    """Every number of *text*, in order. Currencies and units are no part of a number; ranges are two."""
    return [found.quantity for found in find_numbers(plain(text))]


def find_numbers(text: str) -> list[Found]:
    """The numbers of a text that `plain` returned, in order, with their places."""
    found = []
    for match in _NUMBER.finditer(text):
        value = _value(match)
        if value is not None:
            scale, ordinal = _scale(match["scale"] or ""), bool(match["ordinal"])
            found.append(Found(Quantity(value * _suffixed(match), scale, ordinal), match.start(), match.end()))
    return found


def plain(text: str) -> str:
    """TeX and typography as plain characters."""
    if not text.isascii():
        text = _SUPERSCRIPT.sub(lambda match: f"^{match[1].translate(_SUPERSCRIPTS)}", text)
        text = re.sub(r"(?<=\d)(?=[¼½¾⅐-⅞])", " ", text)
        text = unicodedata.normalize("NFKC", text).translate(_DASHES)
        # A dash before a number is a minus unless it makes a range.
        text = re.sub(r"(?<![\w.)])–(?=[\d.$€£¥])", "-", text)
    if "\\" in text or "{" in text:
        text = _TEX_FRACTION.sub(lambda m: f" {m[1]}{m[2] or m[3]}/{m[4] or m[5]} ", text)
        text = _TEX_SPACE.sub("", text).replace("{,}", ",").replace("\\$", "$")
    text = _CURRENCY_NAME.sub("", re.sub(r"(?<=\d)\.{2,3}(?=\d)", " … ", text))
    return _MIXED.sub(" ", _NEGATIVE.sub("-", text))


def _scale(word: str) -> Fraction:
    word = word.strip().lower()
    if word.endswith("%") or word in ("percent", "per cent", "prozent", "por ciento", "pour cent"):
        return Fraction(1, 100)
    return Fraction(_SCALES.get(word, 1))


def _suffixed(match: re.Match[str]) -> int:
    """What a suffix such as k or M multiplies by. After a space, or in the wrong case, it is a unit: 5 m, 300 K."""
    written = match["suffix"] or ""
    letter = written.strip()
    if not letter or not (match["money"] or (written == letter and (letter in "kKMB" or len(letter) > 1))):
        return 1
    return _SUFFIXES[letter.lower()]


def _value(match: re.Match[str]) -> Fraction | None:
    if match["european"]:
        digits = match["european"].replace(".", "").replace(",", ".")
    elif match["comma"]:
        digits = match["comma"].replace(",", ".")
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
