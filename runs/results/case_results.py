"""Results by case of one model on one environment. Comparisons of models read them."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import NamedTuple, Self, cast

from django.db.models import Case as Choice
from django.db.models import TextField, Value, When

from hub.common.fields import digest_of
from hub.protocols.calls import total_cost
from runs.models import Response, Run, RunEnvironment, RunModel
from runs.results.counting import case_clusters, cell_responses, quarantined_cases
from runs.results.statistics.mean_intervals import mean


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResults:
    """Results of all cases of one cell that have a response, as columns with one value for each case.

    Columns are short as JSON and fast to read. `case` has the ids, `scored` the numbers of scored attempts, `passed`
    how many of these passed. `wrong` has digests of the different answers that failed, "" if none did. `cost` is the
    mean in USD of the attempts with a request, 0 if none has one, `latency` the mean in milliseconds of those
    with a known time; None if unknown.
    `cluster` is empty if the dataset has no clusters. `quarantined` has the ids of the quarantined cases.
    """

    case: list[int] = field(default_factory=list)
    scored: list[int] = field(default_factory=list)
    passed: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    cost: list[float | None] = field(default_factory=list)
    latency: list[float | None] = field(default_factory=list)
    cluster: list[str | None] = field(default_factory=list)
    quarantined: list[int] = field(default_factory=list)

    def to_json(self) -> dict[str, list[object]]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, list[object]]) -> Self:
        return cls(**cast("dict[str, list[object]]", stored))  # type: ignore[arg-type]

    def means(self) -> list[float | None]:
        """Return the share of scored attempts that passed; None for cases without a scored attempt."""
        pairs = zip(self.passed, self.scored, strict=True)
        return [passed / scored if scored else None for passed, scored in pairs]


class _Row(NamedTuple):
    case: int
    status: str
    cost: float | None
    role_cost: float | None
    latency: float | None
    wrong: str

    @property
    def was_requested(self) -> bool:
        """Whether the model gave a reply in this run; False for one from the cache or a recording, and for none."""
        return self.cost != 0 or self.latency is not None


def aggregate_cases(run: Run, run_environment: RunEnvironment, model: RunModel) -> CaseResults:
    """Compute the results by case from the responses of one cell."""
    clusters = case_clusters(run_environment)
    found = CaseResults(quarantined=sorted(quarantined_cases(run, run_environment)))
    for case, rows in groupby(_rows(run_environment, model), key=lambda row: row.case):
        attempts = list(rows)
        passed = sum(row.status == Response.Status.PASSED for row in attempts)
        failed = sum(row.status == Response.Status.FAILED for row in attempts)
        requested = [row for row in attempts if row.was_requested]
        costs = [total_cost([row.cost, row.role_cost]) for row in requested] or [0.0]
        found.case.append(case)
        found.scored.append(passed + failed)
        found.passed.append(passed)
        found.wrong.append(_digest({row.wrong for row in attempts if row.wrong}))
        known = [cost for cost in costs if cost is not None]
        found.cost.append(mean(known) if model.priced and len(known) == len(costs) else None)
        found.latency.append(mean([row.latency for row in attempts if row.latency is not None]))
        if clusters:
            found.cluster.append(clusters.get(case))
    return found


def _rows(run_environment: RunEnvironment, model: RunModel) -> Iterator[_Row]:
    # The database computes the digests, because texts may be long.
    failed = When(status=Response.Status.FAILED, then=digest_of("text"))
    rows = cell_responses(run_environment, model).annotate(
        wrong=Choice(failed, default=Value(""), output_field=TextField())
    )
    columns = ("case_id", "status", "cost_usd", "role_cost_usd", "latency_ms", "wrong")
    return map(_Row._make, rows.values_list(*columns).iterator(chunk_size=2000))


def _digest(answers: set[str]) -> str:
    return hashlib.sha256(",".join(sorted(answers)).encode()).hexdigest()[:16] if answers else ""
