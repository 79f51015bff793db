"""The rule `exact_match`: the answer is the target, white space aside."""

from typing import Any, Literal

from pydantic import field_validator

from hub.harnesses.base import Services
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict
from hub.scorers.texts import answer, folded, shown, targets


class ExactMatchOptions(ScorerOptions):
    """`target`: a text, or a list of which any is right. `extract`: compare the final `answer`, or the `whole`."""

    target: Any = "{{ target }}"
    ignore_case: bool = False
    ignore_punctuation: bool = False
    extract: Literal["answer", "whole"] = "answer"

    @field_validator("target")
    @classmethod
    def _some_target(cls, value: Any) -> Any:
        if not targets(value):
            raise ValueError("there is no target; give the case one, or the rule a `target`")
        return value


class ExactMatch(Scorer):
    type = "exact_match"
    summary = "The answer is the target, white space aside."
    Options = ExactMatchOptions

    async def score(self, options: ExactMatchOptions, submission: Submission, services: Services) -> Verdict:
        how = {"ignore_case": options.ignore_case, "ignore_punctuation": options.ignore_punctuation}
        found = answer(submission, options.extract)
        accepted = targets(options.target)
        wanted_forms = {folded(target, **how) for target in accepted}
        whole = answer(submission, "whole")
        if folded(whole, **how) in wanted_forms:
            found = whole  # a target such as {"answer": 1} is marked like an answer itself
        if folded(found, **how) in wanted_forms:
            return Verdict.of(True, f"{shown(found)} is the target.", found=found)
        wanted = " or ".join(shown(target) for target in accepted[:3])
        return Verdict.of(False, f"Expected {wanted}, found {shown(found)}.", found=found)
