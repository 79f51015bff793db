"""Execution of a ProgramJob."""

from sandbox.connections.engine_pair import EnginePair
from sandbox.connections.events import RunEnd
from sandbox.engine.protocol import codec
from sandbox.verdicts.jobs import ProgramJob
from sandbox.verdicts.reports import PROGRAM, Report, check_report
from sandbox.verdicts.results import Conclusion, Status
from sandbox.verdicts.single_run import SingleRun
from sandbox.verdicts.statuses import status_of_definition, status_of_end


class ProgramRun(SingleRun):
    """A program. It reports only that it failed; its output comes with the end of the run."""

    def __init__(self, engines: EnginePair, job: ProgramJob) -> None:
        super().__init__(engines, job.limits)
        self.job = job
        self.report: Report = {}

    def start(self) -> int:
        stdin = self.job.stdin.encode("utf-8", "surrogatepass")
        head = {
            "role": "program",
            "code": self.job.code,
            "argv": self.job.argv,
            "files": list(self.job.files),
            "stdin": True,
        }
        return self.engine.start(head, [*self.job.files.values(), stdin], self.limits)

    def read_report(self, report: Report, payload: bytes) -> None:
        if self.report:
            raise codec.CodecError("a second report")
        self.report = check_report(report, PROGRAM)

    def draw_conclusion(self, end: RunEnd) -> Conclusion:
        ended = status_of_end(end, self.limits)
        if ended is not None:
            return Conclusion(*ended)
        if self.report and end.code:
            return Conclusion(*status_of_definition(self.report, self.limits))
        if end.code:
            return Conclusion(Status.EXITED, f"The program ended with exit code {end.code}.")
        return Conclusion(Status.COMPLETED, "The program ran to its end.")
