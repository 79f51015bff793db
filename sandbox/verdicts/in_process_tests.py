"""Execution of a FunctionJob whose tests share a process with the code.

The code can forge the reports of this process. A second run, the negative control, finds the cheap forgeries: it makes
each comparison with values that no normal answer equals, so a test that passes then was forged.
"""

from dataclasses import replace

from sandbox.connections.engine_pair import EnginePair
from sandbox.connections.events import RunEnd
from sandbox.engine.protocol import codec
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.reports import DEFINITION, Report, Verdict, check_report, read_verdict
from sandbox.verdicts.results import Conclusion, Outcome, Status
from sandbox.verdicts.single_run import SingleRun
from sandbox.verdicts.statuses import status_of_definition, status_of_early_exit, status_of_end
from sandbox.verdicts.test_inputs import build_prelude, find_project_modules, format_tests
from sandbox.verdicts.test_verdicts import conclude


def run_in_process(engines: EnginePair, job: FunctionJob) -> Outcome:
    """Run the tests in the code's process, and if they pass, once more as a negative control."""
    outcome = InProcessTests(engines, job, control=False).run()
    if outcome.status is Status.PASSED:
        control = InProcessTests(engines, job, control=True).run()
        if control.passed or control.status is Status.PASSED or not control.total:
            engines.candidate.suspect = True
            message = "The code passed tests that nothing can pass: it interferes with them."
            outcome = replace(outcome, status=Status.TAMPERED, message=message, passed=0)
    return replace(outcome, trust="in_process")


class InProcessTests(SingleRun):
    """One run with code and tests."""

    def __init__(self, engines: EnginePair, job: FunctionJob, *, control: bool) -> None:
        super().__init__(engines, job.limits)
        self.job, self.control = job, control
        self.definition: Report | None = None
        self.verdict: Verdict | None = None

    def start(self) -> int:
        job = self.job
        head = {
            "role": "shared",
            "code": job.code,
            "prelude": build_prelude(job),
            "prompt": job.prompt,
            "setup": job.setup,
            "tests": format_tests(job),
            "entry_point": job.entry_point,
            "files": list(job.files),
            "modules": find_project_modules(job),
            "control": self.control,
        }
        return self.engine.start(head, list(job.files.values()), job.limits)

    def read_report(self, report: Report, payload: bytes) -> None:
        if self.definition is not None or self.verdict is not None:
            raise codec.CodecError("it reported a verdict itself")
        if "failure" in report or "bad_tests" in report:
            self.verdict = read_verdict(report)
        else:
            self.definition = check_report(report, DEFINITION)

    def draw_conclusion(self, end: RunEnd) -> Conclusion:
        ended = status_of_end(end, self.limits)
        if ended is not None:
            return Conclusion(*ended)
        if self.verdict is not None:
            return conclude(self.verdict, status_of_early_exit(end), self.limits)
        if self.definition is not None:
            return Conclusion(*status_of_definition(self.definition, self.limits))
        return Conclusion(*status_of_early_exit(end))
