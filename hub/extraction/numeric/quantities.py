"""Parser of written numbers: separators, fractions, powers, percentages, TeX, currencies and units."""

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from hub.extraction.normalization import UNSPACED

MAX_DIGITS = 400  # digits of a number, and highest exponent; larger ones are mistakes, and slow to compute

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
# The same words in other languages, as patterns. A longer word comes before its prefixes.
_FOREIGN_SCALES = {
    r"mil millones": 10**9,
    r"mio\.?|mln\.?|millionen|millions|million(?:er|s)|mill(?:ón|ones)|milh(?:ão|ões)|milion[ei]|milion(?:y|ów)?"
    r"|miljo(?:en|n|ner)|milyon|juta|triệu|миллион(?:а|ов)?|млн\.?|مليون": 10**6,
    r"mrd\.?|mld\.?|milliarden?|milliards?|milliarder|miliard[oiy]?|miliardów|miljard(?:er)?|milyar|miliar|tỷ"
    r"|bilh(?:ão|ões)|миллиард(?:а|ов)?|млрд\.?|مليار": 10**9,
    r"billionen|bill(?:ón|ones)|триллион(?:а|ов)?|трлн\.?": 10**12,
    r"tausend|tsd\.?|mille|mila|mil|duizend|tusen|tys\.?|tysi(?:ąc|ące|ęcy)|ribu|nghìn|тысяч[аи]?|тыс\.?": 10**3,
}
_CJK_SCALES = {"百": 10**2, "千": 10**3, "천": 10**3, "万": 10**4, "萬": 10**4, "만": 10**4}
_CJK_SCALES |= {"百万": 10**6, "千万": 10**7, "亿": 10**8, "億": 10**8, "억": 10**8, "兆": 10**12, "조": 10**12}
_CJK_SCALE = "|".join(sorted(_CJK_SCALES, key=len, reverse=True))
# Directly after the number, these are part of its value: 18k, $1.2M, €3bn.
_SUFFIXES = {"k": 10**3, "m": 10**6, "mn": 10**6, "b": 10**9, "bn": 10**9, "t": 10**12, "tn": 10**12}
# A number may follow or precede characters of scripts without spaces directly.
_LETTER = rf"[^\W{UNSPACED}]"  # also a digit or an underscore
_PERCENT = (
    r"percent|per cent|prozent|por ciento|pour cent|por cento|per cento|procent(?:a|en)?|процент(?:а|ов)?"
    r"|パーセント|퍼센트"
)
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
    rf"\s?\\?%|(?:\s(?:{_PERCENT}|hundred|thousand|million|billion|trillion|lakhs?|crores?|dozen"
    rf"|{'|'.join(_FOREIGN_SCALES)})(?!{_LETTER}))|\s?(?:{_CJK_SCALE})"
)
_NUMBER = re.compile(
    rf"(?<!{_LETTER})(?<![.^])(?!{_OTHER_BASE})(?P<sign>[-+]?)(?P<money>[$€£¥₹]\s?)?(?P<inner>[-+]?)"
    rf"(?:(?P<european>{_EUROPEAN})|(?P<zero>{_ZERO_COMMA})|(?P<whole>{_WHOLE})(?P<part>\.\d+)?|(?P<only>\.\d+))"
    rf"(?:(?P<science>{_SCIENCE})|{_POWER}|{_DENOMINATOR}|{_MIXED_FRACTION}|{_SUFFIX})?"
    rf"(?P<scale>{_SCALE})?(?P<ordinal>(?:st|nd|rd|th)\b)?",
    re.IGNORECASE,
)
_TEX_FRACTION = re.compile(
    r"(-?)[ ]{0,3}\\[dtc]?frac[ ]?(?:\{\s?(-?[\d.,]{1,400})\s?\}|(\d))[ ]?(?:\{\s?(-?[\d.,]{1,400})\s?\}|(\d))"
)
_SUPERSCRIPT = re.compile(r"((?:(?<=\d)⁻?|(?<=[^\W\d_])⁻)[⁰¹²³⁴-⁹]+)")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_DASHES = str.maketrans({"−": "-", "‑": "-", "⁄": "/"})
_CURRENCY_NAME = re.compile(
    r"\b(?:US|CA|AU|NZ|HK|R|A|C)?(?=\$\s?\d)|\b(?:Rs\.?|INR|USD|EUR|GBP|JPY|CHF|CAD|AUD)[ ]?(?=[-\d])"
)
# "negative 5", "La réponse est moins 5" (not "au moins 5", at least 5), "负5" (not the losses in "胜2负5").
_NEGATIVE = re.compile(
    r"(?<![\d)%] )(?<![\w)%])(?:negative|minus|минус)\s+(?=[$€£]?[\d.])"
    r"|(?:^\W{0,3}|(?<=[:=] )|(?<=\best )|(?<=\bes )|(?<=è )|(?<=é )|(?<=\bde ))(?:moins|menos|meno)\s(?=[$€£]?[\d.])"
    r"|(?<![\d胜勝])[负負](?=\d)",
    re.IGNORECASE,
)
_MIXED = re.compile(r"(?<=\d) and (?=(?:an? )?\d{1,3}/\d)(?:an? )?", re.IGNORECASE)
# "13 degrees below zero" is -13, also in other languages.
_DEGREES = (
    r"(?:\s?°\s?[CF]?|\s(?:degrees?|degrés?|grados?|graus?|gradi"
    r"|Grad|graden|grader|stopni)(?:\s(?:Celsius|Fahrenheit|[CF]))?)?"
)
# "1h30m", "1h30"
_JOINED_UNITS = re.compile(r"\d(?:(?:h|m|min)(?=\d{1,2}\s?[ms])|h(?=[0-5]\d\b))", re.IGNORECASE)
_SPACED_SIGN = re.compile(r"(=\s?)-\s(?=[\d.$])")  # "x = - 5"
# The sign of a number, and not a difference, before a space: "− 5", "Answer: − 5", "is − 5".
_SPACED_MINUS = re.compile(r"(?<![\w)\]}%°$*])(?<![\w)\]}%°$*]\s)(?<!\s\s)−\s(?=[\d.])|(?<=\bis )−\s(?=[\d.])")
_BELOW_ZERO = re.compile(
    rf"(?<![-\w.,])(\d+(?:[.,]\d+)?)(?={_DEGREES}\s(?:below\s(?:zero|0)|unter\s(?:null|0)|bajo\scero|sous\széro"
    r"|sotto\s(?:lo\s)?zero|abaixo\sde\szero|onder\snul|under\s(?:noll|nul|null)|poniżej\szera|ниже\sнуля)(?!\w))"
    r"|(?:零下|영하\s?|氷点下|マイナス)(\d+(?:\.\d+)?)",
    re.IGNORECASE,
)
_PARTS = {"third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10}
_PARTS |= {"eleventh": 11, "twelfth": 12, "fifteenth": 15, "sixteenth": 16, "twentieth": 20, "hundredth": 100}
# "5 twelfths"; "3 quarters" may be coins or parts of a year.
_COUNTED_PARTS = re.compile(
    rf"(?<![\d./,])(\d{{1,3}})[ -](?:({'|'.join(_PARTS)})s|(?<=1[ -])({'|'.join(_PARTS)}))\b", re.IGNORECASE
)
# "3亿5000万", "1万2000".
_CJK_SUM = re.compile(
    rf"(?<![\d.,])\d{{1,12}}(?:{_CJK_SCALE})(?:\d{{1,4}}(?:{_CJK_SCALE}))*+(?:\d{{2,4}})?(?![\d.,]\d)"
)
_CJK_TERM = re.compile(rf"(\d+)({_CJK_SCALE})?")


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
_MINUTES = r"(?:['′’](?!['′’])|\^\{?\\prime\}?(?!\\prime)|\s?(?:arc ?)?min(?:ute)?s?\b)"
_SECONDS = r"(?:[\"″”]|''|′′|’’|\^\{?\\prime\\prime\}?|\s?(?:arc ?)?sec(?:ond)?s?\b)"
# An angle in degrees, minutes and seconds: 30°15', 30^\circ 15' 20".
_ANGLE = re.compile(
    r"(?<![\d.,/])(\d{1,4})(?:\s?°|\s?\^\s?\{?\\circ\}?|\s?(?:degrees?|deg)\b),?\s?(?:and\s)?"
    rf"([0-5]?\d(?:\.\d{{1,9}})?){_MINUTES}(?:,?\s?(?:and\s)?([0-5]?\d(?:\.\d{{1,9}})?){_SECONDS})?"
    r"(?!\s(?:later|earlier|after|before|ago)\b)",
    re.IGNORECASE,
)
# "120 = 5!", "120 (5!)", "120, which is 5!". From 3! on, as in "4 - 2 = 2!" the mark ends a sentence.
_AS_FACTORIAL = re.compile(
    r"(?<![\w.,])(\d{1,3}(?:,\d{3})+|\d{1,19})(\s?\(\s?=?\s?|\s?=\s?|,?\s(?:which is|or)\s)([3-9]|1\d|20)!"
    r"(?!\s?[-+*/×·÷^=!(\d])"
)
# "x ≡ 2 mod 5", "2 \\pmod{5}": a smaller number is its own remainder.
_MODULUS = re.compile(r"(?<![\w.,])(\d{1,9})\$?\s?(?:\\[pb]?mod|\(?mod(?:ulo)?)\s?\{?\$?(\d{1,9})(?![\w.]\d)[)}]?")
_TEX_SPACE = re.compile(r"(?<=\d)(?:\\[,!; :]|~)(?=\d{3})|\\[,!;:]")


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
            scale, ordinal = _scale(match["scale"] or ""), bool(match["ordinal"])
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


# "9.8 m s^-2", "\\text{mol}^{-1}": the power of a unit. Units that are common names of matrices are not among them.
_UNIT_POWER = re.compile(
    r"(?:(?<![^\W\d_])(?:[cdkmn]?m|m?s|min|h|k?g|mol|K|L|Pa|Hz|eV)\}?)\^[{(]?\s?[-−]\s?[1-4][})]?(?!\w)"
)


@lru_cache(maxsize=64)  # as find_numbers
def plain(text: str) -> str:
    """Return *text* with TeX and typographic characters as plain characters."""
    if not text.isascii():
        text = _SPACED_MINUS.sub("−", text)
        text = _SUPERSCRIPT.sub(lambda match: f"^{match[1].translate(_SUPERSCRIPTS)}", text)
        text = re.sub(r"(?<=\d)(?=[¼½¾⅐-⅞])", " ", text)
        text = unicodedata.normalize("NFKC", text).translate(_DASHES)
        # A dash before a number is a minus unless it makes a range.
        text = re.sub(r"(?<![\w.)])–(?=[\d.$€£¥])", "-", text)
        text = _CJK_SUM.sub(_sum, text)
    if "\\" in text or "{" in text:
        text = _TEX_FRACTION.sub(_plain_fraction, text)
        text = _TEX_SPACE.sub("", text).replace("{,}", ",").replace("\\$", "$")
    if "^" in text:
        text = _UNIT_POWER.sub(lambda match: match[0].partition("^")[0], text)
    text = _ANGLE.sub(_in_degrees, text)
    if "mod" in text:
        text = _MODULUS.sub(lambda match: match[1] if int(match[1]) < int(match[2]) else match[0], text)
    if "!" in text:
        text = _AS_FACTORIAL.sub(_without_factorial, text)
    text = _COUNTED_PARTS.sub(lambda m: f"{m[1]}/{_PARTS[(m[2] or m[3]).lower()]}", text)
    text = _SPACED_SIGN.sub(r"\1-", _JOINED_UNITS.sub(r"\g<0> ", text))
    text = _BELOW_ZERO.sub(lambda m: f"-{m[1] or m[2]}", text)
    text = _CURRENCY_NAME.sub("", re.sub(r"(?<=\d)\.{2,3}(?=\d)", " … ", text))
    return _MIXED.sub(" ", _NEGATIVE.sub("-", text))


def _plain_fraction(match: re.Match[str]) -> str:
    after = match.string[match.end() : match.end() + 1]
    space = "" if after.isalpha() else " "  # a letter directly after it is a factor: \frac{1}{2}x
    return f" {match[1]}{match[2] or match[3]}/{match[4] or match[5]}{space}"


def _in_degrees(match: re.Match[str]) -> str:
    """Return an angle as a mixed fraction of degrees: 30°15' as "30 1/4°"."""
    part = Fraction(match[2]) / 60 + Fraction(match[3] or 0) / 3600
    return f"{match[1]} {part.numerator}/{part.denominator}°" if part else f"{match[1]}°"


def _without_factorial(match: re.Match[str]) -> str:
    """Return "120" of "120 = 5!"; a text such as "2 + 3 = 5!", where a sentence ends, stays as it is."""
    number = int(match[1].replace(",", ""))
    if number != math.factorial(int(match[3])):
        return match[0]
    return f"{match[1]} (" if "(" in match[2] else match[1]


def _sum(match: re.Match[str]) -> str:
    """Return the value of "3亿5000万" in digits; a text with one scale, or with growing ones, stays as it is."""
    terms = [(int(digits), _CJK_SCALES.get(scale, 1)) for digits, scale in _CJK_TERM.findall(match[0])]
    falling = all(value * scale < before for (_, before), (value, scale) in pairwise(terms))
    return str(sum(value * scale for value, scale in terms)) if len(terms) > 1 and falling else match[0]


def _scale(word: str) -> Fraction:
    word = word.strip().lower()
    if word.endswith("%") or re.fullmatch(_PERCENT, word):
        return Fraction(1, 100)
    scale = _SCALES.get(word) or _CJK_SCALES.get(word)
    if not scale and word:
        scale = next((scale for pattern, scale in _FOREIGN_SCALES.items() if re.fullmatch(pattern, word)), None)
    return Fraction(scale or 1)


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
