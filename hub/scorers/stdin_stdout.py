"""The rule `stdin_stdout`: the program in the answer prints the expected output for each input, in the sandbox."""

import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hub import extraction
from hub.harnesses.base import Services
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict, run_job
from hub.scorers.comparison.texts import excerpt, quoted
from sandbox.limits import Limits
from sandbox.verdicts.jobs import ProgramJob
from sandbox.verdicts.results import Outcome, Status


class InputOutput(BaseModel):
    """One input and its expected output."""

    model_config = ConfigDict(extra="forbid")
    stdin: str = ""
    stdout: str


class StdinStdoutOptions(ScorerOptions):
    """`cases`: a list of {stdin, stdout}. `compare`: `lines` (ignoring trailing white space), `tokens` or `floats`.

    `partial`: score the share of inputs with the right output, rather than all or nothing.
    """

    cases: Annotated[list[InputOutput], Field(min_length=1)]
    compare: Literal["lines", "tokens", "floats"] = "lines"
    tolerance: Annotated[float, Field(ge=0)] = 1e-6
    partial: bool = False
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 10.0
    memory_mb: Annotated[int, Field(ge=64, le=16384)] = 512

    @model_validator(mode="after")
    def _check_limits(self) -> "StdinStdoutOptions":
        self.limits()  # raises ValueError
        return self

    def limits(self) -> Limits:
        """Return the limits of one run, with room for twice the longest output wanted, so that none is cut."""
        longest = max(len(case.stdout.encode("utf-8", "surrogatepass")) for case in self.cases)
        room = min(max(64, longest * 2 // 1024), 16_384)
        return Limits(cpu_s=self.timeout_s, memory_mb=self.memory_mb, output_kb=room)


class StdinStdout(Scorer[StdinStdoutOptions]):
    type = "stdin_stdout"
    summary = "The program in the answer prints the expected output for each input, in the sandbox."
    Options = StdinStdoutOptions
    needs = "sandbox"

    async def score(self, options: StdinStdoutOptions, submission: Submission, services: Services) -> Verdict:
        code = extraction.code(submission.text)
        if not code.text.strip():
            return Verdict.of(False, "The answer contains no code.")
        same = _COMPARE[options.compare]
        limits = options.limits()
        right = 0
        failed: tuple[int, InputOutput, Outcome] | None = None
        last: Outcome | None = None
        for number, case in enumerate(options.cases, 1):
            try:
                # As a program reads text: Python itself keeps the carriage returns of files written on Windows.
                stdin = case.stdin.replace("\r\n", "\n")
                last = await run_job(services, ProgramJob(code=code.text, stdin=stdin, limits=limits))
            except ValueError as error:
                return Verdict.of(False, f"The program cannot be run: {error}")
            if last.status == Status.COMPLETED and same(last.stdout, case.stdout, options.tolerance):
                right += 1
                continue
            failed = failed or (number, case, last)
            if not options.partial:
                break
        total = len(options.cases)
        if failed is None:
            return Verdict(value=1.0, reason=f"All {total} outputs are right.", outcome=last)
        return Verdict(
            value=right / total if options.partial else 0.0,
            reason=_reason(*failed),
            detail={"right": right, "total": total},
            outcome=failed[2],
        )


def _reason(number: int, case: InputOutput, outcome: Outcome) -> str:
    if outcome.status != Status.COMPLETED:
        return f"Input {number}: {outcome.message}"
    expected, printed = quoted(case.stdout), quoted(outcome.stdout)
    if expected != printed:
        return f"Input {number}: expected {expected}, printed {printed}."
    # White space differs, or a part that is not shown.
    pairs = zip_longest(case.stdout.split("\n"), outcome.stdout.split("\n"), fillvalue="")
    line, (expected, printed) = next(
        (line, pair) for line, pair in enumerate(pairs, 1) if pair[0].rstrip() != pair[1].rstrip()
    )
    return f"Input {number}, line {line}: expected {excerpt(expected, printed)}, printed {excerpt(printed, expected)}."


def _lines(found: str, wanted: str, tolerance: float) -> bool:
    def tidy(text: str) -> list[str]:
        # Only at line feeds: `splitlines` would also split at form feeds and other characters that end no line.
        return [line.rstrip() for line in text.rstrip().split("\n")]

    return tidy(found) == tidy(wanted)


def _tokens(found: str, wanted: str, tolerance: float) -> bool:
    return found.split() == wanted.split()


def _floats(found: str, wanted: str, tolerance: float) -> bool:
    pairs = list(zip(found.split(), wanted.split(), strict=False))
    return len(found.split()) == len(wanted.split()) and all(_close(a, b, tolerance) for a, b in pairs)


# A number and the marks around it in a list, a tuple or an enumeration.
_LISTED = re.compile(r"(?P<before>[\[({]*)(?P<number>[^\[\](){},;]+)(?P<after>[\])},;]*)")


def _close(a: str, b: str, tolerance: float) -> bool:
    if a == b:
        return True  # words
    if "_" in a or "_" in b:
        return False  # float() reads 1_0 as 10
    found, wanted = _LISTED.fullmatch(a), _LISTED.fullmatch(b)
    if not found or not wanted or (found["before"], found["after"]) != (wanted["before"], wanted["after"]):
        return False
    return _are_numbers_close(found["number"], wanted["number"], tolerance)


def _are_numbers_close(a: str, b: str, tolerance: float) -> bool:
    try:
        if math.isnan(float(a)):
            return math.isnan(float(b))
        if not (math.isfinite(float(a)) and math.isfinite(float(b))):
            return float(a) == float(b)
        # Compared as decimal numbers: in binary, 0.333334 and 0.333333 differ by more than 1e-6.
        found, wanted = Decimal(a), Decimal(b)
    except (ValueError, InvalidOperation):
        return False
    return abs(found - wanted) <= Decimal(str(tolerance)) * max(Decimal(1), abs(found), abs(wanted))


_COMPARE: dict[str, Callable[[str, str, float], object]] = {"lines": _lines, "tokens": _tokens, "floats": _floats}
