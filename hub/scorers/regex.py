"""The rule `regex`: a pattern is found in the answer."""

import asyncio
import unicodedata
from typing import Literal

import regex
from pydantic import field_validator, model_validator

from hub import extraction
from hub.harnesses.base import Services
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict
from hub.scorers.comparison.texts import PATTERN_TIMEOUT_S, quoted, spellings


class RegexOptions(ScorerOptions):
    """`pattern`: in Python's syntax. `match`: anywhere in the answer (`search`) or the whole answer (`full`).

    With `target`, the group `group` of the first match must be that text; `ignore_case` applies to it as well.
    """

    pattern: str
    match: Literal["search", "full"] = "search"
    ignore_case: bool = False
    target: object = None
    group: int | str = 1

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            regex.compile(value)
        except regex.error as error:
            raise ValueError(f"the pattern does not compile: {error}") from None
        return value

    @field_validator("group")
    @classmethod
    def _number_or_name(cls, value: int | str) -> int | str:
        return int(value) if isinstance(value, str) and value.isdecimal() else value

    @model_validator(mode="after")
    def _has_group(self) -> "RegexOptions":
        pattern = regex.compile(self.pattern)
        known = self.group in pattern.groupindex if isinstance(self.group, str) else 0 <= self.group <= pattern.groups
        if self.target is not None and not known:
            raise ValueError(f"the pattern has no group {self.group!r}; put what must equal the target in parentheses")
        return self


def _compiled(pattern: str, flags: int) -> regex.Pattern[str]:
    """Return *pattern* compiled with composed letters (é as one character), in which answers are searched."""
    try:
        return regex.compile(unicodedata.normalize("NFC", pattern), flags)
    except regex.error:  # a combining mark after a character of the syntax
        return regex.compile(pattern, flags)


class Regex(Scorer[RegexOptions]):
    """Scorer for patterns of bundles and texts of models; the library's time limit ends catastrophic backtracking."""

    type = "regex"
    summary = "A pattern is found in the answer."
    Options = RegexOptions

    async def score(self, options: RegexOptions, submission: Submission, services: Services) -> Verdict:
        text = unicodedata.normalize("NFC", extraction.answer_text(submission.text))
        pattern = _compiled(options.pattern, regex.IGNORECASE if options.ignore_case else 0)
        find = pattern.fullmatch if options.match == "full" else pattern.search
        try:
            # In a thread and without the interpreter's lock, so that a slow pattern does not block other episodes.
            match = await asyncio.to_thread(find, text, timeout=PATTERN_TIMEOUT_S, concurrent=True)
        except TimeoutError:
            return Verdict(value=None, reason=f"The pattern took more than {PATTERN_TIMEOUT_S:g} s on this answer.")
        if match is None:
            relation = "does not match the whole of" if options.match == "full" else "is not found in"
            pattern_shown, answer = quoted(options.pattern, exactly=True), quoted(text, exactly=True)
            return Verdict.of(False, f"The pattern {pattern_shown} {relation} {answer}.")
        if options.target is None:
            return Verdict.of(True, f"Found {quoted(match[0])}.", found=match[0])
        found = match[options.group] or ""
        said = found.strip()
        wanted = [unicodedata.normalize("NFC", target.strip()) for target in spellings([options.target])]
        passed = said.casefold() in map(str.casefold, wanted) if options.ignore_case else said in wanted
        relation = "is" if passed else f"is not {quoted(wanted[0], exactly=True)} but"
        return Verdict.of(passed, f"Group {options.group} {relation} {quoted(found, exactly=True)}.", found=found)
