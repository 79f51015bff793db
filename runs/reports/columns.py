"""Columns of a run's results: the one declaration that all reports use.

A column has a key, under which its value is in `eval --json`, in results.csv and in MLflow. If it has a heading, it is
also a column of the tables on a terminal, in the HTML file and on the run's page. Keys are never removed or renamed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from runs.reports import formats
from runs.results.figures import CellResult, InstructionCounts, Times
from runs.results.statistics.mean_intervals import Estimate
from runs.selectors import stop_reason

Group = Literal["result", "counts", "spending"]  # a narrow terminal drops the last group first


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Column of the result tables.

    `value` returns what JSON and CSV have under `key`. `text` returns the figure in a table, in `unit` if it has one.
    `short` is the heading on a terminal. `kind` selects how HTML pages draw it: an interval has a bar, a status is
    coloured and links to its responses.
    """

    key: str
    value: Callable[[CellResult], object]
    heading: str = ""
    short: str = ""
    unit: str = ""
    text: Callable[[CellResult], str] = lambda cell: ""
    tooltip: str = ""
    group: Group = "result"
    kind: Literal["figure", "interval", "status"] = "figure"

    @property
    def title(self) -> str:
        """Return the heading with its unit."""
        return f"{self.heading}, {self.unit}" if self.unit else self.heading

    @property
    def short_title(self) -> str:
        return self.short or self.title.lower()


def _status_column(status: str, short: str, tooltip: str) -> Column:
    return Column(
        key=status,
        value=lambda cell: cell.statuses[status],
        heading=status.capitalize(),
        short=short,
        text=lambda cell: formats.count(cell.statuses[status]),
        tooltip=tooltip,
        group="counts",
        kind="status",
    )


COLUMNS: tuple[Column, ...] = (
    Column(key="environment", value=lambda cell: cell.environment),
    Column(key="digest", value=lambda cell: cell.run_environment.version.digest),
    Column(key="model", value=lambda cell: cell.model),
    Column(
        key="accuracy",
        value=lambda cell: _rounded(cell.accuracy.value),
        heading="Accuracy",
        text=lambda cell: formats.percent(cell.accuracy.value),
        tooltip="Mean over cases of the share of scored attempts that passed",
    ),
    Column(
        key="ci95",
        value=lambda cell: _bounds(cell.accuracy),
        heading="95 % interval",
        short="[95 %]",
        text=lambda cell: formats.interval(cell.accuracy.low, cell.accuracy.high),
        tooltip="95 % confidence interval of the accuracy",
        kind="interval",
    ),
    Column(key="ci_method", value=lambda cell: cell.accuracy.method),
    Column(key="ci_note", value=lambda cell: cell.accuracy.note),
    Column(key="effective_n", value=lambda cell: _rounded(cell.accuracy.effective_n, 1)),
    Column(key="cases", value=lambda cell: cell.figures.cases),
    Column(
        key="scored_cases",
        value=lambda cell: cell.accuracy.n,
        heading="Cases",
        short="n",
        text=lambda cell: formats.count(cell.accuracy.n),
        tooltip="Cases with at least one scored response",
    ),
    Column(key="responses", value=lambda cell: cell.responses),
    _status_column("passed", "passed", "Responses that passed"),
    _status_column("failed", "failed", "Responses that were scored and did not pass"),
    _status_column("errored", "error", "Responses prevented by the network, the provider or the sandbox; not scored"),
    _status_column("unscored", "unsc.", "Responses that a rule could not decide"),
    Column(
        key="truncated",
        value=lambda cell: cell.figures.truncated,
        heading="Truncated",
        short="trunc.",
        text=lambda cell: formats.count(cell.figures.truncated),
        tooltip="Responses cut at the token limit",
        group="counts",
    ),
    Column(
        key="refused",
        value=lambda cell: cell.figures.refused,
        heading="Refused",
        short="refus.",
        text=lambda cell: formats.count(cell.figures.refused),
        tooltip="Responses that refused, or were stopped by a content filter",
        group="counts",
    ),
    Column(key="limit", value=lambda cell: sum(cell.figures.limits.values())),
    Column(key="limits", value=lambda cell: cell.figures.limits),
    Column(key="errors", value=lambda cell: cell.figures.errors),
    Column(key="expected", value=lambda cell: cell.expected),
    Column(key="quarantined", value=lambda cell: len(cell.figures.quarantined_cases)),
    Column(key="incomplete", value=lambda cell: cell.incomplete),
    Column(key="recorded", value=lambda cell: cell.recorded),
    Column(key="stopped", value=lambda cell: stop_reason(cell.run_model)),
    Column(key="mean_score", value=lambda cell: _rounded(cell.figures.score.value)),
    Column(key="mean_score_ci95", value=lambda cell: _bounds(cell.figures.score)),
    Column(key="mean_score_ci_method", value=lambda cell: cell.figures.score.method),
    Column(key="pass_at", value=lambda cell: _by_k(cell.figures.pass_at)),
    Column(key="instructions", value=lambda cell: _instruction_shares(cell.figures.instructions)),
    Column(key="pass_hat", value=lambda cell: _by_k(cell.figures.pass_hat)),
    Column(
        key="latency_ms",
        value=lambda cell: _times_json(cell.figures.latency_ms),
        heading="p50 / p95",
        short="p50/p95 ms",
        unit="ms",
        text=lambda cell: formats.times(cell.figures.latency_ms.p50, cell.figures.latency_ms.p95),
        tooltip="Median and 95th percentile of the model's own time; recorded and cached answers have none",
        group="spending",
    ),
    Column(
        key="tokens",
        value=lambda cell: cell.figures.tokens,
        heading="Tokens in / out",
        short="tokens in/out",
        text=lambda cell: (
            f"{formats.tokens(cell.figures.tokens['input'])}/{formats.tokens(cell.figures.tokens['output'])}"
        ),
        tooltip="Input and output tokens of all responses",
        group="spending",
    ),
    Column(
        key="cost_usd",
        value=lambda cell: rounded_cost(cell.total_cost_usd),
        heading="Cost",
        text=lambda cell: formats.money(cell.known_cost_usd),
        tooltip="US dollars including role models; unknown for recordings, without a price, or without token counts",
        group="spending",
    ),
    Column(key="priced", value=lambda cell: cell.run_model.priced),
    Column(key="role_cost_usd", value=lambda cell: rounded_cost(cell.figures.role_cost_usd)),
    Column(key="cost_per_correct_usd", value=lambda cell: rounded_cost(cell.cost_per_correct_usd)),
    Column(
        key="execution",
        value=lambda cell: {
            "runs": sum(cell.figures.executions.values()),
            "runtime_ms": _times_json(cell.figures.execution_ms),
            "tier": cell.figures.tier,
            "trust": cell.figures.trust,
            "failures": cell.execution_failures,
        },
    ),
)
TABLE_COLUMNS = tuple(column for column in COLUMNS if column.heading)


def result_json(cell: CellResult) -> dict[str, object]:
    """Return an entry of `results` in `eval --json`."""
    return {column.key: column.value(cell) for column in COLUMNS}


def _rounded(value: float | None, digits: int = 6) -> float | None:
    return None if value is None else round(value, digits)


def rounded_cost(usd: float | None) -> float | None:
    """Return a cost rounded to six decimals, and below a dollar to six significant digits: no cost is rounded to 0."""
    return None if usd is None else round(usd, 6) if abs(usd) >= 1 else float(f"{usd:.6g}")


def _bounds(estimate: Estimate) -> list[float | None] | None:
    return None if estimate.low is None else [_rounded(estimate.low), _rounded(estimate.high)]


def _times_json(times: Times) -> dict[str, float | None]:
    return {"p50": _rounded(times.p50, 1), "p95": _rounded(times.p95, 1)}


def _by_k(rates: Mapping[int, float | None]) -> dict[str, float | None]:
    return {str(k): _rounded(value) for k, value in rates.items()}


def _instruction_shares(counts: InstructionCounts | None) -> dict[str, object] | None:
    if counts is None:
        return None
    return {
        "responses": counts.responses,
        "instructions": counts.instructions,
        "prompt_level": {
            "strict": _rounded(counts.responses_strict / counts.responses),
            "loose": _rounded(counts.responses_loose / counts.responses),
        },
        "instruction_level": {
            "strict": _rounded(counts.strict / counts.instructions),
            "loose": _rounded(counts.loose / counts.instructions),
        },
    }
