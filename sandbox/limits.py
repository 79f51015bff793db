"""What one run of code may use."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

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
    memory_mb    MiB of address space (of data segment once numpy is offered to candidates)
    file_mb      MiB of any one file, and of everything written to disk times sixteen
    descriptors  open files
    output_kb    KiB kept of stdout and of stderr; the rest is read and dropped
    processes    child processes; 0 forbids fork and exec altogether
    result_mb    MiB on the wire of one value that tested code returns
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
            value = getattr(self, name)
            if value is None and name == "wall_s":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"Limit {name} must be a number, not {value!r}.")
            if not low <= value <= high:
                raise ValueError(f"Limit {name} must lie between {low} and {high}, not {value}.")
            if name not in ("cpu_s", "wall_s") and not isinstance(value, int):
                raise ValueError(f"Limit {name} must be a whole number, not {value}.")

    @property
    def result_bytes(self) -> int:
        """Bytes on the wire of one value that tested code returns."""
        return self.result_mb << 20

    @property
    def wall(self) -> float:
        """Seconds on the clock after which the run is killed."""
        return self.wall_s if self.wall_s is not None else 3 * self.cpu_s + 2

    def to_json(self) -> dict[str, Any]:
        """The limits as an engine reads them, `wall_s` filled in."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"wall_s": self.wall}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`; unknown keys raise TypeError."""
        return cls(**data)
