"""The rule `state`: the bundle's own check reads the state that the episode ended in."""

from collections.abc import Mapping
from typing import Any

from pydantic import field_validator

from hub.bundles.schema import check_relative
from hub.harnesses.base import Services
from hub.ports import JSON
from hub.scorers.base import Scorer, ScorerOptions, ScoringFailed, Submission, Verdict
from hub.scorers.running import run
from sandbox.jobs import CallJob
from sandbox.limits import Limits
from sandbox.results import Status


class CodeOptions(ScorerOptions):
    """`path`: a Python file of the bundle. `timeout_s`: processor seconds that a call may take."""

    path: str
    timeout_s: float = 10.0

    @field_validator("path")
    @classmethod
    def _inside(cls, value: str) -> str:
        return check_relative(value)


class CodeScorer(Scorer):
    """A scorer whose judgement is a function of the bundle, called in the sandbox with JSON and answering with JSON."""

    Options = CodeOptions
    needs = "sandbox"
    function: str

    def code_paths(self, options: Mapping[str, Any]) -> list[str]:
        return [options["path"]] if isinstance(options.get("path"), str) else []

    def arguments(self, submission: Submission) -> list[JSON]:
        """The arguments that the bundle's function is called with."""
        raise NotImplementedError

    async def score(self, options: CodeOptions, submission: Submission, services: Services) -> Verdict:
        job = CallJob(
            files=submission.files,
            module=options.path,
            function=self.function,
            args=self.arguments(submission),
            limits=Limits(cpu_s=options.timeout_s),
        )
        outcome = await run(services, job)
        if outcome.status != Status.COMPLETED:
            # Nothing of the model's runs here: a check that breaks is the environment's fault.
            raise ScoringFailed("environment", f"{options.path}: {outcome.message}")
        return _verdict(outcome.value, f"{options.path}:{self.function}")


def _verdict(value: JSON, who: str) -> Verdict:
    """A number, a truth value, or {"score", "reason", ...} as a verdict; a score of null is undecided."""
    data = value if isinstance(value, dict) else {"score": value}
    score, reason = data.get("score"), str(data.get("reason") or "")
    if score is None and "score" in data:
        return Verdict(value=None, reason=reason or f"{who} could not decide.")
    if not isinstance(score, int | float) or not 0 <= score <= 1:
        raise ScoringFailed("environment", f"{who} answered {value!r:.200}; expected a score from 0 to 1 and a reason.")
    detail = {key: item for key, item in data.items() if key not in ("score", "reason")}
    return Verdict(value=float(score), reason=reason or f"{who} gave {float(score):g}.", detail=detail)


class State(CodeScorer):
    """`check(case, state, transcript)` in the bundle's file."""

    type = "state"
    summary = "The bundle's own check(case, state, transcript) reads the state that the episode ended in."
    function = "check"

    def arguments(self, submission: Submission) -> list[JSON]:
        return [submission.case.to_json(), submission.state, submission.messages]


class Custom(CodeScorer):
    """`score(case, text, transcript)` in the bundle's file."""

    type = "custom"
    summary = "The bundle's own score(case, text, transcript) judges the answer."
    function = "score"

    def arguments(self, submission: Submission) -> list[JSON]:
        return [submission.case.to_json(), submission.text, submission.messages]
