"""The rule `number`: the answer's number is the target's, within a tolerance."""

from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field, field_validator

from hub import extraction
from hub.harnesses.base import Services
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict
from hub.scorers.texts import shown


class NumberOptions(ScorerOptions):
    """`target`: a number, or a text that ends in one. `tolerance` is absolute, `relative` a share of the target."""

    target: Any = "{{ target }}"
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1e-6
    relative: Annotated[float, Field(ge=0, le=1)] = 0.0

    @field_validator("target")
    @classmethod
    def _a_number(cls, value: Any) -> Any:
        if isinstance(value, bool) or extraction.number(str(value)) is None:
            raise ValueError(f"the target {value!r} holds no number")
        return value


class Number(Scorer):
    type = "number"
    summary = "The answer's number is the target's, within a tolerance."
    Options = NumberOptions

    async def score(self, options: NumberOptions, submission: Submission, services: Services) -> Verdict:
        target = extraction.number(str(options.target))
        found = extraction.number(submission.text)
        assert target is not None  # the options would not have validated
        if found is None:
            return Verdict.of(False, f"Expected {_plain(target)}; the answer holds no number.")
        allowed = max(Fraction(options.tolerance), abs(target) * Fraction(options.relative))
        passed = abs(found - target) <= allowed
        where = extraction.final_answer(submission.text)
        quoted = f" in {shown(where)}" if where else ""
        return Verdict.of(passed, f"Expected {_plain(target)}, found {_plain(found)}{quoted}.", found=_plain(found))


def _plain(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.10g}"
