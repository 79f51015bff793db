"""The rule `state`: the bundle's function `check` scores the state that the episode ended in, in the sandbox."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from hub.common.problems import Problem
from hub.harnesses.base import Services
from hub.manifest.code_check import code_problems, undeclared_imports
from hub.manifest.schema import check_relative
from hub.protocols.messages import JSON
from hub.scorers.base import (
    OptionsClass,
    Scorer,
    ScorerOptions,
    ScoringFailed,
    Submission,
    Verdict,
    rounded_score,
    run_job,
)
from sandbox.limits import Limits
from sandbox.verdicts.jobs import CallJob
from sandbox.verdicts.results import Status


class StateScorerOptions(ScorerOptions):
    """`path`: a .py file of the bundle. `reads`: other files of the bundle that it imports or opens.

    `timeout_s`: limit of processor seconds for a call; `memory_mb`: limit of memory in MiB.
    """

    path: str
    reads: list[str] = Field(default_factory=list)
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 10.0
    memory_mb: Annotated[int, Field(ge=64, le=16384)] = 512

    @field_validator("path")
    @classmethod
    def _python(cls, value: str) -> str:
        if not check_relative(value).endswith(".py"):
            raise ValueError(f"{value!r} must be a .py file of the bundle")
        return value


class StateScorer(Scorer[StateScorerOptions]):
    """Scorer that runs only code of the bundle: if it fails, the environment is wrong and the response is errored."""

    type = "state"
    summary = "The bundle's own check(case, state, transcript) reads the state that the episode ended in."
    Options: ClassVar[OptionsClass] = StateScorerOptions
    needs = "sandbox"

    def code_paths(self, options: Mapping[str, object]) -> list[str]:
        reads = options.get("reads")
        named = [options.get("path"), *(reads if isinstance(reads, list) else [])]
        return [path for path in named if isinstance(path, str)]

    def problems(self, options: Mapping[str, object], files: Mapping[str, bytes]) -> list[Problem]:
        path, function = options.get("path"), options.get("function", "check")
        if not isinstance(path, str) or "{{" in f"{path}{function}":
            return []
        takes_more = bool(options.get("arguments"))
        calls = {} if takes_more else {str(function): ("case", "state", "transcript")}
        wrong = [Problem(text, "path") for text in code_problems(path, files[path], calls)]
        return wrong or [Problem(text, "reads") for text in undeclared_imports(self.code_paths(options), files)]

    def function_of(self, options: StateScorerOptions) -> tuple[str, dict[str, object]]:
        """Return the name of the function, and its keyword arguments besides case, state and transcript."""
        return "check", {}

    async def score(self, options: StateScorerOptions, submission: Submission, services: Services) -> Verdict:
        """Call the function. Raises ScoringFailed, of kind `environment` if the bundle's code fails."""
        function, arguments = self.function_of(options)
        carried = {path: submission.files[path] for path in [options.path, *options.reads] if path in submission.files}
        try:
            job = CallJob(
                files=carried,
                module=options.path,
                function=function,
                args=[submission.case.to_json(), submission.state, submission.messages],
                kwargs=arguments,
                limits=Limits(cpu_s=options.timeout_s, memory_mb=options.memory_mb),
            )
        except ValueError as error:
            raise ScoringFailed("environment", f"{options.path}: {error}", temporary=False) from None
        outcome = await run_job(services, job)
        if outcome.status != Status.COMPLETED:
            late = outcome.status == Status.TIMEOUT
            raise ScoringFailed("environment", f"{options.path}: {outcome.message}", temporary=late)
        return _verdict(outcome.value, f"{options.path}:{function}")


def _verdict(value: JSON, who: str) -> Verdict:
    """Return the verdict for a number, a boolean or {"score", "reason", ...}; a score of null means undecided."""
    data = value if isinstance(value, dict) else {"score": value}
    score, reason = data.get("score"), str(data.get("reason") or "")
    if isinstance(value, dict) and score is None and "score" in value:
        return Verdict(value=None, reason=reason or f"{who} could not decide.")
    number = rounded_score(score) if isinstance(score, int | float) else None
    if number is None:
        raise ScoringFailed(
            "environment",
            f"{who} answered {value!r:.200}; expected a score from 0 to 1 and a reason.",
            temporary=False,
        )
    detail = {key: item for key, item in data.items() if key not in ("score", "reason")}
    return Verdict(value=number, reason=reason or f"{who} gave {number:g}.", detail=detail)
