"""Problems of a bundle, collected and reported together."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TypedDict

from hub.common.errors import UserError
from hub.common.problems import Problem
from hub.common.wording import counted

MANIFEST = "environment.yaml"
MAX_LISTED = 100  # different problems in a report
MAX_ALIKE = 3  # lines shown for the same problem; the others are counted


class ProblemList:
    """Collected problems; the same problem on many lines is shown a few times and counted."""

    def __init__(self) -> None:
        self._alike: dict[tuple[str, str, str], list[Problem]] = {}
        self._count: Counter[tuple[str, str, str]] = Counter()

    def add(self, *problems: Problem) -> None:
        for problem in problems:
            kind = problem.file, problem.path, problem.message
            if problem.file == MANIFEST and problem in self._alike.get(kind, []):
                continue  # a fixed value, found again with each case
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
            last = replace(problems[-1], message=_and_more(problems[-1].message, more))
            shown += [*problems[:-1], last] if more else problems
        if self.full:
            shown.append(Problem(file="~", message=f"Only the first {MAX_LISTED} kinds of problem are shown."))
        order = sorted(shown, key=lambda p: (p.file != MANIFEST, p.file, p.line or 0))
        return [replace(p, file="") if p.file == "~" else p for p in order]


def _and_more(message: str, more: int) -> str:
    return f"{message.removesuffix('.')}. The same on {counted(more, 'more line')}."


class BundleError(UserError):
    """Bundle that cannot be used. `problems` lists every problem found; nothing has been stored."""

    def __init__(self, problems: str | Problem | Iterable[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem(problems)
        self.problems = [problems] if isinstance(problems, Problem) else list(problems)
        super().__init__("\n".join(self.lines()))

    def headline(self) -> str:
        return f"{counted(len(self.problems), 'problem')}; nothing was stored."

    def lines(self) -> list[str]:
        return [str(problem) for problem in self.problems]

    def errors(self) -> list[dict[str, object]]:
        return [{"path": problem.where, **problem_to_json(problem)} for problem in self.problems]


class ProblemJSON(TypedDict):
    """A problem of a bundle as JSON."""

    message: str
    remedy: str
    file: str
    line: int | None
    key: str


def problem_to_json(problem: Problem) -> ProblemJSON:
    """Return a problem of a bundle as JSON."""
    return {
        "message": problem.message,
        "remedy": problem.remedy,
        "file": problem.file,
        "line": problem.line,
        "key": problem.path,
    }


def problem_from_json(value: ProblemJSON) -> Problem:
    """Return the problem that `problem_to_json` wrote."""
    return Problem(value["message"], value["key"], file=value["file"], line=value["line"], remedy=value["remedy"])
