"""Events that an engine reports about its runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunMessage:
    """A frame from a run."""

    session: int
    kind: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run.

    code     exit code, or minus the number of a signal
    reason   why the engine killed the run: "", wall, disk, memory, large or asked
    started  whether the code was started; if not, the sandbox failed and `fault` is the reason
    cut      whether stdout or stderr was longer than allowed
    """

    session: int
    code: int
    reason: str
    started: bool
    fault: str
    cpu_ms: float
    wall_ms: float
    peak_mb: float
    cut: bool
    stdout: bytes
    stderr: bytes


Event = RunMessage | RunEnd
