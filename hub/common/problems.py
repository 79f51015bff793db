"""The one type for mistakes in what users write: bundles, datasets, configs, filters."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake. All problems prevent the action; there are no warnings.

    message: what is wrong. path: key path such as `models[0].price`, or the name of a parameter. file: file of a
    bundle. line: line of the file, or of the config if `file` is empty, from 1. option: option of the command line that
    set the value. remedy: sentence that says how to fix it.
    """

    message: str
    path: str = ""
    file: str = field(default="", kw_only=True)
    line: int | None = field(default=None, kw_only=True)
    option: str = field(default="", kw_only=True)
    remedy: str = field(default="", kw_only=True)

    @property
    def where(self) -> str:
        """Return the file, line and key path: `environment.yaml:3 (harness.type)`."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place} ({self.path})" if self.path else place

    def __str__(self) -> str:
        text = f"{self.message} {self.remedy}" if self.remedy else self.message
        if self.file:
            return f"{self.where}: {text}"
        place = self.option or (f"line {self.line}" if self.line else "")
        return ": ".join(part for part in (place, self.path, text) if part)
