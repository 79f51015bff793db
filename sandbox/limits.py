"""All limits on this side of the sandbox: what one run may use, and the sizes of jobs and messages."""

import math
from dataclasses import dataclass, fields

# ---- jobs -----------------------------------------------------------------------------------------------------------

MAX_TEXT_LENGTH = 8 * 1024 * 1024  # characters of code, tests, setup, prompt or stdin
MAX_FILES = 2000
MAX_FILES_BYTES = 32 * 1024 * 1024  # of all files of a job

# ---- messages of a run ----------------------------------------------------------------------------------------------

MAX_FRAME_BYTES = 16 * 1024 * 1024  # of one frame, unless the job allows larger values
FRAME_MARGIN_BYTES = 16 * 1024 * 1024  # of a frame, beyond the returned value in it
MAX_COMPARED_BYTES = 4 * 1024 * 1024  # of one returned value that is compared in this process; else in a judge
MAX_COMPARED_TOTAL_BYTES = 16 * 1024 * 1024  # of all of them; decoding these takes seconds
DECODED_AT_ONCE_BYTES = (
    65_536  # larger values stay encoded until they are compared: decoded, they need 40 times as much
)
MAX_REPORT_BYTES = MAX_COMPARED_BYTES + 65_536

# ---- messages to users ----------------------------------------------------------------------------------------------

MAX_SHOWN_LENGTH = 400  # characters of one value, test or message in an outcome

# ---- one run --------------------------------------------------------------------------------------------------------

_RANGES = {
    "cpu_s": (0.1, 3600.0),
    "wall_s": (0.1, 7200.0),
    "memory_mb": (64, 65_536),
    "file_mb": (1, 4096),
    "descriptors": (16, 4096),
    "output_kb": (1, 16_384),
    "processes": (0, 256),
    "result_mb": (1, 80),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds for one run.

    cpu_s        processor seconds of the whole run; enforced in whole seconds, rounded up
    wall_s       seconds on the clock; None means 3 * cpu_s + 2
    memory_mb    MiB of address space (of data segment if the engine offers packages)
    file_mb      MiB of one file; all files together may have sixteen times as much
    descriptors  open files
    output_kb    KiB kept of stdout and of stderr; the rest is read and dropped
    processes    child processes; 0 forbids fork and exec
    result_mb    MiB of one value that the tested code returns, as encoded for the wire
    """

    cpu_s: float = 10.0
    wall_s: float | None = None
    memory_mb: int = 512
    file_mb: int = 1
    descriptors: int = 64
    output_kb: int = 64
    processes: int = 0
    result_mb: int = 64

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value: object = getattr(self, name)
            if value is None and name == "wall_s":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"Limit {name} must be a number, not {value!r}.")
            if not low <= value <= high:
                raise ValueError(f"Limit {name} must be between {low} and {high}, not {value}.")
            if name not in ("cpu_s", "wall_s") and not isinstance(value, int):
                raise ValueError(f"Limit {name} must be a whole number, not {value}.")

    @property
    def result_bytes(self) -> int:
        """`result_mb` in bytes."""
        return self.result_mb << 20

    @property
    def wall(self) -> float:
        """Seconds on the clock after which the run is killed."""
        return self.wall_s if self.wall_s is not None else 3 * self.cpu_s + 2

    def to_json(self) -> dict[str, object]:
        """Return the limits as an engine reads them, with `wall_s` filled in."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"wall_s": self.wall}
