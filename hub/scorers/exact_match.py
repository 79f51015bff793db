"""The rule `exact_match`: the answer equals the target, except for white space."""

import re
from typing import Literal

from pydantic import field_validator

from hub.extraction import final_answer_as_written, strip_markup
from hub.extraction.fences import split
from hub.extraction.normalization import without_struck
from hub.harnesses.base import Services
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict
from hub.scorers.comparison.texts import (
    compared_text,
    forms,
    normalized,
    quoted,
    quoted_difference,
    require_targets,
    spellings,
    targets,
    without_emphasis,
)

_LABEL = r"\W*(?:(?:the\s+)?(?:final\s+)?answer\W*)?"

# A last paragraph that says nothing about the question.
_CLOSING_REMARK = re.compile(
    r"\n[ \t]{0,9}\n\W{0,9}"
    r"(?:(?:please\s)?(?:let me know if you\b|feel free to (?:ask|reach|let))|(?:i\s)?hope (?:this|that) helps)"
    r"[^\n]{0,160}\Z",
    re.IGNORECASE,
)

# The bullet or quotation mark of an answer of one line: "- Paris", "> Paris". Before a single letter, a number or a
# word of mathematics, a dash is a sign and > a comparison; a word before a bracket is a function.
_MATHEMATICS = r"(?i:infinity|sqrt|log|exp|sin|cos|tan|alpha|beta|gamma|theta|lambda|omega)\b"
_LINE_MARK = re.compile(rf"(?:[-+>][ \t]+(?!{_MATHEMATICS})(?=[^\W\d_]{{3}}[^(\n]*$)|•[ \t]*(?=[^\n]+$))")


class ExactMatchOptions(ScorerOptions):
    """`target`: a text, or a list of accepted texts. `extract`: compare the final `answer` or the `whole` response."""

    target: object = "{{ target }}"
    ignore_case: bool = False
    ignore_punctuation: bool = False
    extract: Literal["answer", "whole"] = "answer"

    @field_validator("target")
    @classmethod
    def _some_target(cls, value: object) -> object:
        return require_targets(value)


class ExactMatch(Scorer[ExactMatchOptions]):
    type = "exact_match"
    summary = "The answer equals the target, except for white space."
    Options = ExactMatchOptions

    async def score(self, options: ExactMatchOptions, submission: Submission, services: Services) -> Verdict:
        how = {"ignore_case": options.ignore_case, "ignore_punctuation": options.ignore_punctuation}
        accepted = targets(options.target)
        wanted_forms = {form for target in spellings(options.target) for form in forms(target, **how)}
        readings = [compared_text(submission, "whole")]
        if options.extract == "answer":
            readings += _readings(submission, readings[0])
            readings.append(strip_markup(without_struck(readings[1])))
            readings += [_LINE_MARK.sub("", found, count=1) for found in readings if _LINE_MARK.match(found)]
            readings += [_without_full_stop(found) for found in readings]
            wanted_forms |= {_without_full_stop(form) for form in wanted_forms}
        for found in readings:
            if forms(found, **how) & wanted_forms:
                return Verdict.of(True, f"{quoted(found)} is the target.", found=found)
        found = readings[min(1, len(readings) - 1)]
        wanted, shown = " or ".join(quoted(target) for target in accepted[:3]), quoted(found)
        if wanted == shown:  # only the beginnings of long texts are shown
            wanted, shown = quoted_difference(normalized(accepted[0], **how), normalized(found, **how))
        return Verdict.of(False, f"Expected {wanted}, found {shown}.", found=found)


def _readings(submission: Submission, whole: str) -> list[str]:
    """Return what the final answer may be, besides *whole*, which counts for a target such as {"answer": 1}.

    The first is the marked answer, or *whole* without marks around it ("**Paris**."). The others still have marks that
    may belong to the answer, or lack those within it.
    """
    marked = compared_text(submission, "answer")
    written = final_answer_as_written(submission.text)
    return [
        strip_markup(whole) if marked == whole else marked,
        written,
        _without_marks(written, in_formula="\\boxed" in submission.text or written.startswith(("$", "\\(", "\\["))),
        *_only_block(whole),
        *([strip_markup(_CLOSING_REMARK.sub("", whole))] if marked == whole else []),
    ]


def _only_block(answer: str) -> list[str]:
    """Return the text of the fenced block that is the entire answer, apart from the word "Answer", in a list."""
    blocks, outside = split(answer)
    return [blocks[0].text.strip()] if len(blocks) == 1 and re.fullmatch(_LABEL, outside, re.IGNORECASE) else []


def _without_marks(answer: str, *, in_formula: bool) -> str:
    """Return *answer* without bold parts within it, and an exclamation mark after its last word; 5! is a factorial.

    In a formula, the backslashes of signs, negative spaces and the size of fractions are left out, too.
    """
    # \$5, 5\% and foo\_bar in Markdown
    text = re.sub(r"\\(?=\$\d|_)|(?<=\d)\\(?=%)", "", strip_markup(without_emphasis(answer)))
    if in_formula:
        text = re.sub(r"\\!|\\(?=[{}%$&# ])", "", re.sub(r"\\[dt]frac(?![a-z])", r"\\frac", text))
    return re.sub(r"(?<=[^\W\d_]{2})!$", "", text)


def _without_full_stop(text: str) -> str:
    """Return *text* without a final full stop, which may belong to an abbreviation in the target: "Smith & Co."."""
    return text if text == "." or text.endswith("..") else text.removesuffix(".")
