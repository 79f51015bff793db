"""Base class of jobs that need one run."""

from abc import ABC, abstractmethod

from sandbox.connections.engine_pair import EnginePair
from sandbox.connections.events import RunEnd, RunMessage
from sandbox.engine.protocol import codec, frames
from sandbox.errors import InfrastructureFailed
from sandbox.limits import MAX_COMPARED_TOTAL_BYTES, MAX_REPORT_BYTES, Limits
from sandbox.verdicts.reports import Report, parse_report
from sandbox.verdicts.results import Conclusion, Outcome, Status
from sandbox.verdicts.statuses import create_outcome, status_of_tampering


class SingleRun(ABC):
    """One run in the candidate's engine. Subclasses start it, read its reports, and draw the conclusion."""

    def __init__(self, engines: EnginePair, limits: Limits) -> None:
        self.engine = engines.candidate
        self.engines = engines
        self.limits = limits
        self.max_report_bytes = MAX_REPORT_BYTES
        self.tampering = ""
        self._session = 0
        self._received_bytes = 0

    @abstractmethod
    def start(self) -> int:
        """Start the run and return its session."""

    @abstractmethod
    def read_report(self, report: Report, payload: bytes) -> None:
        """Keep a report; *payload* is its encoded form. Raises codec.CodecError if it must not come or is malformed."""

    @abstractmethod
    def draw_conclusion(self, end: RunEnd) -> Conclusion:
        """Return the conclusion from the reports and the end of the run. Raises codec.CodecError like `read_report`."""

    def run(self) -> Outcome:
        """Run the job to its end. Raises InfrastructureFailed or EngineFailed if the sandbox fails."""
        self._session = self.start()
        end = None
        for event in self.engines.events(self.limits.wall):
            if isinstance(event, RunMessage):
                self._read_message(event)
            else:
                end = event
        if end is None:
            raise InfrastructureFailed("the engine did not report the end of the run")
        try:
            if self.tampering:
                raise codec.CodecError(self.tampering)
            found = self.draw_conclusion(end)
        except codec.CodecError as error:
            found = Conclusion(*status_of_tampering(str(error)))
        self.engine.suspect |= found.status in (Status.TIMEOUT, Status.TAMPERED)
        return create_outcome(found, end, self.engine)

    def _read_message(self, message: RunMessage) -> None:
        if self.tampering:
            return
        self._received_bytes += len(message.payload)
        if self.flooded:
            self.engine.kill_and_ignore(self._session)
            return
        try:
            if message.kind != frames.REPORT:
                raise codec.CodecError("a frame of a kind that it may not send")
            self.read_report(parse_report(message.payload, self.max_report_bytes), message.payload)
        except codec.CodecError as error:
            self.tampering = str(error)
            self.engine.kill_and_ignore(self._session)

    @property
    def flooded(self) -> bool:
        """Whether all reports together are larger than allowed."""
        return self._received_bytes > max(MAX_COMPARED_TOTAL_BYTES, self.max_report_bytes)
