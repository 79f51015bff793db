"""What is wrong with a bundle: where, what, and how to mend it. Pure."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

MAX_LISTED = 100  # of one kind; a dataset with one mistake in every row should not print a book


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One mistake. `file` is a path inside the bundle, `line` counts from 1, `key` is a path such as `harness.type`."""

    message: str
    remedy: str = ""
    file: str = "environment.yaml"
    line: int | None = None
    key: str = ""

    @property
    def where(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place} ({self.key})" if self.key else place

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} {self.remedy}" if self.remedy else text

    def to_json(self) -> dict[str, str | int | None]:
        return asdict(self)


class BundleError(ValueError):
    """A bundle that cannot be used, with every problem found so far; nothing has been stored."""

    def __init__(self, problems: str | Problem | Iterable[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem(file="", message=problems)
        self.problems = [problems] if isinstance(problems, Problem) else list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
