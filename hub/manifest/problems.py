"""Problems of a bundle: where, what, and how to fix it. No side effects."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from hub.common.errors import UserError
from hub.common.wording import counted

MAX_LISTED = 100  # different problems in a report
MAX_ALIKE = 3  # lines shown for the same problem; the others are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem. `file` is a path inside the bundle, `line` counts from 1, `key` is a path such as `harness.type`."""

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


class ProblemList:
    """Collected problems; the same problem on many lines is shown a few times and counted."""

    def __init__(self) -> None:
        self._alike: dict[tuple[str, str, str], list[Problem]] = {}
        self._count: Counter[tuple[str, str, str]] = Counter()

    def add(self, *problems: Problem) -> None:
        for problem in problems:
            kind = problem.file, problem.key, problem.message
            self._count[kind] += 1
            if self._count[kind] <= MAX_ALIKE:
                self._alike.setdefault(kind, []).append(problem)

    @property
    def full(self) -> bool:
        """Whether the limit of different problems is reached."""
        return len(self._alike) >= MAX_LISTED

    def sorted(self) -> list[Problem]:
        """Return all problems by file and line, environment.yaml first."""
        shown = []
        for kind, problems in self._alike.items():
            more = self._count[kind] - len(problems)
            last = replace(problems[-1], message=f"{problems[-1].message} The same on {more:,} more lines.")
            shown += [*problems[:-1], last] if more else problems
        if self.full:
            shown.append(Problem(file="~", message=f"Only the first {MAX_LISTED} kinds of problem are shown."))
        order = sorted(shown, key=lambda p: (p.file != "environment.yaml", p.file, p.line or 0))
        return [replace(p, file="") if p.file == "~" else p for p in order]


class BundleError(UserError):
    """A bundle that cannot be used. `problems` lists every problem found; nothing has been stored."""

    def __init__(self, problems: str | Problem | Iterable[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem(file="", message=problems)
        self.problems = [problems] if isinstance(problems, Problem) else list(problems)
        super().__init__("\n".join(self.lines()))

    def headline(self) -> str:
        return f"{counted(len(self.problems), 'problem')}; nothing was stored."

    def lines(self) -> list[str]:
        return [str(problem) for problem in self.problems]

    def errors(self) -> list[dict[str, Any]]:
        return [{"path": problem.where, **problem.to_json()} for problem in self.problems]
