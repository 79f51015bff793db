"""Aggregation of stored responses into one CellResult for each environment and model.

Responses are read as a stream of light columns, so that memory hardly grows with their number (about 50 bytes each).
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from hub.protocols.calls import total_cost
from runs.models import Response, Run, RunEnvironment, RunModel, Score
from runs.results.breakdown.failure_kinds import failure_kind
from runs.results.breakdown.latencies import latency_bin, sorted_bins
from runs.results.breakdown.leads import add_leads
from runs.results.breakdown.reasons import ReasonCounts
from runs.results.counting import case_clusters, cell_responses, clusters_of, quarantined_cases
from runs.results.figures import CellFigures, CellResult, InstructionCounts, Times
from runs.results.statistics.mean_intervals import mean, mean_estimate, quantile
from runs.results.statistics.pass_at_k import pass_at_k, pass_hat_k
from runs.selectors import models_under_test

_EVERY_K = 10  # up to this many attempts every k is reported; above, a few of them
_SERVED_MODELS = 5  # names that are kept
_TOKENS = ("input", "output", "cached_input", "reasoning")


class _ResponseRow(NamedTuple):
    """Response without its texts; the fields are the columns of the query."""

    pk: int
    case_id: int
    status: str
    score: float | None
    truncated: bool
    refused: bool
    stop: str
    error_kind: str
    reason: str
    latency_ms: float | None
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    role_cost_usd: float | None
    execution_status: str
    execution_ms: float | None
    sandbox_tier: str
    execution_trust: str
    served_model: str


def aggregate_run(run: Run) -> list[CellResult]:
    """Return the result of every environment and answering model of *run*, in the config's order."""
    models = models_under_test(run)
    cells = []
    for environment in run.environments.select_related("version__environment").order_by("position"):
        quarantined = quarantined_cases(run, environment)
        clusters = case_clusters(environment)
        group: list[CellResult] = []
        means: list[dict[int, float]] = []
        for model in models:
            figures, case_means = _aggregate_cell(run, environment, model, quarantined, clusters)
            group.append(CellResult(run_environment=environment, run_model=model, figures=figures))
            means.append(case_means if len(models) > 1 else {})
        add_leads(group, means, clusters)
        cells += group
    return cells


class _CellTotals:
    """Running totals over the responses of one cell."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter(dict.fromkeys(Response.Status.values, 0))
        self.stored: Counter[str] = Counter(dict.fromkeys(Response.Status.values, 0))
        self.errors: Counter[str] = Counter()
        self.limits: Counter[str] = Counter()
        self.executions: Counter[str] = Counter()
        self.trust: Counter[str] = Counter({"isolated": 0, "in_process": 0})
        self.tokens = dict.fromkeys(_TOKENS, 0)
        self.latencies = array("d")
        self.latency_bins: Counter[int] = Counter()
        self.failures: Counter[str] = Counter()
        self.reasons = ReasonCounts()
        self.first_failed: int | None = None
        self.execution_times = array("d")
        self.truncated = self.refused = self.unmetered = 0
        self.cost_usd: float | None = 0.0
        self.role_cost_usd: float | None = 0.0
        self.tier = ""
        self.served_models: Counter[str] = Counter()
        self.case_means: dict[int, float] = {}  # share of scored attempts that passed
        self.accuracies, self.scores = array("d"), array("d")
        self.outcomes: Counter[tuple[int, int]] = Counter()  # number of cases by (scored attempts, passed attempts)

    def add_cost(self, row: _ResponseRow) -> None:
        self.cost_usd = total_cost([self.cost_usd, row.cost_usd])
        self.role_cost_usd = total_cost([self.role_cost_usd, row.role_cost_usd])
        self.unmetered += row.cost_usd is None
        self.tokens["input"] += row.input_tokens
        self.tokens["output"] += row.output_tokens
        self.tokens["cached_input"] += row.cached_input_tokens
        self.tokens["reasoning"] += row.reasoning_tokens

    def add_counts(self, row: _ResponseRow) -> None:
        self.statuses[row.status] += 1
        if row.served_model:
            self.served_models[row.served_model] += 1
        self.truncated += row.truncated
        self.refused += row.refused
        if row.error_kind:
            self.errors[row.error_kind] += 1
        if row.stop not in ("", "done"):
            self.limits[row.stop] += 1
        if row.latency_ms is not None:
            self.latencies.append(row.latency_ms)
            self.latency_bins[latency_bin(row.latency_ms)] += 1
        if row.execution_trust == "in_process" and not row.execution_status:
            self.trust["in_process"] += 1  # tests in a workspace, which are no executions of the sandbox
        if row.execution_status:
            self.executions[row.execution_status] += 1
            self.trust[row.execution_trust or "isolated"] += 1
            self.tier = max(self.tier, row.sandbox_tier)  # the weakest of all executions
            if row.execution_ms is not None:
                self.execution_times.append(row.execution_ms)

    def add_failure(self, row: _ResponseRow) -> None:
        kind = failure_kind(
            status=row.status,
            error_kind=row.error_kind,
            refused=row.refused,
            truncated=row.truncated,
            stop=row.stop,
            execution_status=row.execution_status,
        )
        if not kind:
            return
        self.failures[kind] += 1
        self.reasons.add(row.reason)
        if row.status == Response.Status.FAILED:
            self.first_failed = row.pk if self.first_failed is None else min(self.first_failed, row.pk)

    def add_case(self, case_id: int, scored: int, passed: int, score: float) -> None:
        """Add a case with *scored* attempts; *score* is the sum of theirs."""
        self.outcomes[scored, passed] += 1
        self.case_means[case_id] = passed / scored
        self.accuracies.append(passed / scored)
        self.scores.append(score / scored)


def _read_totals(environment: RunEnvironment, model: RunModel, quarantined: frozenset[int]) -> _CellTotals:
    totals = _CellTotals()
    for case_id, rows in groupby(_response_rows(environment, model), key=lambda row: row.case_id):
        passed = scored = 0
        score = 0.0
        for row in rows:
            totals.add_cost(row)
            totals.stored[row.status] += 1
            if case_id in quarantined:
                continue
            totals.add_counts(row)
            totals.add_failure(row)
            if row.status in ("passed", "failed"):
                scored += 1
                passed += row.status == "passed"
                score += row.score or 0.0
        if scored:
            totals.add_case(case_id, scored, passed, score)
    return totals


def _aggregate_cell(
    run: Run,
    environment: RunEnvironment,
    model: RunModel,
    quarantined: frozenset[int],
    clusters: Mapping[int, str],
) -> tuple[CellFigures, dict[int, float]]:
    """Return the figures of one cell, and the share of scored attempts that passed by case."""
    totals = _read_totals(environment, model, quarantined)
    attempts = run.attempts
    ks = reported_k(attempts)
    groups = clusters_of([*totals.case_means], clusters)
    figures = CellFigures(
        attempts=attempts,
        cases=environment.case_count - len(quarantined),
        quarantined_cases=sorted(quarantined),
        statuses=dict(totals.statuses),
        stored=dict(totals.stored),
        errors=_by_frequency(totals.errors),
        limits=_by_frequency(totals.limits),
        truncated=totals.truncated,
        refused=totals.refused,
        accuracy=mean_estimate(totals.accuracies, groups),
        score=mean_estimate(totals.scores, groups),
        pass_at={k: _pass_rate(totals.outcomes, k, all_pass=False) for k in ks},
        pass_hat={k: _pass_rate(totals.outcomes, k, all_pass=True) for k in ks},
        pass_cases={k: _cases_with(totals.outcomes, k) for k in ks},
        instructions=_instruction_counts(environment, model, quarantined),
        latency_ms=_times(totals.latencies),
        latency_bins=sorted_bins(totals.latency_bins),
        failures=_by_frequency(totals.failures),
        reasons=totals.reasons.most_common(),
        first_failed=totals.first_failed,
        tokens=totals.tokens,
        cost_usd=totals.cost_usd,
        role_cost_usd=totals.role_cost_usd,
        unmetered=totals.unmetered,
        executions=_by_frequency(totals.executions),
        execution_ms=_times(totals.execution_times),
        trust=dict(totals.trust),
        tier=totals.tier,
        served_models=dict(totals.served_models.most_common(_SERVED_MODELS)),
    )
    return figures, totals.case_means


def _response_rows(environment: RunEnvironment, model: RunModel) -> Iterator[_ResponseRow]:
    rows = cell_responses(environment, model).values_list(*_ResponseRow._fields)
    return map(_ResponseRow._make, rows.iterator(chunk_size=2000))


def _by_frequency(counts: Counter[str]) -> dict[str, int]:
    """Return the counts, the largest first and equal ones by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _times(values: "array[float]") -> Times:
    return Times(p50=quantile(values, 0.5), p95=quantile(values, 0.95), mean=mean(values))


def _instruction_counts(
    environment: RunEnvironment, model: RunModel, quarantined: frozenset[int]
) -> InstructionCounts | None:
    """Return the counts of the rules `instructions` of one cell; None without such a rule or without its outcomes."""
    rules = environment.version.manifest.get("scoring", {}).get("rules", [])
    if not any(rule.get("type") == "instructions" for rule in rules):
        return None
    details = Score.objects.filter(
        type="instructions",
        value__isnull=False,
        response__run_environment=environment,
        response__run_model=model,
        response__status__in=("passed", "failed"),
    ).values_list("response__case_id", "detail")
    counts = InstructionCounts()
    for case_id, detail in details.iterator(chunk_size=2000):
        outcomes = detail.get("instructions") or []
        if case_id in quarantined or not outcomes or not all("loose" in outcome for outcome in outcomes):
            continue
        strict = sum(bool(outcome["strict"]) for outcome in outcomes)
        loose = sum(bool(outcome["loose"]) for outcome in outcomes)
        counts.responses += 1
        counts.responses_strict += strict == len(outcomes)
        counts.responses_loose += loose == len(outcomes)
        counts.instructions += len(outcomes)
        counts.strict += strict
        counts.loose += loose
    return counts if counts.responses else None


# ---- several attempts ------------------------------------------------------------------------------------------------


def reported_k(attempts: int) -> list[int]:
    """Return every k up to ten attempts; above, 1 2 5 10 20 50 ... and the number of attempts itself."""
    if attempts <= _EVERY_K:
        return list(range(1, attempts + 1))
    steps = [step * 10**power for power in range(4) for step in (1, 2, 5)]
    return [*(k for k in steps if k < attempts), attempts]


def _cases_with(outcomes: Counter[tuple[int, int]], k: int) -> int:
    """Return the number of cases with at least *k* scored attempts."""
    return sum(cases for (scored, _), cases in outcomes.items() if scored >= k)


def _pass_rate(outcomes: Counter[tuple[int, int]], k: int, *, all_pass: bool) -> float | None:
    """Return pass@k, or pass^k if *all_pass*: the mean over the cases with at least *k* scored attempts."""
    chance = pass_hat_k if all_pass else pass_at_k
    cases = _cases_with(outcomes, k)
    total = sum((chance(scored, passed, k) or 0.0) * count for (scored, passed), count in outcomes.items())
    return total / cases if cases else None
