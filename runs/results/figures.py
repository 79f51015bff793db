"""Figures of one model on one environment of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hub.protocols.calls import total_cost
from runs.models import RunEnvironment, RunModel
from runs.providers.registry import PROVIDERS
from runs.results.statistics.mean_intervals import Estimate

COMPLETE_SHARE = 0.95  # of the expected responses must be scored; below, no result is final
_SUCCESSFUL = ("passed", "completed")  # execution statuses that are not failures


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Median, 95th percentile and mean of times in milliseconds; None if there are none."""

    p50: float | None = None
    p95: float | None = None
    mean: float | None = None


@dataclass(slots=True, kw_only=True)
class InstructionCounts:
    """Counts of the rule `instructions`, from which the four figures of IFEval are computed."""

    responses: int = 0
    responses_strict: int = 0
    responses_loose: int = 0
    instructions: int = 0
    strict: int = 0
    loose: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """Paired difference between the best model of an environment and the model *over*, on the cases both scored."""

    over: str
    cases: int
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    p_adjusted: float | None = None
    detectable: float | None = None
    note: str = ""


@dataclass(slots=True, kw_only=True)
class CellFigures:
    """Figures aggregated from the responses of one model to one environment, as plain data that JSON can store.

    Counts, accuracy and times leave quarantined cases out; tokens, cost and `stored`, the number of responses by
    status, include every response. Costs are None if a part of them is not known; `unmetered` counts the model's
    responses without a known cost. `limits` counts episodes that a limit of turns or time ended, by limit. Dictionaries
    of counts start with the most frequent key, but `latency_bins` (runs/results/breakdown/latencies.py) with the
    shortest time. `failures` has one kind for each response that did not pass, `reasons` the most frequent patterns of
    reasons. `first_failed` is the id of the response that failed and was stored first, as lists of responses are
    ordered. `leads` is empty unless the model is the most accurate of several. `served_models` counts the responses by
    the model that the endpoint reported, the most frequent names only.
    """

    attempts: int
    cases: int
    quarantined_cases: list[int] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    truncated: int = 0
    refused: int = 0
    accuracy: Estimate
    score: Estimate
    pass_at: dict[int, float | None] = field(default_factory=dict)
    pass_hat: dict[int, float | None] = field(default_factory=dict)
    pass_cases: dict[int, int] = field(default_factory=dict)
    instructions: InstructionCounts | None = None
    latency_ms: Times
    latency_bins: dict[int, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    first_failed: int | None = None
    leads: list[Lead] = field(default_factory=list)
    tokens: dict[str, int] = field(default_factory=dict)
    cost_usd: float | None = 0.0
    role_cost_usd: float | None = 0.0
    unmetered: int = 0
    executions: dict[str, int] = field(default_factory=dict)
    execution_ms: Times
    trust: dict[str, int] = field(default_factory=dict)
    tier: str = ""
    served_models: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """Result of one model on one environment of a run."""

    run_environment: RunEnvironment
    run_model: RunModel
    figures: CellFigures

    @property
    def environment(self) -> str:
        return str(self.run_environment.version)

    @property
    def slug(self) -> str:
        return self.run_environment.version.environment.slug

    @property
    def version(self) -> str:
        return self.run_environment.version.version

    @property
    def model(self) -> str:
        return self.run_model.label

    @property
    def recorded(self) -> bool:
        """Return whether the provider replays recordings instead of calling a model in this run."""
        name = self.run_model.provider
        return name in PROVIDERS and not PROVIDERS[name].live  # a stored provider may no longer be installed

    @property
    def accuracy(self) -> Estimate:
        return self.figures.accuracy

    @property
    def statuses(self) -> Mapping[str, int]:
        return self.figures.statuses

    @property
    def responses(self) -> int:
        return sum(self.figures.statuses.values())

    @property
    def expected(self) -> int:
        return self.figures.cases * self.figures.attempts

    @property
    def scored(self) -> int:
        return self.figures.statuses["passed"] + self.figures.statuses["failed"]

    @property
    def incomplete(self) -> bool:
        """Return whether too few responses were scored for the accuracy to be final."""
        return self.scored < COMPLETE_SHARE * self.expected or self.expected == 0

    @property
    def total_cost_usd(self) -> float | None:
        """Return the cost including role models; None if a part of it is not known. Recordings cost nothing."""
        known = self.run_model.priced or self.recorded
        return total_cost([self.figures.cost_usd, self.figures.role_cost_usd]) if known else None

    @property
    def known_cost_usd(self) -> float | None:
        """Return the cost including role models; None if the model has no price, or its answers are recordings."""
        return self.total_cost_usd if self.run_model.priced else None

    @property
    def cost_per_correct_usd(self) -> float | None:
        """Return None if nothing passed or the cost is not known."""
        cost, passed = self.known_cost_usd, self.statuses["passed"]
        return cost / passed if cost is not None and passed else None

    @property
    def execution_failures(self) -> dict[str, int]:
        """Return the number of executions that failed, by kind, the most frequent first."""
        return {kind: count for kind, count in self.figures.executions.items() if kind not in _SUCCESSFUL}
