"""Parser of written numbers: separators, fractions, powers, percentages, and measures in two units."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from hub.extraction.normalization import UNSPACED
from hub.extraction.numeric.plain_text import plain
from hub.extraction.numeric.scales import CJK_SCALE, FOREIGN_SCALES, PERCENT, scale_of

MAX_DIGITS = 400  # digits of a number, and highest exponent; larger ones are mistakes, and slow to compute

# Directly after the number, these are part of its value: 18k, $1.2M, €3bn.
_SUFFIXES = {"k": 10**3, "m": 10**6, "mn": 10**6, "b": 10**9, "bn": 10**9, "t": 10**12, "tn": 10**12}
# A number may follow or precede characters of scripts without spaces directly.
_LETTER = rf"[^\W{UNSPACED}]"  # also a digit or an underscore
_OTHER_BASE = r"[-+]?0(?:x[0-9a-f]+|b[01]+|o[0-7]+)\b"
OTHER_BASE = re.compile(rf"(?<!\w){_OTHER_BASE}", re.IGNORECASE)  # "0x2A", which is not read
# A full stop in a group of digits, a comma before decimals: "1.234,56", "1 234,56", "1.234.567".
_EUROPEAN = (
    r"\d{1,3}(?:(?:\.\d{3})+|(?:[ ]\d{3})+),\d{1,2}(?!\d|[,.]\d)|\d{1,3}(?:\.\d{3}){2,}(?![\d.])"
    # "1.500 €": cents have two digits, except in a price for a unit ("1.459 €/l")
    r"|[1-9]\d{0,2}\.\d{3}(?=\s?(?:€|euros?\b|eur\b)(?!\s?/|\s(?:per|a|an|each|pro|je|par|por|al)\b))"
)
_ZERO_COMMA = r"0,\d{3,}(?!\d|[,.]\d)"  # "0,125"
_DECIMAL_COMMA = r"\d++,(?:\d{1,2}|\d{4,})(?!\d|[,.]\d)"  # "3,5", but not "3,500"
# "1,234", "12,34,567" (lakhs and crores), "1'234", "1 234", "1234". A comma may also precede decimals.
_WHOLE = (
    r"\d{1,3}(?:,\d{3})+(?!\d)|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)|\d{1,3}(?:['’_]\d{3})+(?!\d)"
    rf"|\d{{1,3}}(?:[ ]\d{{3}})+(?!\d)|(?P<comma>{_DECIMAL_COMMA})|\d+"
)
# "1e5", "1.5 × 10^5"
_SCIENCE = r"[eE][-+]?\d+(?!\w)|\s?(?:[*x×·]|\\times|\\cdot)\s?10\s?(?:\^|\*\*)\s?(?:\{?[-+]?\d+\}?|\([-+]?\d+\))"
_POWER = r"(?:\^|\*\*)\s?(?:\{?(?P<power>-?\d+)\}?|\((?P<bracketed_power>-?\d+)\))"  # "2^5", "2**(-1)"
_DENOMINATOR = r"\s?/\s?(?P<below>\d+(?:\.\d+)?)(?![\d/])"  # "3/4"
_MIXED_FRACTION = r"\s(?P<above_mixed>\d+)\s?/\s?(?P<below_mixed>\d+)(?![\d/])"  # "2 3/4"
_SUFFIX = rf"(?P<suffix>\s?(?:bn|mn|tn|[kmbt]))(?!{_LETTER}|[°/])"  # "18k"
# "5 %", "5 percent", "5 million", "5万"
_SCALE = (
    rf"\s?\\?%|(?:\s(?:{PERCENT}|hundred|thousand|million|billion|trillion|lakhs?|crores?|dozen"
    rf"|{'|'.join(FOREIGN_SCALES)})(?!{_LETTER}))|\s?(?:{CJK_SCALE})"
)
_NUMBER = re.compile(
    rf"(?<!{_LETTER})(?<![.^])(?!{_OTHER_BASE})(?P<sign>[-+]?)(?P<money>[$€£¥₹]\s?)?(?P<inner>[-+]?)"
    rf"(?:(?P<european>{_EUROPEAN})|(?P<zero>{_ZERO_COMMA})|(?P<whole>{_WHOLE})(?P<part>\.\d+)?|(?P<only>\.\d+))"
    rf"(?:(?P<science>{_SCIENCE})|{_POWER}|{_DENOMINATOR}|{_MIXED_FRACTION}|{_SUFFIX})?"
    rf"(?P<scale>{_SCALE})?(?P<ordinal>(?:st|nd|rd|th)\b)?",
    re.IGNORECASE,
)


def _compounds(
    between: str, after: str, units: Sequence[tuple[str, str, int]]
) -> list[tuple[re.Pattern[str], re.Pattern[str], int]]:
    """Return the patterns of two units that are written one after the other, and how many of the smaller make one.

    between: what follows the larger unit. after: what follows the number of the smaller one, which is `{}`. units: the
    larger unit, the smaller one and their ratio.
    """
    return [
        (
            re.compile(rf"\s?(?:{larger}){between}", re.IGNORECASE),
            re.compile(after.replace("{}", f"(?:{smaller})"), re.IGNORECASE),
            ratio,
        )
        for larger, smaller, ratio in units
    ]


_COMPOUNDS = _compounds(
    r",?(?:\s?|\s+and\s+)",
    r"[\s-]?{}(?!\w)",
    [
        (r"days?|d", r"hours?|hrs?|h", 24),
        (r"hours?|hrs?\.?|h", r"minutes?|mins?|m", 60),
        (r"minutes?|mins?\.?|m", r"seconds?|secs?|s", 60),
        (r"feet|foot|ft\.?|['′’]", r"inch(?:es)?|in|[\"″”]|''|′′|’’", 12),
        (r"pounds?|lbs?\.?", r"ounces?|oz", 16),
        (r"dollars?|euros?", r"cents?", 100),
        (r"pounds?", r"pence|p", 100),
    ],
)
_COMPOUNDS += _compounds(r"\s?", r"(?<=[h\s][0-5]\d)(?=\W*\Z|[.,;:!?)]\s)", [(r"h", r"", 60)])  # "3 h 30"
# In metric units "and" or a comma may join two measures: "2 m and 30 cm" of a rectangle.
_COMPOUNDS += _compounds(
    r"\s?",
    r"\s?{}(?![\w/^])",
    [
        (r"kilomet(?:re|er)s?|km", r"met(?:re|er)s?|m", 1000),
        (r"met(?:re|er)s?|m", r"centimet(?:re|er)s?|cm", 100),
        (r"centimet(?:re|er)s?|cm", r"millimet(?:re|er)s?|mm", 10),
        (r"kilograms?|kilos?|kg", r"grams?|grammes?|g", 1000),
        (r"lit(?:re|er)s?|l", r"millilit(?:re|er)s?|ml", 1000),
    ],
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written, and the factor of a percent sign or a word such as million (1 if there is none)."""

    value: Fraction
    scale: Fraction = Fraction(1)
    ordinal: bool = False
    # The same number written in another way, if the text gives both: 5/6 ≈ 0.83, 1.25 litres (or 1250 ml).
    rounded: Fraction | None = None

    def near(self, other: "Quantity", allowed: Fraction, relative: Fraction = Fraction(0)) -> bool:
        """Return whether the two are equal within *allowed*, or within the fraction *relative* of this one.

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
        """Return whether the two may be the same number."""
        return bool(self._readings() & other._readings())

    def _readings(self) -> set[Fraction]:
        rounded = set() if self.rounded is None else {self.rounded}
        return {self.value, self.value * self.scale} | rounded


class Found(NamedTuple):
    """A number and its position in a text."""

    quantity: Quantity
    start: int
    end: int


def numbers(text: str) -> list[Fraction]:
    """Return the values of `quantities`."""
    return [found.value for found in quantities(text)]


def quantities(text: str) -> list[Quantity]:
    """Return every number of *text*, in order. Currencies and units are ignored; a range gives two numbers."""
    return [found.quantity for found in find_numbers(plain(text))]


@lru_cache(maxsize=64)  # the rules for a sentence search it one after the other
def find_numbers(text: str) -> tuple[Found, ...]:
    """Return the numbers of a text that `plain` returned, in order, with their positions."""
    found = []
    for match in _NUMBER.finditer(text):
        value = _value(match)
        if value is not None:
            scale, ordinal = scale_of(match["scale"] or ""), bool(match["ordinal"])
            factor = _suffixed(match)
            is_unit = match["suffix"] and factor == 1 and match.end() == match.end("suffix")
            end = match.start("suffix") if is_unit else match.end()
            found.append(Found(Quantity(value * factor, scale, ordinal), match.start(), end))
    return tuple(_with_compounds(text, found) if len(found) > 1 else found)


def _with_compounds(text: str, found: list[Found]) -> list[Found]:
    """Return *found* with successive numbers joined that state one measure in two units: "1 h 30 min", 5'11".

    Its value is that in the smaller unit; `rounded` is that in the larger one.
    """
    joined = found[:1]
    for item in found[1:]:
        first = joined[-1]
        ratio = _ratio(text, first, item)
        if ratio:
            total = first.quantity.value * ratio + item.quantity.value
            joined[-1] = Found(Quantity(total, rounded=total / ratio), first.start, item.end)
        else:
            joined.append(item)
    return joined


def _ratio(text: str, first: Found, second: Found) -> int | None:
    """Return how many of the unit of *second* make one of *first* if the two state one measure; None otherwise."""
    if first.quantity.value.denominator != 1 or first.quantity.scale != 1 or first.quantity.value < 0:
        return None
    return next(
        (
            ratio
            for larger, smaller, ratio in _COMPOUNDS
            if 0 <= second.quantity.value < ratio
            and larger.fullmatch(text, first.end, second.start)
            and smaller.match(text, second.end)
        ),
        None,
    )


def _suffixed(match: re.Match[str]) -> int:
    """Return the factor of a suffix such as k or M. After a space, or in the wrong case, it is a unit: 5 m, 300 K."""
    written = match["suffix"] or ""
    letter = written.strip()
    if not letter or not (match["money"] or (written == letter and (letter in "kKMB" or len(letter) > 1))):
        return 1
    return _SUFFIXES[letter.lower()]


def _value(match: re.Match[str]) -> Fraction | None:
    """Return the value of a matched number with its sign; None if it is too large or undefined."""
    if match["european"]:
        digits = re.sub("[. ]", "", match["european"]).replace(",", ".")
    elif comma := match["zero"] or match["comma"]:
        digits = comma.replace(",", ".")
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
    """Return *value* with the exponent or denominator that follows it; None if that is too large."""
    if match["science"]:
        exponent = _small(re.sub(r"[{}()]", "", re.split(r"\^|\*\*|[eE]", match["science"])[-1]))
        return None if exponent is None else value * Fraction(10) ** exponent
    if power := match["power"] or match["bracketed_power"]:
        exponent = _small(power)
        return None if exponent is None or value.numerator > 10**6 else value**exponent
    if match["below"]:
        return value / Fraction(Decimal(match["below"][:MAX_DIGITS]))
    if match["below_mixed"]:
        return value + Fraction(int(match["above_mixed"][:MAX_DIGITS]), int(match["below_mixed"][:MAX_DIGITS]))
    return value


def _small(exponent: str) -> int | None:
    exponent = exponent.strip()
    return int(exponent) if len(exponent) <= 4 and abs(int(exponent)) <= MAX_DIGITS else None
