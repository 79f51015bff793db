"""TeX, typographic characters and words around numbers as plain characters, before the numbers are read."""

import math
import re
import unicodedata
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from hub.extraction.numeric.number_words import PARTS
from hub.extraction.numeric.scales import CJK_SCALE, CJK_SCALES

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
# "2 and a half", "3 and three quarters"
_MIXED_WORDS = re.compile(r"(?<=\d) and (?:(?:a|one) (half|third|quarter)|three (quarters))\b", re.IGNORECASE)
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
# "5 twelfths". Not "3 quarters", which may be coins or parts of a year.
_COUNTED = [
    *("third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    *("eleventh", "twelfth", "fifteenth", "sixteenth", "twentieth", "hundredth"),
]
_COUNTED_PARTS = re.compile(
    rf"(?<![\d./,])(\d{{1,3}})[ -](?:({'|'.join(_COUNTED)})s|(?<=1[ -])({'|'.join(_COUNTED)}))\b",
    re.IGNORECASE,
)
# "3亿5000万", "1万2000".
_CJK_SUM = re.compile(rf"(?<![\d.,])\d{{1,12}}(?:{CJK_SCALE})(?:\d{{1,4}}(?:{CJK_SCALE}))*+(?:\d{{2,4}})?(?![\d.,]\d)")
_CJK_TERM = re.compile(rf"(\d+)({CJK_SCALE})?")
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
# "3 : 2", "the ratio is 3 : 2"; the colon of "Step 2 : 42" follows a label.
_SPACED_RATIO = re.compile(
    r"(?:(?P<entire>^\W{0,9}\d[\d.,]{0,20})\s:\s(?=\d[\d.,]{0,20}\W*$)"
    r"|(?P<given>(?:[={(]\s?|\b(?:is|are|was|were|be|of)\s)\d[\d.,]{0,20})\s:\s(?=\d))",
    re.IGNORECASE,
)
_TEX_SPACE = re.compile(r"(?<=\d)(?:\\[,!; :]|~)(?=\d{3})|\\[,!;:]")
# "9.8 m s^-2", "\\text{mol}^{-1}": the power of a unit. Units that are common names of matrices are not among them.
_UNIT_POWER = re.compile(
    r"(?:(?<![^\W\d_])(?:[cdkmn]?m|m?s|min|h|k?g|mol|K|L|Pa|Hz|eV)\}?)\^[{(]?\s?[-−]\s?[1-4][})]?(?!\w)"
)


@lru_cache(maxsize=64)  # the rules for a sentence call it one after the other
def plain(text: str) -> str:
    """Return *text* with TeX, typographic characters and words such as "negative" as plain characters."""
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
    if " : " in text:
        text = _SPACED_RATIO.sub(lambda match: f"{match['entire'] or match['given']}:", text)
    if "!" in text:
        text = _AS_FACTORIAL.sub(_without_factorial, text)
    text = _COUNTED_PARTS.sub(lambda m: f"{m[1]}/{PARTS[(m[2] or m[3]).lower()]}", text)
    text = _SPACED_SIGN.sub(r"\1-", _JOINED_UNITS.sub(r"\g<0> ", text))
    text = _BELOW_ZERO.sub(lambda m: f"-{m[1] or m[2]}", text)
    text = _CURRENCY_NAME.sub("", re.sub(r"(?<=\d)\.{2,3}(?=\d)", " … ", text))
    text = _MIXED_WORDS.sub(lambda m: f" {3 if m[2] else 1}/{PARTS[(m[1] or m[2]).lower()]}", text)
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
    terms = [(int(digits), CJK_SCALES.get(scale, 1)) for digits, scale in _CJK_TERM.findall(match[0])]
    falling = all(value * scale < before for (_, before), (value, scale) in pairwise(terms))
    return str(sum(value * scale for value, scale in terms)) if len(terms) > 1 and falling else match[0]
