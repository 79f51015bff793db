"""Execution of a FunctionJob whose tests run in a judge, apart from the code."""

from dataclasses import replace

from sandbox.connections.engine_connection import Link
from sandbox.connections.engine_pair import EnginePair
from sandbox.connections.events import Event, RunEnd
from sandbox.engine.protocol import codec, frames
from sandbox.errors import InfrastructureFailed
from sandbox.limits import FRAME_MARGIN_BYTES, Limits
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.reports import DEFINITION, Report, Verdict, check_report, parse_report, read_verdict
from sandbox.verdicts.results import Conclusion, Outcome, Status
from sandbox.verdicts.statuses import (
    create_outcome,
    status_of_definition,
    status_of_early_exit,
    status_of_end,
    status_of_tampering,
)
from sandbox.verdicts.test_inputs import build_prelude, find_project_modules, find_shared_classes, format_tests
from sandbox.verdicts.test_verdicts import conclude

_SIGSYS = 31


class IsolatedTests:
    """Two runs: the candidate, which has the code, and its judge, which has the tests."""

    def __init__(self, engines: EnginePair, job: FunctionJob) -> None:
        self.engines, self.job, self.limits = engines, job, job.limits
        self.definition: Report | None = None
        self.verdict: Verdict | None = None
        self.tampering = ""
        self.ends: dict[int, RunEnd] = {}
        self.candidate = self.test_judge = 0

    def run(self) -> Outcome:
        """Run the tests to their end. Raises InfrastructureFailed or EngineFailed if the sandbox fails."""
        self._start()
        for event in self.engines.events(self.limits.wall):
            self._read_event(event)
        if self.ends.keys() != {self.candidate, self.test_judge}:
            raise InfrastructureFailed("the engine did not report the end of both runs")
        found = self._conclude()
        if found.status in (Status.TAMPERED, Status.TIMEOUT):
            self.engines.candidate.suspect = True
        outcome = create_outcome(found, self.ends[self.candidate], self.engines.candidate)
        # A candidate whose tests passed was killed because it was no longer needed: its exit code means nothing.
        return replace(outcome, exit_code=None) if found.status is Status.PASSED else outcome

    def _start(self) -> None:
        """Start the candidate and its judge, and connect them."""
        job, shared, can_link = self.job, find_shared_classes(self.job), self.engines.can_link
        self.candidate = self.engines.candidate.start(
            {
                "role": "candidate",
                "code": job.code,
                "prelude": build_prelude(job),
                "files": list(job.files),
                "calls": None,
                "required": [job.entry_point] if job.entry_point else [],
                "shared": shared,
                "max_result": self.limits.result_bytes,
                "linked": can_link,
            },
            list(job.files.values()),
            self.limits,
            max_frame=self.limits.result_bytes + FRAME_MARGIN_BYTES,
            link=Link(offered=True) if can_link else Link(relayed=True),
        )
        self.test_judge = self.engines.test_judge.start(
            {
                "role": "test_judge",
                "prompt": job.prompt,
                "setup": job.setup,
                "tests": format_tests(job),
                "entry_point": job.entry_point,
                "shared": shared,
                "modules": find_project_modules(job),
                "linked": can_link,
            },
            [],
            replace(self.limits, processes=0, descriptors=max(64, self.limits.descriptors)),
            link=Link(candidate=self.candidate) if can_link else Link(relayed=True),
        )
        if not can_link:
            self.engines.relay(self.candidate, self.test_judge)

    # ---- events -----------------------------------------------------------------------------------------------------

    def _read_event(self, event: Event) -> None:
        if isinstance(event, RunEnd):
            self.ends[event.session] = event
            if event.session == self.test_judge and self.verdict is None:
                self._kill_candidate()  # in an engine of its own it would wait for questions until its time is up
        elif event.kind != frames.REPORT:
            self._stop("it sent a frame out of turn", event.session)
        else:
            try:
                report = parse_report(event.payload)
                if event.session == self.candidate:
                    self._read_definition(report)
                else:
                    self._read_verdict(report)
            except codec.CodecError as error:
                self._stop(str(error), event.session)

    def _read_definition(self, report: Report) -> None:
        if self.definition is not None:
            self._stop("a report that was not requested", self.candidate)
            return
        self.definition = check_report(report, DEFINITION)
        if "defined" not in report and self.test_judge not in self.ends:
            self.engines.test_judge.kill(self.test_judge)

    def _read_verdict(self, report: Report) -> None:
        if self.verdict is not None:  # a second report, such as that of a judge that crashes after its verdict
            self.engines.test_judge.kill_and_ignore(self.test_judge)
        self.verdict = read_verdict(report)
        failure = self.verdict.failure
        if failure is None or failure.kind != "gone":  # otherwise the end of the candidate follows, with the reason
            self._kill_candidate()

    def _kill_candidate(self) -> None:
        if self.candidate not in self.ends:
            self.engines.candidate.kill(self.candidate)

    def _stop(self, tampering: str, session: int) -> None:
        """End the run that broke the protocol, and the candidate."""
        engine = self.engines.candidate if session == self.candidate else self.engines.test_judge
        engine.kill_and_ignore(session)
        if not self.tampering:
            self.tampering = tampering
            self._kill_candidate()

    # ---- conclusion -------------------------------------------------------------------------------------------------

    def _conclude(self) -> Conclusion:
        end = self.ends[self.candidate]
        if self.tampering:
            return Conclusion(*status_of_tampering(self.tampering))
        ended = status_of_end(end, self.limits)
        if self.definition is not None and "defined" not in self.definition:
            return Conclusion(*status_of_definition(self.definition, self.limits))
        if self.verdict is not None:
            return conclude(self.verdict, ended or status_of_early_exit(end), self.limits)
        if self.definition is None and end.reason != "asked":
            return Conclusion(*(ended or status_of_early_exit(end)))
        return Conclusion(*(ended or _status_without_verdict(self.ends[self.test_judge], self.limits)))


def _status_without_verdict(end: RunEnd, limits: Limits) -> tuple[Status, str]:
    """Return the status if the judge ended without a verdict while the candidate was still running.

    Raises InfrastructureFailed if the tests were never started.
    """
    found = status_of_end(end, limits)
    if found is not None and found[0] is Status.TIMEOUT:
        return Status.TIMEOUT, f"The tests did not end within {limits.wall:g} seconds."
    if end.code == -_SIGSYS:
        return Status.BAD_TESTS, "The tests made a system call that ends their process."
    return Status.EXCEPTION, "The tests crashed on what the code returned."
