"""A config while it is being parsed: what is valid so far, and every problem that was found."""

from collections import Counter
from collections.abc import Callable, Mapping

from hub.common import wording
from hub.common.documents import yaml_source
from hub.common.errors import UserError
from hub.common.problems import Problem
from runs.config.schema import EnvironmentRef, RunConfig
from runs.config_source import ConfigSource

_MAX_ALIKE = 3  # of the problems with the same message, this many are listed

AddProblem = Callable[[yaml_source.Path, str], None]


class ConfigError(UserError):
    """A config that cannot be run. `problems` holds every mistake, in the order of the file."""

    def __init__(self, problems: list[Problem], source: str = "config") -> None:
        self.problems = sorted(problems, key=lambda p: (bool(p.option), p.line is None, p.line or 0))
        self.source = source
        super().__init__("\n".join(self.lines()))

    def headline(self) -> str:
        return f"{self.source}: {wording.counted(len(self.problems), 'problem')}; nothing was stored."

    def errors(self) -> list[dict[str, object]]:
        return [
            {"path": item.path, "message": item.message, "line": item.line, "option": item.option}
            for item in self.problems
        ]

    def lines(self) -> list[str]:
        """Return a line for each problem. Of many with the same message, a few and the number of the others."""
        alike = Counter(problem.message for problem in self.problems)
        seen: Counter[str] = Counter()
        shown = []
        for problem in self.problems:
            seen[problem.message] += 1
            if seen[problem.message] <= _MAX_ALIKE:
                shown.append(str(problem))
            if seen[problem.message] == _MAX_ALIKE < alike[problem.message]:
                shown.append(f"  and {alike[problem.message] - _MAX_ALIKE:,} more like it")
        return shown


class ParsedConfig:
    """Result of parsing a config, with all problems found so far.

    config: None if a part of it is invalid. environments, roles, seed: the valid parts, so that environments can be
    looked up and all problems be reported together. unpriced: places of live models without a price.
    """

    def __init__(self, source: ConfigSource, document: yaml_source.YamlText | None = None) -> None:
        self.source = source
        self.document = document
        self.problems: list[Problem] = []
        self.overrides: dict[yaml_source.Path, str] = {}  # place -> the `--set` option that changed it
        self.unfilled: set[yaml_source.Path] = set()  # places with a variable that is not set
        self.config: RunConfig | None = None
        self.environments: dict[int, EnvironmentRef] = {}
        self.roles: frozenset[str] = frozenset()
        self.seed = 0
        self.unpriced: list[yaml_source.Path] = []

    def add_problem(self, path: yaml_source.Path, message: str) -> None:
        """Add a problem at *path*, unless its value is missing only because a variable is not set."""
        if path in self.unfilled:
            return
        option = self._option(path)
        line = self.document.line(path) if self.document and not option else None
        self.problems.append(Problem(message, yaml_source.dotted(path), line=line, option=option))

    def _option(self, path: yaml_source.Path) -> str:
        """Return the last `--set` option that set the value at *path*, or that alone created the mapping there."""
        lines: Mapping[yaml_source.Path, int] = self.document.lines if self.document else {}
        for place, option in reversed(self.overrides.items()):
            if path[: len(place)] == place or (place[: len(path)] == path and path not in lines):
                return option
        return ""

    def require_valid(self) -> RunConfig:
        """Return the config. Raises ConfigError with every problem."""
        if self.problems or self.config is None:
            raise ConfigError(self.problems, self.source.name)
        return self.config
