"""Runs one job on a station and reaches its verdict, outside of every process that untrusted code runs in."""

import json
from dataclasses import replace
from typing import Any

from sandbox.connections.engine_connection import Ended, Said
from sandbox.connections.engine_pair import Station
from sandbox.engine.protocol import codec, frames
from sandbox.verdicts import bytecode, judged, literal, reports, statuses
from sandbox.verdicts.jobs import CallJob, FunctionJob, Job, ProgramJob
from sandbox.verdicts.literal import LiteralPlan, LiteralTest
from sandbox.verdicts.results import Outcome, Status
from sandbox.verdicts.statuses import InfrastructureFailed

_MAX_ANSWERS = 16 * 1024 * 1024  # bytes of all answers together: unpacking as much takes seconds
_SMALL = 65_536  # bytes of an answer that is unpacked at once


def run(job: Job, station: Station) -> Outcome:
    """The outcome of a job. Raises InfrastructureFailed or EngineFailed where the sandbox is to blame."""
    if isinstance(job, CallJob):
        return _Call(station, job).run()
    if isinstance(job, ProgramJob):
        return _Program(station, job).run()
    if job.trust == "in_process":
        return judged.run_shared(station, job)
    plan = fast_path(job)
    outcome = _Literal(station, job, plan).run() if plan else judged.run_judged(station, job)
    if outcome.status is Status.UNSUPPORTED and job.trust == "auto":
        return replace(judged.run_shared(station, job), trust_reason=outcome.message)
    return outcome


def fast_path(job: FunctionJob) -> LiteralPlan | None:
    """The calls and comparisons that the tests come to, where no test code has to be run for them."""
    if isinstance(job.tests, str):
        return literal.plan(job.tests, job.entry_point, job.setup)
    if isinstance(job.tests[0], dict):
        assert job.entry_point is not None
        return literal.plan_of_values(job.tests, job.entry_point)
    return literal.plan("\n".join(job.tests), job.entry_point, job.setup)


class _Single:
    """A job that one run answers. Subclasses start it, hear its reports and conclude."""

    def __init__(self, station: Station, job: Job) -> None:
        self.station = station
        self.limits = job.limits
        self.session = 0
        self.tampered = ""
        self.max_report = reports.MAX_REPORT
        self.heard = 0  # bytes of all reports

    def start(self) -> int:
        raise NotImplementedError

    def hear(self, report: dict[str, Any], payload: bytes) -> None:
        raise NotImplementedError

    def conclude(self, end: Ended) -> Outcome:
        raise NotImplementedError

    def run(self) -> Outcome:
        """Start, listen to the end, conclude."""
        self.session = self.start()
        end = None
        for event in self.station.events(self.limits.wall):
            if isinstance(event, Said):
                self._hear(event)
            else:
                end = event
        if end is None:
            raise InfrastructureFailed("the engine did not report the run's end")
        if self.tampered:
            return self._interfered(self.tampered, end)
        try:
            result = self.conclude(end)
        except codec.CodecError as error:
            result = self._interfered(str(error), end)
        self.station.engine.harmed |= result.status is Status.TIMEOUT
        return result

    def _interfered(self, how: str, end: Ended) -> Outcome:
        self.station.engine.harmed = True
        return self.outcome(Status.TAMPERED, f"The code interfered with the sandbox: {how}.", end)

    def _hear(self, event: Said) -> None:
        if self.tampered:
            return
        self.heard += len(event.payload)
        if self.flooded:
            self.station.engine.silence(self.session)
            return
        try:
            if event.kind != frames.REPORT:
                raise codec.CodecError("a frame of a kind that it may not send")
            self.hear(reports.parse(event.payload, self.max_report), event.payload)
        except codec.CodecError as error:
            self.tampered = str(error)
            self.station.engine.silence(self.session)

    @property
    def flooded(self) -> bool:
        """Whether the reports are larger than allowed, all together."""
        return self.heard > max(_MAX_ANSWERS, self.max_report)

    def outcome(self, status: Status, message: str, end: Ended, **more: Any) -> Outcome:
        engine = self.station.engine
        return statuses.outcome(status, message, end, backend=engine.transport.backend, tier=engine.tier, **more)


class _Literal(_Single):
    """Literal tests: the answers are compared here."""

    def __init__(self, station: Station, job: FunctionJob, plan: LiteralPlan) -> None:
        super().__init__(station, job)
        self.job, self.plan = job, plan
        self.calls = [call for test in plan.tests for call in test.calls]
        self.defined: dict[str, Any] | None = None
        self.answers: list[dict[str, Any]] = []

    def start(self) -> int:
        files, bodies = list(self.job.files), list(self.job.files.values())
        head = {
            "role": "candidate",
            "code": self.job.code,
            "prelude": judged.prelude(self.job),
            "files": files,
            "calls": [[call.target, call.args, call.kwargs] for call in self.calls],
            "max_result": reports.MAX_RESULT,
        }
        return self.station.engine.start(head, bodies, self.limits)

    def hear(self, report: dict[str, Any], payload: bytes) -> None:
        if self.defined is None:
            self.defined = reports.checked(report, reports.DEFINITION)
            return
        if "defined" not in self.defined or len(self.answers) == len(self.calls):
            raise codec.CodecError("an answer that was not asked for")
        report = reports.checked_answer(report, len(self.answers) + 1)
        if "value" in report:
            report = self._kept(report, payload)
        self.answers.append({"error": report["crashed"]} if "crashed" in report else report)

    def _kept(self, report: dict[str, Any], payload: bytes) -> dict[str, Any]:
        """An answer's value; of a large one the bytes, a fortieth of its memory, until its test is judged."""
        return {"value": codec.decode(report["value"])} if len(payload) <= _SMALL else {"payload": payload}

    def conclude(self, end: Ended) -> Outcome:
        ended = statuses.of_end(end, self.limits)
        if self.defined is not None and "defined" not in self.defined:
            return self.outcome(*statuses.of_definition(self.defined, self.limits), end)
        if self.defined is None:
            return self.outcome(*(ended or statuses.left_early(end)), end)
        passed, first, at = 0, None, 0
        for test in self.plan.tests:
            answers = self.answers[at : at + len(test.calls)]
            at += len(test.calls)
            if len(answers) < len(test.calls) and first is None:
                status, message = self._why_no_answer(ended, end)
                first = status, message, statuses.failure(*test.shown(), line=test.line)
                continue
            judged_test = self._judge(test, answers)
            if judged_test is None:
                passed += 1
            elif first is None:
                first = judged_test
        total = len(self.plan.tests)
        if first is None:
            return self.outcome(Status.PASSED, f"All {total} tests passed.", end, passed=passed, total=total)
        status, message, failure = first
        return self.outcome(status, message, end, passed=passed, total=total, failure=failure)

    def _why_no_answer(self, ended: tuple[Status, str] | None, end: Ended) -> tuple[Status, str]:
        if self.flooded:
            raise literal.NeedsJudge
        return ended or statuses.left_early(end)

    def _judge(self, test: LiteralTest, answers: list[dict[str, Any]]) -> Any:
        """None where the test holds, else status, sentence and failure. Raises NeedsJudge."""
        for answer in answers:
            if "error" in answer:
                status, message = statuses.of_exception(answer["error"], self.limits)
                return status, message, statuses.failure(*test.shown(), line=test.line)
            if "large" in answer and answer["large"] <= self.limits.result_bytes:
                raise literal.NeedsJudge
            if "large" in answer:
                message = f"The code returned {answer['large']} bytes; {self.limits.result_bytes} are allowed."
                return Status.OUTPUT_LIMIT, message, statuses.failure(*test.shown(), line=test.line)
        values = [_value(answer) for answer in answers]
        problem = ""
        try:
            if len(values) == len(test.calls) and test.holds(values):
                return None
        except literal.NeedsJudge:
            raise
        except Exception as error:  # such as abs() of a text that the code returned
            problem = f": {error}"
        if any(map(codec.has_opaque, values)):
            raise literal.NeedsJudge  # an object may equal what is expected, which only its own process can tell
        got = ", ".join(map(statuses.shown, values)) + problem
        text, expected = test.shown()
        message = statuses.cut(f"A test failed: {text}")
        return Status.ASSERTION, message, statuses.failure(text, expected, got, test.line)

    def run(self) -> Outcome:
        try:
            return super().run()
        except literal.NeedsJudge:
            return judged.run_judged(self.station, self.job)


def _value(answer: dict[str, Any]) -> Any:
    return (
        codec.decode(codec.of_type(dict, codec.loads(answer["payload"]))["value"])
        if "payload" in answer
        else answer["value"]
    )


class _Program(_Single):
    """A whole program."""

    job: ProgramJob

    def __init__(self, station: Station, job: ProgramJob) -> None:
        super().__init__(station, job)
        self.job = job
        self.report: dict[str, Any] = {}

    def start(self) -> int:
        stdin = self.job.stdin.encode("utf-8", "surrogatepass")
        head = {"role": "program", "code": self.job.code, "argv": self.job.argv, "files": list(self.job.files)}
        return self.station.engine.start(head | {"stdin": True}, [*self.job.files.values(), stdin], self.limits)

    def hear(self, report: dict[str, Any], payload: bytes) -> None:
        if self.report:
            raise codec.CodecError("a second report")
        self.report = reports.checked(report, reports.PROGRAM)

    def conclude(self, end: Ended) -> Outcome:
        ended = statuses.of_end(end, self.limits)
        if ended is not None:
            return self.outcome(*ended, end)
        if self.report and end.code:
            return self.outcome(*statuses.of_definition(self.report, self.limits), end)
        if end.code:
            return self.outcome(Status.EXITED, f"The program ended with exit code {end.code}.", end)
        return self.outcome(Status.COMPLETED, "The program ran to its end.", end)


class _Call(_Single):
    """A call of bundle code."""

    def __init__(self, station: Station, job: CallJob) -> None:
        super().__init__(station, job)
        self.job = job
        self.report: dict[str, Any] | None = None
        self.value: Any = None

    def start(self) -> int:
        job = self.job
        files = bytecode.beside(job.module, job.files)
        head = {
            "role": "call",
            "module": job.module,
            "function": job.function,
            "args": job.args,
            "kwargs": job.kwargs,
            "files": list(files),
            "max_result": job.max_result_bytes,
        }
        self.max_report = frame = 2 * job.max_result_bytes + 65_536  # the JSON text is quoted once more on the wire
        return self.station.engine.start(head, list(files.values()), job.limits, max_frame=frame)

    def hear(self, report: dict[str, Any], payload: bytes) -> None:
        if self.report is not None:
            raise codec.CodecError("a second result")
        report = reports.checked(report, reports.CALL)
        if "value" in report:
            try:
                self.value = json.loads(report["value"])
            except (ValueError, RecursionError) as error:
                raise codec.CodecError("a result that is no JSON") from error
        self.report = report

    def conclude(self, end: Ended) -> Outcome:
        ended = statuses.of_end(end, self.limits)
        report, name = self.report, f"{self.job.module}:{self.job.function}"
        if report is None:
            return self.outcome(*(ended or statuses.left_early(end)), end)
        if "value" in report:
            return replace(self.outcome(Status.COMPLETED, f"{name} returned.", end), value=self.value)
        if "not_json" in report:
            return self.outcome(
                Status.NOT_JSON, statuses.cut(f"{name} returned what is not JSON: {report['not_json']}."), end
            )
        if "large" in report:
            sizes = f"{report['large']} bytes; {self.job.max_result_bytes} are allowed"
            return self.outcome(Status.OUTPUT_LIMIT, f"{name} returned {sizes}.", end)
        return self.outcome(*statuses.of_definition(report, self.limits), end)
