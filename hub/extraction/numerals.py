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
_PARTS = {"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourths": 4, "fifth": 5}
_PARTS |= {"fifths": 5, "sixth": 6, "sixths": 6, "eighth": 8, "eighths": 8, "tenth": 10, "tenths": 10}
_WORD = "|".join(sorted([*_SMALL, *_LARGE, "hundred", "dozen"], key=len, reverse=True))
_PART = "|".join(sorted(_PARTS, key=len, reverse=True))
_NUMERAL = re.compile(
    rf"\b(?:(?P<whole>(?:a\s+)?(?:{_WORD})(?:(?:\s+and\s+|\s*-\s*|\s+)(?:{_WORD}))*+)"
    rf"(?:\s+and\s+(?:an?|one|(?P<above>two|three|four))[\s-]+(?P<part>{_PART})|[\s-]+(?P<of>{_PART}))?"
    rf"|(?P<alone>half|(?:an?|one)\s+(?:half|quarter|third)))\b(?!-)",
    re.IGNORECASE,
)


def words_to_digits(text: str) -> str:
    """*text* with its English number words as digits."""
    return _NUMERAL.sub(_digits, text)


def _digits(match: re.Match[str]) -> str:
    if match["alone"]:
        return f"1/{_PARTS[match['alone'].lower().split()[-1]]}"
    words = re.findall(r"[a-z]+", match["whole"].lower())
    if match["of"] and len(words) == 1 and words[0] in _SMALL:
        return f"{_SMALL[words[0]]}/{_PARTS[match['of'].lower()]}"
    value = _value(words)
    if value is None or match["of"]:
        return match[0]
    if match["part"]:
        above = _SMALL[match["above"].lower()] if match["above"] else 1
        fraction = Fraction(above, _PARTS[match["part"].lower()])
        return f"{value} {fraction.numerator}/{fraction.denominator}"
    return str(value)


def _value(words: list[str]) -> int | None:
    """The number that *words* spell; None where they spell several ("two three")."""
    total = group = 0
    last = 10**15  # what the next word must be smaller than, within a group of three digits
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
