"""What a run came to, as data: one CellResult for each environment and model, and `eval --json` made of them.

Responses are read as a stream of light columns, so that memory hardly grows with their number (about 50 bytes each).
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from hub.common import wording
from hub.protocols.calls import total_cost
from hub.protocols.messages import JSON
from runs.models import Response, Run, RunEnvironment, RunModel, Score
from runs.results.counting import attempts_of, case_clusters, cell_responses, quarantined_cases
from runs.results.statistics.attempts import pass_at_k, pass_hat_k
from runs.results.statistics.means import Estimate, mean_estimate, quantile
from runs.stages import stages

COMPLETE_SHARE = 0.95  # of the expected responses must be scored; below, no result is final
_EVERY_K = 10  # up to so many attempts each k is reported; above, a few of them
_SOUND = ("passed", "completed")  # a sandbox outcome that is not a failure


class _Row(NamedTuple):
    """A response without its texts. Columns in the order of the query."""

    case_id: int
    status: str
    score: float | None
    truncated: bool
    refused: bool
    stop: str
    error_kind: str
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


@dataclass(slots=True)
class InstructionCounts:
    """What the rule `instructions` found: the four figures that IFEval publishes, as counts."""

    responses: int = 0
    responses_strict: int = 0
    responses_loose: int = 0
    instructions: int = 0
    strict: int = 0
    loose: int = 0

    def add(self, outcomes: Sequence[Mapping[str, Any]]) -> None:
        strict = sum(bool(outcome["strict"]) for outcome in outcomes)
        loose = sum(bool(outcome["loose"]) for outcome in outcomes)
        self.responses += 1
        self.responses_strict += strict == len(outcomes)
        self.responses_loose += loose == len(outcomes)
        self.instructions += len(outcomes)
        self.strict += strict
        self.loose += loose

    def to_json(self) -> dict[str, JSON]:
        return {
            "responses": self.responses,
            "instructions": self.instructions,
            "prompt_level": {
                "strict": _rounded(self.responses_strict / self.responses),
                "loose": _rounded(self.responses_loose / self.responses),
            },
            "instruction_level": {
                "strict": _rounded(self.strict / self.instructions),
                "loose": _rounded(self.loose / self.instructions),
            },
        }


@dataclass(slots=True, kw_only=True)
class CellResult:
    """One environment played by one model.

    Counts, accuracy and times leave quarantined cases out; tokens and cost are of everything that was asked.
    Costs are None where a part of them is not known; `unmetered` counts the model's responses without a known cost.
    `limits` counts episodes that a limit of turns or time ended, by limit; `expected` the responses that the run owes.
    """

    run_environment: RunEnvironment
    run_model: RunModel
    attempts: int
    cases: int
    left_out: frozenset[int] = frozenset()
    statuses: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    limits: Counter[str] = field(default_factory=Counter)
    truncated: int = 0
    refused: int = 0
    accuracy: Estimate = field(default_factory=lambda: mean_estimate([]))
    score: Estimate = field(default_factory=lambda: mean_estimate([]))
    pass_at: dict[int, float | None] = field(default_factory=dict)
    pass_hat: dict[int, float | None] = field(default_factory=dict)
    pass_cases: dict[int, int] = field(default_factory=dict)
    instructions: "InstructionCounts | None" = None
    latencies: "array[float]" = field(default_factory=lambda: array("d"))
    tokens: Counter[str] = field(default_factory=Counter)
    cost_usd: float | None = 0.0
    role_cost_usd: float | None = 0.0
    unmetered: int = 0
    executions: Counter[str] = field(default_factory=Counter)
    execution_times: "array[float]" = field(default_factory=lambda: array("d"))
    trust: Counter[str] = field(default_factory=Counter)
    tier: str = ""

    @property
    def environment(self) -> str:
        return str(self.run_environment.version)

    @property
    def model(self) -> str:
        return self.run_model.label

    @property
    def recorded(self) -> bool:
        """Whether the answers were recorded earlier rather than given in this run."""
        return self.run_model.provider == "replay"

    @property
    def quarantined(self) -> int:
        return len(self.left_out)

    @property
    def responses(self) -> int:
        return self.statuses.total()

    @property
    def expected(self) -> int:
        return self.cases * self.attempts

    @property
    def scored(self) -> int:
        return self.statuses["passed"] + self.statuses["failed"]

    @property
    def incomplete(self) -> bool:
        """Whether too little was scored for the accuracy to be final."""
        return self.scored < COMPLETE_SHARE * self.expected or self.expected == 0

    @property
    def total_cost_usd(self) -> float | None:
        """What it cost with its role models; None where a part of it is not known. Recordings cost nothing."""
        known = self.run_model.priced or self.recorded
        return total_cost([self.cost_usd, self.role_cost_usd]) if known else None

    @property
    def known_cost_usd(self) -> float | None:
        """What it cost with its role models; None where the model has no price, or its answers are recordings."""
        return self.total_cost_usd if self.run_model.priced else None

    @property
    def cost_per_correct_usd(self) -> float | None:
        """None where nothing passed or the cost is not known."""
        known, passed = self.known_cost_usd, self.statuses["passed"]
        return known / passed if known is not None and passed else None

    def latency(self, q: float) -> float | None:
        """Milliseconds of the model's own calls; None where all came from a recording or the cache."""
        return quantile(self.latencies, q)

    def execution_time(self, q: float) -> float | None:
        return quantile(self.execution_times, q)

    @property
    def execution_failures(self) -> dict[str, int]:
        """Sandbox outcomes that are failures, by kind, the most frequent first."""
        found = [(kind, n) for kind, n in self.executions.items() if kind not in _SOUND]
        return dict(sorted(found, key=lambda item: (-item[1], item[0])))

    def to_json(self) -> dict[str, JSON]:
        """An entry of `results` in `eval --json`. Keys are only ever added."""
        return {
            "environment": self.environment,
            "digest": self.run_environment.version.digest,
            "model": self.model,
            "cases": self.cases,
            "responses": self.responses,
            **{status: self.statuses[status] for status in Response.Status.values},
            "truncated": self.truncated,
            "refused": self.refused,
            "limit": self.limits.total(),
            "limits": dict(self.limits),
            "errors": dict(self.errors),
            "expected": self.expected,
            "quarantined": self.quarantined,
            "incomplete": self.incomplete,
            "recorded": self.recorded,
            "stopped": self.run_model.stopped,
            "accuracy": _rounded(self.accuracy.value),
            "ci95": _pair(self.accuracy),
            "ci_method": self.accuracy.method,
            "ci_note": self.accuracy.note,
            "effective_n": _rounded(self.accuracy.effective_n, 1),
            "mean_score": _rounded(self.score.value),
            "mean_score_ci95": _pair(self.score),
            "mean_score_ci_method": self.score.method,
            "pass_at": {str(k): _rounded(value) for k, value in self.pass_at.items()},
            "instructions": self.instructions.to_json() if self.instructions else None,
            "pass_hat": {str(k): _rounded(value) for k, value in self.pass_hat.items()},
            "latency_ms": {"p50": _rounded(self.latency(0.5), 1), "p95": _rounded(self.latency(0.95), 1)},
            "tokens": {name: self.tokens[name] for name in ("input", "output", "cached_input", "reasoning")},
            "cost_usd": _rounded(self.total_cost_usd),
            "priced": self.run_model.priced,
            "role_cost_usd": _rounded(self.role_cost_usd),
            "cost_per_correct_usd": _rounded(self.cost_per_correct_usd),
            "execution": {
                "runs": self.executions.total(),
                "runtime_ms": {
                    "p50": _rounded(self.execution_time(0.5), 1),
                    "p95": _rounded(self.execution_time(0.95), 1),
                },
                "tier": self.tier,
                "trust": {kind: self.trust[kind] for kind in ("isolated", "in_process")},
                "failures": self.execution_failures,
            },
        }


def run_results(run: Run) -> list[CellResult]:
    """The result of every environment and answering model of *run*, in the config's order."""
    models = list(run.models.filter(role="").order_by("position"))
    cells = []
    for part in run.environments.select_related("version__environment").order_by("position"):
        left_out = quarantined_cases(run, part)
        clusters = case_clusters(part)
        for model in models:
            cells.append(_cell(run, part, model, left_out, clusters))
    return cells


def results_json(run: Run, cells: list[CellResult] | None = None) -> dict[str, JSON]:
    """The document of `eval --json`; what later stages reported stands beside `results`, by their keys.

    *cells* are `run_results(run)`, for a caller that has them already.
    """
    cells = run_results(run) if cells is None else cells
    return {
        "run": run.pk,
        "name": run.name,
        "status": run.status,
        "message": run.message,
        "config_hash": run.config_hash,
        "seconds": round(run.seconds, 3),
        "cost_usd": _rounded(run.cost_usd),
        "attempts": attempts_of(run),
        "results": [cell.to_json() for cell in cells],
        "warnings": warnings(run, cells),
        **run.summaries,
        "mlflow": mlflow_ids(run),
    }


def known_cost(run: Run) -> float | None:
    """What *run* cost in USD; None where a part of it is not known, or no model of it has a price."""
    if run.cost_usd is not None and (run.cost_usd or run.models.filter(spec__price__isnull=False).exists()):
        return run.cost_usd
    return None


def mlflow_ids(run: Run) -> dict[str, JSON]:
    """Where the run is logged: the parent's id first, then one for each environment and model."""
    tracking = run.tracking
    ids = [tracking["parent"], *tracking.get("cells", {}).values()] if tracking.get("parent") else []
    return {"run_ids": ids, "state": tracking.get("state", "")}


def stage_sentences(run: Run) -> list[str]:
    """What the stages after the last response found, or why one failed: a sentence each, in their order."""
    found = []
    for stage in stages():
        summary = run.summaries.get(stage.key)
        if summary is not None:
            failed = set(summary) == {"error"}
            found.append(f"{stage.title} failed: {summary['error']}" if failed else stage.describe_summary(summary))
    return [sentence for sentence in found if sentence]


def warnings(run: Run, cells: Iterable[CellResult]) -> list[str]:
    """What a reader has to know before believing a figure: sentences, the gravest first."""
    cells = list(cells)
    found = []
    if run.status not in (Run.Status.COMPLETED, Run.Status.RUNNING):
        found.append(f"The run is {run.get_status_display()}. {run.message}".strip())
    for cell in cells:
        if cell.incomplete:
            found.append(
                f"{cell.model} on {cell.environment} is incomplete: {cell.scored:,} of {cell.expected:,} responses are "
                "scored, so its accuracy is not final."
            )
    stopped = run.models.exclude(stopped="").order_by("role", "position").values_list("label", "role", "stopped")
    found += [f"{label}{f' ({role})' if role else ''} was stopped: {reason}" for label, role, reason in stopped]
    if any(cell.tier == "C" for cell in cells):
        found.append(
            "Code ran under isolation tier C: separate processes and limits only. What the code did was hardly "
            "contained; it may have read tests that its user can read."
        )
    for cell in cells:
        tampered = cell.executions["tampered"]
        if tampered:
            found.append(f"{cell.model} on {cell.environment}: {tampered:,} answers interfered with their tests.")
        shared = cell.trust["in_process"]
        if shared:
            found.append(
                f"{cell.model} on {cell.environment}: {shared:,} of {cell.executions.total():,} executions shared a "
                "process with their tests, so code that looks for it can forge them (trust: in_process)."
            )
    recorded = sorted({cell.model for cell in cells if cell.recorded})
    if recorded:
        found.append(f"Recorded answers, given before this run: {', '.join(recorded)}. Latency and cost are unknown.")
    unpriced = sorted({cell.model for cell in cells if not cell.recorded and not cell.run_model.priced})
    if unpriced:
        found.append(f"No price is given for {', '.join(unpriced)}: what it cost is unknown.")
    for cell in cells:
        if cell.unmetered and cell.run_model.priced:
            found.append(
                f"{wording.counted(cell.unmetered, 'response')} of {cell.model} on {cell.environment} came without "
                "token counts (`usage`): what they cost is unknown."
            )
        if cell.role_cost_usd is None:
            found.append(
                f"What role models (judges, simulated users) for {cell.model} on {cell.environment} cost is unknown: "
                "one has no price, or its replies carried no token counts."
            )
    for environment, count in {cell.environment: cell.quarantined for cell in cells if cell.quarantined}.items():
        cases = "1 case" if count == 1 else f"{count:,} cases"
        found.append(f"Left out of {environment}, because a curator found it wrong: {cases}.")
    return found


# ---- one cell --------------------------------------------------------------------------------------------------------


def _cell(
    run: Run, part: RunEnvironment, model: RunModel, left_out: frozenset[int], clusters: Mapping[int, str]
) -> CellResult:
    cell = CellResult(
        run_environment=part,
        run_model=model,
        attempts=attempts_of(run),
        cases=part.case_count - len(left_out),
        left_out=left_out,
    )
    accuracies, scores = array("d"), array("d")
    cluster_of: list[str] = []
    outcomes: Counter[tuple[int, int]] = Counter()
    for case_id, rows in groupby(_rows(part, model), key=lambda row: row.case_id):
        passed = scored = 0
        score = 0.0
        for row in rows:
            _add_cost(cell, row)
            if case_id in left_out:
                continue
            _count(cell, row)
            if row.status in ("passed", "failed"):
                scored += 1
                passed += row.status == "passed"
                score += row.score or 0.0
        if scored:
            outcomes[scored, passed] += 1
            accuracies.append(passed / scored)
            scores.append(score / scored)
            if clusters:
                cluster_of.append(clusters.get(case_id, f"case {case_id}"))
    cell.accuracy = mean_estimate(accuracies, cluster_of if clusters else None)
    cell.score = mean_estimate(scores, cluster_of if clusters else None)
    _add_pass_rates(cell, outcomes)
    cell.instructions = _instruction_counts(cell)
    return cell


def _instruction_counts(cell: CellResult) -> InstructionCounts | None:
    """The outcomes of the rules `instructions` of one cell; None without such a rule or such an outcome."""
    rules = cell.run_environment.version.manifest.get("scoring", {}).get("rules", [])
    if not any(rule.get("type") == "instructions" for rule in rules):
        return None
    found = Score.objects.filter(
        type="instructions",
        value__isnull=False,
        response__run_environment=cell.run_environment,
        response__run_model=cell.run_model,
        response__status__in=("passed", "failed"),
    ).values_list("response__case_id", "detail")
    counts = InstructionCounts()
    for case_id, detail in found.iterator(chunk_size=2000):
        outcomes = detail.get("instructions") or []
        if case_id not in cell.left_out and outcomes and all("loose" in outcome for outcome in outcomes):
            counts.add(outcomes)
    return counts if counts.responses else None


def _rows(part: RunEnvironment, model: RunModel) -> Iterator[_Row]:
    rows = cell_responses(part, model).values_list(*_Row._fields)
    return map(_Row._make, rows.iterator(chunk_size=2000))


def _add_cost(cell: CellResult, row: _Row) -> None:
    cell.cost_usd = total_cost([cell.cost_usd, row.cost_usd])
    cell.role_cost_usd = total_cost([cell.role_cost_usd, row.role_cost_usd])
    cell.unmetered += row.cost_usd is None
    tokens = cell.tokens
    tokens["input"] += row.input_tokens
    tokens["output"] += row.output_tokens
    tokens["cached_input"] += row.cached_input_tokens
    tokens["reasoning"] += row.reasoning_tokens


def _count(cell: CellResult, row: _Row) -> None:
    cell.statuses[row.status] += 1
    cell.truncated += row.truncated
    cell.refused += row.refused
    if row.error_kind:
        cell.errors[row.error_kind] += 1
    if row.stop not in ("", "done"):
        cell.limits[row.stop] += 1
    if row.latency_ms is not None:
        cell.latencies.append(row.latency_ms)
    if row.execution_status:
        cell.executions[row.execution_status] += 1
        cell.trust[row.execution_trust or "isolated"] += 1
        cell.tier = max(cell.tier, row.sandbox_tier)  # the weakest that any of them ran under
        if row.execution_ms is not None:
            cell.execution_times.append(row.execution_ms)


def _add_pass_rates(cell: CellResult, outcomes: Counter[tuple[int, int]]) -> None:
    """pass@k and pass^k, each the mean over the cases with at least k scored attempts."""
    for k in reported_k(cell.attempts):
        counted = sum(cases for (n, _), cases in outcomes.items() if n >= k)
        cell.pass_cases[k] = counted
        for target, chance in ((cell.pass_at, pass_at_k), (cell.pass_hat, pass_hat_k)):
            total = sum((chance(n, c, k) or 0.0) * cases for (n, c), cases in outcomes.items())
            target[k] = total / counted if counted else None


def reported_k(attempts: int) -> list[int]:
    """Every k up to ten attempts; above, 1 2 5 10 20 50 ... and the number of attempts itself."""
    if attempts <= _EVERY_K:
        return list(range(1, attempts + 1))
    steps = [step * 10**power for power in range(4) for step in (1, 2, 5)]
    return [*(k for k in steps if k < attempts), attempts]


def _rounded(value: float | None, digits: int = 6) -> float | None:
    return None if value is None else round(value, digits)


def _pair(estimate: Estimate) -> list[float | None] | None:
    return None if estimate.low is None else [_rounded(estimate.low), _rounded(estimate.high)]


# ---- cases worth reading ---------------------------------------------------------------------------------------------


_SHORTCOMING_FIELDS = ("attempt", "status", "reason", "error_kind", "text", "stop", "truncated", "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedResponse:
    """A response that did not pass, as the reports list it. `text` is the last answer, whole."""

    response: int
    case: str
    attempt: int
    status: str
    reason: str
    text: str
    flags: tuple[str, ...]


def failed_responses(cell: CellResult, *, statuses: Iterable[str], limit: int) -> list[FailedResponse]:
    """The first *limit* responses of the cell with one of *statuses*, in the order of cases."""
    wanted = (
        Response.objects.filter(
            run_environment=cell.run_environment, run_model=cell.run_model, status__in=list(statuses)
        )
        .exclude(case_id__in=cell.left_out)
        .order_by("case__position", "attempt")
        .values_list("pk", flat=True)[:limit]
    )
    # Chosen by id first: a database that sorts whole answers holds all of them at once.
    found = Response.objects.filter(pk__in=list(wanted)).order_by("case__position", "attempt")
    return [
        FailedResponse(
            response=row["pk"],
            case=row["case__external_id"],
            attempt=row["attempt"],
            status=row["status"],
            reason=row["reason"],
            text=row["text"],
            flags=_flags(row),
        )
        for row in found.values("pk", "case__external_id", *_SHORTCOMING_FIELDS)
    ]


def _flags(row: Mapping[str, Any]) -> tuple[str, ...]:
    flags = [name for name in ("truncated", "refused") if row[name]]
    if row["stop"] not in ("", "done"):
        flags.append(f"limit of {row['stop']}")
    if row["error_kind"]:
        flags.append(row["error_kind"])
    return tuple(flags)
