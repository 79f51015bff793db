"""The rule `number`: the answer's number equals the target's within a tolerance."""

from fractions import Fraction
from functools import lru_cache
from typing import Annotated

from pydantic import Field, field_validator

from hub import extraction
from hub.harnesses.base import Services
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict
from hub.scorers.comparison.texts import quoted

_DEFAULT_TOLERANCE = 1e-6


class NumberOptions(ScorerOptions):
    """`target`: a number, or a text that ends in one. `tolerance` is absolute, `relative` a fraction of the target.

    The default tolerance, 1e-6, is at most a thousandth of the target: 0 is not right for a target of 1e-9.
    A percent sign or a word such as million may be applied or ignored; see `Quantity.near`.
    """

    target: object = "{{ target }}"
    tolerance: Annotated[float, Field(ge=0)] = _DEFAULT_TOLERANCE
    relative: Annotated[float, Field(ge=0, le=1)] = 0.0

    @field_validator("target")
    @classmethod
    def _a_number(cls, value: object) -> object:
        if isinstance(value, bool) or _of_target(str(value)) is None:
            raise ValueError(f"the target {value!r} contains no number; give a number, or a text that ends in one")
        return value


@lru_cache(maxsize=1024)
def _of_target(text: str) -> extraction.Quantity | None:
    # Read at least twice for each case: by the check of the options and by the score. A target may be a worked solution
    # whose last sentence has several numbers.
    return extraction.quantity(text) or next(reversed(extraction.quantities(text)), None)


class Number(Scorer[NumberOptions]):
    type = "number"
    summary = "The answer's number equals the target's within a tolerance."
    Options = NumberOptions

    async def score(self, options: NumberOptions, submission: Submission, services: Services) -> Verdict:
        target = _of_target(str(options.target))
        reading = extraction.read_number(submission.text)
        found = reading.quantity
        assert target is not None  # checked by the options' validator
        wanted = _plain(target.value)
        if reading.several:
            return Verdict.of(False, f"Expected {wanted}; {quoted(reading.text)} does not give a single number.")
        if found is None:
            return Verdict.of(False, f"Expected {wanted}; the answer contains no number.")
        passed = target.near(found, _allowed(options.tolerance, target.value), _as_written(options.relative))
        said = _plain(found.value)
        where = f"in {quoted(reading.text)}" if reading.marked else "as the last number"
        if passed:
            return Verdict.of(True, f"Found {said} {where}.", found=said)
        return Verdict.of(False, f"Expected {wanted}, found {said} {where}.", found=said)


def _allowed(tolerance: float, target: Fraction) -> Fraction:
    """Return the absolute tolerance for *target*. Like the scoring digest, it depends on the option's value alone."""
    allowed = _as_written(tolerance)
    return min(allowed, abs(target) / 1000) if target and tolerance == _DEFAULT_TOLERANCE else allowed


def _as_written(tolerance: float) -> Fraction:
    """Return the decimal value of *tolerance*: 0.3, not the binary number next to it, which is smaller."""
    return Fraction(str(tolerance))


def _plain(value: Fraction) -> str:
    if value.denominator == 1 and abs(value.numerator) < 10**20:
        return str(value.numerator)
    try:
        return f"{float(value):.10g}"
    except OverflowError:
        return f"{len(str(abs(value.numerator) // value.denominator))} digits"
