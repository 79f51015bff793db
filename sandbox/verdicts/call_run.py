"""Execution of a CallJob."""

import json

from sandbox.connections.engine_pair import EnginePair
from sandbox.connections.events import RunEnd
from sandbox.engine.protocol import codec
from sandbox.verdicts.bytecode import add_bytecode
from sandbox.verdicts.jobs import CallJob
from sandbox.verdicts.reports import CALL, Report, check_report
from sandbox.verdicts.results import Conclusion, Status
from sandbox.verdicts.single_run import SingleRun
from sandbox.verdicts.statuses import cut_text, status_of_definition, status_of_early_exit, status_of_end

_MARGIN_BYTES = 65_536  # of a report, beyond the result in it


class CallRun(SingleRun):
    """A call of a function of a bundle. It reports the result, or why there is none."""

    def __init__(self, engines: EnginePair, job: CallJob) -> None:
        super().__init__(engines, job.limits)
        self.job = job
        self.report: Report | None = None
        self.value: object = None
        # The result is JSON in a JSON text, so each character may be escaped once more.
        self.max_report_bytes = 2 * job.max_result_bytes + _MARGIN_BYTES

    def start(self) -> int:
        job = self.job
        files = add_bytecode(job.files)
        head = {
            "role": "call",
            "module": job.module,
            "function": job.function,
            "args": list(job.args),
            "kwargs": dict(job.kwargs),
            "files": list(files),
            "max_result": job.max_result_bytes,
        }
        return self.engine.start(head, list(files.values()), job.limits, max_frame=self.max_report_bytes)

    def read_report(self, report: Report, payload: bytes) -> None:
        if self.report is not None:
            raise codec.CodecError("a second result")
        report = check_report(report, CALL)
        if "value" in report:
            try:
                self.value = json.loads(str(report["value"]))
            except (ValueError, RecursionError) as error:
                raise codec.CodecError("a result that is no JSON") from error
        self.report = report

    def draw_conclusion(self, end: RunEnd) -> Conclusion:
        ended = status_of_end(end, self.limits)
        report, name = self.report, f"{self.job.module}:{self.job.function}"
        if report is None:
            return Conclusion(*(ended or status_of_early_exit(end)))
        if "value" in report:
            return Conclusion(Status.COMPLETED, f"{name} returned.", value=self.value)
        if "not_json" in report:
            message = cut_text(f"{name} returned a value that is not JSON: {report['not_json']}.")
            return Conclusion(Status.NOT_JSON, message)
        if "large" in report:
            message = f"{name} returned {report['large']:,} bytes of JSON; {self.job.max_result_bytes:,} are allowed."
            return Conclusion(Status.OUTPUT_LIMIT, message)
        return Conclusion(*status_of_definition(report, self.limits))
