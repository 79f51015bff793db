"""Units of measures, to see whether two numbers with units state the same quantity."""

import re
from fractions import Fraction

from hub.extraction.numeric.quantities import Found

_UNITS = {
    "length": {
        r"mm|millimet(?:re|er)s?": "0.001",
        r"cm|centimet(?:re|er)s?": "0.01",
        r"km|kilomet(?:re|er)s?": "1000",
        r"m|met(?:re|er)s?": "1",
        r"in|inch(?:es)?": "0.0254",
        r"ft|foot|feet": "0.3048",
        r"yd|yards?": "0.9144",
        r"mi|miles?": "1609.344",
    },
    "mass": {
        r"mg|milligrams?": "0.000001",
        r"g|grams?|grammes?": "0.001",
        r"kg|kilos?|kilograms?": "1",
        r"t|tons?|tonnes?": "1000",
        r"oz|ounces?": "0.028349523125",
        r"lbs?|pounds?": "0.45359237",
    },
    "volume": {
        r"ml|millilit(?:re|er)s?": "0.001",
        r"cl|centilit(?:re|er)s?": "0.01",
        r"dl|decilit(?:re|er)s?": "0.1",
        r"l|lit(?:re|er)s?": "1",
        r"gal|gallons?": "3.785411784",
    },
    "time": {
        r"ms|milliseconds?": "0.001",
        r"s|secs?|seconds?": "1",
        r"mins?|minutes?": "60",
        r"h|hrs?|hours?": "3600",
        r"days?": "86400",
        r"weeks?": "604800",
    },
    "money": {r"cents?|¢|pence|p": "0.01", r"dollars?|usd|euros?|eur|pounds?|gbp": "1"},
    "speed": {r"km/h|kph|kmh": "1", r"mph": "1.609344", r"m/s": "3.6"},
}
_KNOWN = [
    (re.compile(rf"[\s*_-]{{0,4}}(?:an?\s|of\s(?:an?\s)?)?(?:{name})(?![\w/])", re.IGNORECASE), kind, Fraction(factor))
    for kind, units in _UNITS.items()
    for name, factor in units.items()
]
_ROUNDING = Fraction(1, 100)


def in_base_unit(text: str, found: Found) -> tuple[str, Fraction, Fraction] | None:
    """Return the kind of measure of the number *found* in *text*, its unit's factor and its value in the base unit."""
    kind, factor = "", Fraction(0)
    if any(sign in text[found.start : found.end] for sign in "$€£"):
        kind, factor = "money", Fraction(1)
    else:
        for pattern, its_kind, its_factor in _KNOWN:
            if pattern.match(text, found.end):
                kind, factor = its_kind, its_factor
                break
    return (kind, factor, found.quantity.value * found.quantity.scale * factor) if kind else None


def same_measure(text: str, a: Found, b: Found) -> bool:
    """Return whether two numbers of *text* state one quantity in different units: 1.25 litres and 1250 ml."""
    first, second = in_base_unit(text, a), in_base_unit(text, b)
    if first is None or second is None or first[0] != second[0] or first[1] == second[1]:
        return False
    return abs(first[2] - second[2]) <= abs(first[2]) * _ROUNDING
