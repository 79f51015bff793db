"""The rule `python_tests`: the code in the answer passes its tests, in the sandbox."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, model_validator

from hub import extraction
from hub.harnesses.base import Services
from hub.protocols.cases import file_bytes
from hub.protocols.messages import JSON
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict, run_job
from sandbox.limits import Limits
from sandbox.verdicts.jobs import FunctionJob, Trust
from sandbox.verdicts.results import Outcome, Status

# Actual values that add no information to "the test failed", by whether the test is a comparison.
_UNINFORMATIVE = {True: ("",), False: ("", "False")}

_MAX_DROPPED = 20  # dropped statements of the answer that the detail lists


class PythonTestsOptions(ScorerOptions):
    """`tests`: code with `check(candidate)`, assert lines, or a list of {args, kwargs, expect}.

    `entry_point`: the function's name; left out if the tests name functions themselves; `module:function` if the
    harness (code_repair) leaves a project of files, which is then tested. `setup`: imports and helpers of the
    tests. `prefix`: code that a body-only completion continues. `timeout_s`: processor seconds.
    `result_mb`: MiB of one returned value, encoded.
    `trust`: `isolated` keeps tests and code apart; what it cannot decide is unscored. `auto` retries that in
    one process, in evaluations only. `in_process` always uses one process.
    """

    tests: str | list[str] | list[dict[str, object]]
    entry_point: str | None = None
    setup: str = ""
    prefix: str = ""
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 10.0
    memory_mb: Annotated[int, Field(ge=64, le=16384)] = 512
    result_mb: Annotated[int, Field(ge=1, le=80)] = 64
    trust: Trust = "auto"

    @model_validator(mode="after")
    def _check_job(self) -> "PythonTestsOptions":
        self.job("", {}, isolated=False)  # raises ValueError
        return self

    def job(self, code: str, files: Mapping[str, bytes], *, isolated: bool) -> FunctionJob:
        """Return the job that tests *code*. isolated: never retry in one process what tests apart cannot decide."""
        return FunctionJob(
            code=code,
            files=files,
            entry_point=self.entry_point,
            tests=self.tests,
            setup=self.setup,
            prompt=self.prefix,
            trust="isolated" if self.trust == "auto" and isolated else self.trust,
            limits=Limits(cpu_s=self.timeout_s, memory_mb=self.memory_mb, result_mb=self.result_mb),
        )


class PythonTests(Scorer[PythonTestsOptions]):
    type = "python_tests"
    summary = "The code in the answer passes its tests, in the sandbox."
    Options = PythonTestsOptions
    needs = "sandbox"

    def shares_process(self, options: Mapping[str, object], files: Mapping[str, bytes]) -> bool:
        return options.get("trust") == "in_process"

    async def score(self, options: PythonTestsOptions, submission: Submission, services: Services) -> Verdict:
        project = _project(options, submission)
        if project is not None:
            code = extraction.Code("", "project")
        else:
            wanted = () if options.entry_point else _named(options.tests, options.setup)
            code = extraction.code(
                submission.text, entry_point=options.entry_point, prefix=options.prefix, wanted=wanted
            )
            if not code.text.strip():
                return Verdict.of(False, "The answer contains no code.", found="nothing")
        try:
            job = options.job(code.text, project or {}, isolated=services.isolated)
        except ValueError as error:
            return Verdict(value=None, reason=f"The tests cannot be run: {error}")
        outcome = await run_job(services, job)
        value = float(outcome.status == Status.PASSED) if outcome.conclusive else None
        detail: dict[str, JSON] = {"code": code.found, "with_prefix": code.with_prefix, "trust": outcome.trust}
        if outcome.trust_reason:
            detail["trust_reason"] = outcome.trust_reason
        if code.dropped:
            detail["dropped"] = list(code.dropped[:_MAX_DROPPED])
        return Verdict(value=value, reason=_reason(outcome), detail=detail, outcome=outcome)


def _reason(outcome: Outcome) -> str:
    """Return why the tests passed or failed; for a failed comparison also the value that the code gave."""
    failure = outcome.failure
    if outcome.status != Status.ASSERTION or failure is None or failure.got in _UNINFORMATIVE[bool(failure.expected)]:
        return outcome.message
    return f"{outcome.message.removesuffix('.')}; got {failure.got}"


def _named(tests: str | list[str] | list[dict[str, object]], setup: str) -> frozenset[str]:
    """Return the names that tests without an entry point use from the code."""
    source = tests if isinstance(tests, str) else "\n".join(test for test in tests if isinstance(test, str))
    return extraction.undefined_names(f"{setup}\n{source}")


def _project(options: PythonTestsOptions, submission: Submission) -> dict[str, bytes] | None:
    """Return the files in the episode's final state if the tests call a function of one of its modules, else None."""
    files = submission.state.get("files") if isinstance(submission.state, dict) else None
    if options.entry_point is None or ":" not in options.entry_point or not isinstance(files, dict):
        return None
    return {path: file_bytes(content) for path, content in files.items()}
