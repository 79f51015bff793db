"""Values that a clause or an answer gives: a quantity, several, or an expression that is not worked out."""

from dataclasses import dataclass
from enum import Enum

from hub.extraction.numeric.quantities import Quantity


@dataclass(frozen=True, slots=True)
class NumberReading:
    """The number of an answer, read from `said`; `several` if that gives different values, and so none."""

    quantity: Quantity | None
    said: str = ""
    marked: bool = False
    several: bool = False


class NoValue(Enum):
    SEVERAL = 1  # different values are given
    FORMULA = 2  # an expression that is not worked out


Value = Quantity | NoValue | None


def make_reading(value: Value, said: str, *, marked: bool = False) -> NumberReading:
    return NumberReading(
        value if isinstance(value, Quantity) else None, said.strip(), marked=marked, several=value is NoValue.SEVERAL
    )


def differs(other: Value, value: Value) -> bool:
    if other is None or other is NoValue.FORMULA:
        return False
    return not (isinstance(other, Quantity) and isinstance(value, Quantity) and value.agrees(other))
