"""English number words as digits: "twenty-one", "two and a half", "three quarters"."""

import re
from fractions import Fraction

_UNITS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SMALL = {word: value for value, word in enumerate(_UNITS)} | {word: 20 + 10 * i for i, word in enumerate(_TENS)}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
# Names of the parts of a whole, by the number of them: "three quarters" is 3/4.
PARTS = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7}
PARTS |= {"eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14}
PARTS |= {"fifteenth": 15, "sixteenth": 16, "seventeenth": 17, "eighteenth": 18, "nineteenth": 19, "twentieth": 20}
PARTS |= {"thirtieth": 30, "fortieth": 40, "fiftieth": 50, "sixtieth": 60, "hundredth": 100, "thousandth": 1000}
PARTS |= {f"{part}s": value for part, value in PARTS.items() if part not in ("half", "halves")}
_WORD = "|".join(sorted([*_SMALL, *_LARGE, "hundred", "dozen"], key=len, reverse=True))
_ABOVE = "|".join(sorted(_UNITS[2:], key=len, reverse=True))
_PART = "|".join(sorted(PARTS, key=len, reverse=True))
_NUMERAL = re.compile(
    rf"\b(?:(?P<whole>(?:a\s+)?(?:{_WORD})\b"
    rf"(?:(?!\s+and\s+(?:{_ABOVE})[\s-]+(?:{_PART})\b)(?:\s+and\s+|\s*-\s*|\s+)(?:{_WORD})\b)*+)"
    rf"(?:\s+and\s+(?:an?|one|(?P<above>{_ABOVE}))[\s-]+(?P<part>{_PART})|[\s-]+(?P<of>{_PART}))?"
    rf"|(?P<alone>half|(?:an?|one)[\s-]+(?:{_PART})))\b(?!-)",
    re.IGNORECASE,
)


def words_to_digits(text: str) -> str:
    """Return *text* with English number words replaced by digits."""
    return _NUMERAL.sub(_digits, text)


def _digits(match: re.Match[str]) -> str:
    if match["alone"]:
        return f"1/{PARTS[match['alone'].lower().replace('-', ' ').split()[-1]]}"
    words = re.findall(r"[a-z]+", match["whole"].lower())
    value = _value(words)
    # "twenty-fifth" is a position, "twenty fifths" and "one fifth" are fractions.
    if match["of"] and value is not None and (value == 1 or match["of"].lower().endswith("s")):
        return f"{value}/{PARTS[match['of'].lower()]}"
    if value is None or match["of"]:
        return match[0]
    if match["part"]:
        above = _SMALL[match["above"].lower()] if match["above"] else 1
        fraction = Fraction(above, PARTS[match["part"].lower()])
        return f"{value} {fraction.numerator}/{fraction.denominator}"
    return str(value)


def _value(words: list[str]) -> int | None:
    """Return the number that *words* spell; None if they spell several ("two three")."""
    total = group = 0
    last = 10**15  # upper limit of the next word within a group of three digits
    for word in words:
        if word in ("a", "and"):
            continue
        if word == "dozen":
            return (total + group or 1) * 12
        if word == "hundred":
            group, last = (group or 1) * 100, 100
        elif word in _LARGE:
            total, group, last = total + (group or 1) * _LARGE[word], 0, 10**15
        elif _SMALL[word] < last and (group % 100 == 0 or (group % 10 == 0 and 0 < _SMALL[word] < 10)):
            group, last = group + _SMALL[word], _SMALL[word]
        else:
            return None
    return total + group
