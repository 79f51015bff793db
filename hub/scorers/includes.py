"""The rule `includes`: the answer contains the target."""

from typing import Literal

from pydantic import field_validator

from hub import extraction
from hub.extraction.normalization import without_struck
from hub.harnesses.base import Services
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict
from hub.scorers.comparison.texts import (
    contains,
    forms,
    prose_as_shown,
    quoted,
    require_targets,
    spellings,
    without_emphasis,
)


class IncludesOptions(ScorerOptions):
    """`target`: a text or a list. `match`: whether the answer must contain `any` or `all` of them."""

    target: object = "{{ target }}"
    match: Literal["any", "all"] = "any"
    ignore_case: bool = True

    @field_validator("target")
    @classmethod
    def _some_target(cls, value: object) -> object:
        return require_targets(value)


class Includes(Scorer[IncludesOptions]):
    type = "includes"
    summary = "The answer contains the target."
    Options = IncludesOptions

    async def score(self, options: IncludesOptions, submission: Submission, services: Services) -> Verdict:
        how = {"ignore_case": options.ignore_case, "ignore_punctuation": False}
        answer = without_struck(extraction.answer_text(submission.text))
        readings = (answer, without_emphasis(answer), prose_as_shown(answer))
        texts = {form for text in readings for form in forms(text, **how)}
        wanted = options.target if isinstance(options.target, list) else [options.target]
        written = [spellings(target) for target in wanted if target is not None]
        missing = [
            ways[0]
            for ways in written
            if not any(contains(text, form) for way in ways for form in forms(way, **how) for text in texts)
        ]
        passed = not missing if options.match == "all" else len(missing) < len(written)
        if passed:
            return Verdict.of(True, "The answer contains the target.")
        return Verdict.of(False, f"The answer lacks {', '.join(quoted(target) for target in missing[:5])}.")
