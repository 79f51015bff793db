"""Values of clauses and answers: a quantity, several quantities, or a formula that is not evaluated."""

from dataclasses import dataclass
from enum import Enum

from hub.extraction.numeric.quantities import Quantity


@dataclass(frozen=True, slots=True)
class NumberReading:
    """Number read from `text`. `several`: the text gives different values, so `quantity` is None."""

    quantity: Quantity | None
    text: str = ""
    marked: bool = False
    several: bool = False


# Keys beside an answer in JSON, whose numbers are not the answer: {"value": 42, "confidence": 0.9}
CERTAINTIES = ("confidence", "certainty", "probability")


class NoValue(Enum):
    """Reason why a text with numbers has no single value."""

    SEVERAL = 1  # different values are given
    FORMULA = 2  # an expression that is not evaluated


Value = Quantity | NoValue | None


def make_reading(value: Value, text: str, *, marked: bool = False) -> NumberReading:
    return NumberReading(
        value if isinstance(value, Quantity) else None, text.strip(), marked=marked, several=value is NoValue.SEVERAL
    )


def differs(other: Value, value: Value) -> bool:
    """Return whether *other* is one or several values that do not agree with *value*. A formula counts as no value."""
    if other is None or other is NoValue.FORMULA:
        return False
    return not (isinstance(other, Quantity) and isinstance(value, Quantity) and value.agrees(other))
