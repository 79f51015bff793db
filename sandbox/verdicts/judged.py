"""Jobs whose tests have to be executed: by a judge apart from the code, or in one process with it where allowed."""

import ast
import math
import re
import sys
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from sandbox.connections.engine_connection import Ended, Event, Said
from sandbox.connections.engine_pair import Station
from sandbox.engine.judge.imports import LIBRARIES
from sandbox.engine.judge.prompt import is_stub
from sandbox.engine.protocol import codec, frames
from sandbox.engine.testing.recorder import LISTED
from sandbox.limits import Limits
from sandbox.verdicts import literal, reports, statuses
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.parsing import parse
from sandbox.verdicts.results import Failure, Outcome, Status
from sandbox.verdicts.statuses import InfrastructureFailed

_SIGSYS = 31
_FRAME_MARGIN = 16 << 20  # bytes of a candidate's message beyond the value in it


def run_judged(station: Station, job: FunctionJob) -> Outcome:
    """Run the tests in a judge. Raises InfrastructureFailed or EngineFailed where the sandbox is to blame."""
    return _Judged(station, job).run()


def run_shared(station: Station, job: FunctionJob) -> Outcome:
    """Run the tests in the code's own process, and once more as a negative control if they passed."""
    outcome = _Shared(station, job, control=False).run()
    if outcome.status is Status.PASSED:
        control = _Shared(station, job, control=True).run()
        if control.passed or control.status is Status.PASSED or not control.total:
            station.engine.harmed = True
            message = "The code passed tests that nothing can pass: it interferes with them."
            outcome = replace(outcome, status=Status.TAMPERED, message=message, passed=0)
    return replace(outcome, trust="in_process")


def _tests_as_text(job: FunctionJob) -> str | list[str]:
    """Tests for the engine. Values given as {args, kwargs, expect} become asserts."""
    if isinstance(job.tests, str) or isinstance(job.tests[0], str):
        return job.tests
    lines = []
    for test in job.tests:
        assert isinstance(test, dict)
        shown = [_source(arg) for arg in test.get("args", [])]
        shown += [f"{name}={_source(value)}" for name, value in test.get("kwargs", {}).items()]
        expect = _source(literal.without_tuples(test["expect"]))
        lines.append(f"assert {LISTED}(candidate({', '.join(shown)})) == {expect}")
    return lines


def _source(value: Any) -> str:
    """A value of JSON or YAML as an expression of Python."""
    if isinstance(value, list):
        return f"[{', '.join(map(_source, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_source(key)}: {_source(item)}' for key, item in value.items())}}}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)


def _shared_classes(job: FunctionJob) -> list[str]:
    """Classes that the prompt defines whole: judge and candidate both have them."""
    return [s.name for s in _prompt(job) if isinstance(s, ast.ClassDef) and _is_whole(s, job)]


def _prompt(job: FunctionJob) -> list[ast.stmt]:
    """The statements of the prompt; none if it has no class."""
    if "class " in job.prompt:
        for text in (job.prompt, job.prompt.rstrip() + "\n    pass\n"):  # it may end in a signature without a body
            try:
                return parse(text).body
            except (SyntaxError, ValueError):
                continue
    return []


def _is_whole(statement: ast.stmt, job: FunctionJob) -> bool:
    """Whether this defines something that is not left to the code."""
    if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return statement.name != job.entry_point and not is_stub(statement)


def prelude(job: FunctionJob) -> str:
    """The prompt's whole classes, and what they may need, if the code does not define every one of them itself."""
    classes = _shared_classes(job)
    if all(re.search(rf"^class\s+{name}\b", job.code, re.MULTILINE) for name in classes):
        return ""
    assigning = ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign
    kept = [s for s in _prompt(job) if isinstance(s, assigning) or _is_whole(s, job)]
    return ast.unparse(ast.Module(kept, []))


def _project_modules(job: FunctionJob) -> list[str]:
    """Top-level names that the project's files can be imported by, where nothing else has the name."""
    tops = {PurePosixPath(path).parts[0] for path in job.files if path.endswith(".py")}
    return sorted({top.removesuffix(".py") for top in tops} - sys.stdlib_module_names - LIBRARIES)


class _Judged:
    """A candidate and its judge, side by side."""

    def __init__(self, station: Station, job: FunctionJob) -> None:
        self.station, self.job, self.limits = station, job, job.limits
        self.defined: dict[str, Any] | None = None
        self.verdict: dict[str, Any] | None = None
        self.tampered = ""
        self.ends: dict[int, Ended] = {}
        self.candidate = self.judge = 0

    def run(self) -> Outcome:
        self._start()
        for event in self.station.events(self.limits.wall):
            self._hear(event)
        if self.ends.keys() != {self.candidate, self.judge}:
            raise InfrastructureFailed("the engine did not report the end of both runs")
        status, message, more = self._conclude()
        if status in (Status.TAMPERED, Status.TIMEOUT):
            self.station.engine.harmed = True
        engine = self.station.engine
        end = self.ends[self.candidate]
        if status is Status.PASSED:
            more["exit_code"] = None  # it was ended because nothing more was wanted of it
        return statuses.outcome(status, message, end, backend=engine.transport.backend, tier=engine.tier, **more)

    def _start(self) -> None:
        job, shared = self.job, _shared_classes(self.job)
        candidate = {
            "role": "candidate",
            "code": job.code,
            "prelude": prelude(job),
            "files": list(job.files),
            "calls": None,
            "required": [job.entry_point] if job.entry_point else [],
            "shared": shared,
            "max_result": self.limits.result_bytes,
        }
        tests = {
            "role": "judge",
            "prompt": job.prompt,
            "setup": job.setup,
            "tests": _tests_as_text(job),
            "entry_point": job.entry_point,
            "shared": shared,
            "modules": _project_modules(job),
        }
        limits = replace(self.limits, processes=0, descriptors=max(64, self.limits.descriptors))
        direct = self.station.direct
        bodies = list(job.files.values())
        self.candidate = self.station.engine.start(
            candidate | {"linked": direct},
            bodies,
            self.limits,
            max_frame=self.limits.result_bytes + _FRAME_MARGIN,
            link=direct,
            relayed=not direct,
        )
        self.judge = self.station.judge.start(
            tests | {"linked": direct}, [], limits, linked_to=self.candidate if direct else 0, relayed=not direct
        )
        if not direct:
            self.station.relay(self.candidate, self.judge)

    # ---- listening --------------------------------------------------------------------------------------------------

    def _hear(self, event: Event) -> None:
        if isinstance(event, Ended):
            self.ends[event.session] = event
            if event.session == self.judge and self.verdict is None:
                self._stop_candidate()  # in an engine of its own it would wait for questions until the clock ends it
        elif event.kind == frames.REPORT:
            try:
                report = reports.parse(event.payload)
                if event.session == self.candidate:
                    self._hear_candidate(report)
                else:
                    if self.verdict is not None:  # as where the judge crashes behind its verdict
                        self.station.judge.silence(self.judge)
                    self.verdict = reports.checked_verdict(report)
                    if (report.get("failure") or {}).get("kind") != "gone":  # else its end is on the way, and says why
                        self._stop_candidate()
            except codec.CodecError as error:
                self._stop(str(error), event.session)
        else:
            self._stop("it spoke out of turn", event.session)

    def _hear_candidate(self, report: dict[str, Any]) -> None:
        if self.defined is not None:
            self._stop("a report that was not asked for", self.candidate)
            return
        self.defined = reports.checked(report, reports.DEFINITION)
        if "defined" not in report and self.judge not in self.ends:
            self.station.judge.kill(self.judge)

    def _stop_candidate(self) -> None:
        if self.candidate not in self.ends:
            self.station.engine.kill(self.candidate)

    def _stop(self, tampered: str, session: int) -> None:
        """End the candidate, and the run that broke the protocol."""
        engine = self.station.engine if session == self.candidate else self.station.judge
        engine.silence(session)
        if not self.tampered:
            self.tampered = tampered
            self._stop_candidate()

    # ---- verdict ----------------------------------------------------------------------------------------------------

    def _conclude(self) -> tuple[Status, str, dict[str, Any]]:
        """Status, sentence, and the Outcome's fields about tests."""
        end, judge_end = self.ends[self.candidate], self.ends[self.judge]
        if self.tampered:
            return Status.TAMPERED, f"The code interfered with the sandbox: {self.tampered}.", {}
        ended = statuses.of_end(end, self.limits)
        if self.defined is not None and "defined" not in self.defined:
            return *statuses.of_definition(self.defined, self.limits), {}
        if self.verdict is None and self.defined is None:
            return *(ended or statuses.left_early(end)), {}
        if self.verdict is None:
            return *(ended or _judge_lost(judge_end, self.limits)), {}
        return conclude(self.verdict, ended or statuses.left_early(end), self.limits)


def _judge_lost(end: Ended, limits: Limits) -> tuple[Status, str]:
    """The judge did not reach a verdict though the candidate was there to the end."""
    found = statuses.of_end(end, limits)
    if found is not None and found[0] is Status.TIMEOUT:
        return Status.TIMEOUT, f"The tests did not end within {limits.wall:g} seconds."
    if end.code == -_SIGSYS:
        return Status.BAD_TESTS, "The tests made a system call that ends their process."
    return Status.EXCEPTION, "The tests crashed on what the code returned."


def conclude(verdict: dict[str, Any], gone: tuple[Status, str], limits: Limits) -> tuple[Status, str, dict[str, Any]]:
    """Status, sentence and counts for a verdict. `gone` is what to say where the candidate's process ended."""
    if "crashed" in verdict:
        return Status.EXCEPTION, statuses.cut(f"The tests crashed: {verdict['crashed']['message']}"), {}
    if "bad_tests" in verdict:
        return Status.BAD_TESTS, statuses.cut(str(verdict["bad_tests"])), {}
    counts: dict[str, Any] = {"passed": int(verdict["passed"]), "total": int(verdict["total"])}
    failure = verdict["failure"]
    if failure is None:
        if not counts["total"]:
            return Status.BAD_TESTS, "The tests asserted nothing.", counts
        return Status.PASSED, f"All {counts['total']} tests passed.", counts
    counts["failure"] = _failure(failure)
    return *_failed(failure, gone, limits), counts


def _failed(failure: dict[str, Any], gone: tuple[Status, str], limits: Limits) -> tuple[Status, str]:
    kind, message = failure["kind"], str(failure.get("message", ""))
    if kind == "gone":
        return gone
    if kind == "assertion":
        what = failure.get("test") or message or f"line {failure.get('line')}"
        return Status.ASSERTION, statuses.cut(f"A test failed: {what}{f' ({message})' if message else ''}")
    if kind == "raised":
        return statuses.of_exception(failure["error"], limits)
    if kind == "missing":
        return Status.MISSING_ENTRY_POINT, statuses.cut(f"The code defines no {message}.")
    if kind == "large":
        return Status.OUTPUT_LIMIT, f"The code returned {message} bytes; {limits.result_bytes} are allowed."
    if kind == "unsupported":
        return Status.UNSUPPORTED, statuses.cut(f"Tests apart from the code cannot decide this: {message}.")
    if kind == "tampered":
        return Status.TAMPERED, statuses.cut(f"The code interfered with the sandbox: {message}.")
    error = failure["error"]
    said = f"{error['type']}: {error['message']}"
    if kind == "bad_tests":
        return Status.BAD_TESTS, statuses.cut(f"The tests themselves failed: {said} (line {failure.get('line')})")
    return Status.EXCEPTION, statuses.cut(f"The tests could not use what the code returned: {said}")


def _failure(failure: dict[str, Any]) -> Failure:
    test, expected, got = (str(failure.get(key, "")) for key in ("test", "expected", "got"))
    return statuses.failure(test, expected, got, failure.get("line"))


class _Shared:
    """Code and tests in one process. What it reports is the code's word; see `run_shared`."""

    def __init__(self, station: Station, job: FunctionJob, *, control: bool) -> None:
        self.station, self.job, self.control = station, job, control

    def run(self) -> Outcome:
        job, engine = self.job, self.station.engine
        head = {
            "role": "shared",
            "code": job.code,
            "prelude": prelude(job),
            "prompt": job.prompt,
            "setup": job.setup,
            "tests": _tests_as_text(job),
            "entry_point": job.entry_point,
            "files": list(job.files),
            "control": self.control,
        }
        engine.start(head, list(job.files.values()), job.limits)
        heard: list[dict[str, Any]] = []
        tampered = ""
        end = None
        for event in self.station.events(job.limits.wall):
            if isinstance(event, Ended):
                end = event
            elif isinstance(event, Said):
                try:
                    heard.append(_checked_shared(reports.parse(event.payload)))
                except codec.CodecError as error:
                    tampered = tampered or str(error)
                if tampered or len(heard) > 1:
                    engine.silence(event.session)
        if end is None:
            raise InfrastructureFailed("the engine did not report the run's end")
        if len(heard) > 1:
            tampered = tampered or "it reported a verdict itself"
        if tampered:
            engine.harmed = True
            message = f"The code interfered with the sandbox: {tampered}."
            return statuses.outcome(Status.TAMPERED, message, end, backend=engine.transport.backend, tier=engine.tier)
        status, message, more = self._conclude(heard, end)
        return statuses.outcome(status, message, end, backend=engine.transport.backend, tier=engine.tier, **more)

    def _conclude(self, heard: list[dict[str, Any]], end: Ended) -> tuple[Status, str, dict[str, Any]]:
        ended = statuses.of_end(end, self.job.limits)
        if ended is not None or not heard:
            return *(ended or statuses.left_early(end)), {}
        if "failure" in heard[0] or "bad_tests" in heard[0]:
            return conclude(heard[0], statuses.left_early(end), self.job.limits)
        return *statuses.of_definition(heard[0], self.job.limits), {}


def _checked_shared(report: dict[str, Any]) -> dict[str, Any]:
    if "failure" in report or "bad_tests" in report:
        return reports.checked_verdict(report)
    return reports.checked(report, reports.DEFINITION)
