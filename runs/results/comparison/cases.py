"""Cases of two runs that can be compared one by one: same id, same input digest, same scoring digest."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hub.protocols.calls import total_cost
from runs.models import Response, Run, RunEnvironment, RunModel
from runs.results.counting import case_clusters, cell_responses, quarantined_cases

_SCORED = (Response.Status.PASSED, Response.Status.FAILED)

# Reasons why a case of one side cannot be compared, as reports show them.
ONLY_A, ONLY_B = "only in A", "only in B"
OTHER_INPUT = "other input"
OTHER_SCORING = "other scoring"
UNSCORED = "not scored by both"
QUARANTINED = "quarantined"


class ComparedCase(NamedTuple):
    """Case of one side: id, digests, mean of its scored attempts (None: no attempt was scored), cluster.

    `cost` is the mean in USD of all attempts, `latency` the mean in milliseconds of those with a known time; None if
    unknown.
    """

    pk: int
    input_digest: str
    scoring_digest: str
    mean: float | None
    cluster: str | None
    quarantined: bool
    cost: float | None = None
    latency: float | None = None


def load_cases(run: Run, part: RunEnvironment, model: RunModel) -> dict[str, ComparedCase]:
    """Return every case with a response, by its id."""
    left_out = quarantined_cases(run, part)
    clusters = case_clusters(part)
    counts: Counter[tuple[int, bool]] = Counter()
    cases: dict[int, tuple[str, str, str]] = {}
    costs: dict[int, list[float | None]] = defaultdict(list)
    latencies: dict[int, list[float]] = defaultdict(list)
    for pk, external_id, inputs, scoring, status, cost, role_cost, latency in _response_rows(part, model):
        cases[pk] = (external_id, inputs, scoring)
        costs[pk].append(total_cost([cost, role_cost]) if model.priced else None)
        if latency is not None:
            latencies[pk].append(latency)
        if status in _SCORED:
            counts[pk, status == Response.Status.PASSED] += 1
    sides = {}
    for pk, (external_id, inputs, scoring) in cases.items():
        scored = counts[pk, True] + counts[pk, False]
        mean = counts[pk, True] / scored if scored else None
        sides[external_id] = ComparedCase(
            pk, inputs, scoring, mean, clusters.get(pk), pk in left_out, _mean(costs[pk]), _mean(latencies[pk])
        )
    return sides


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


_Row = tuple[int, str, str, str, str, float | None, float | None, float | None]


def _response_rows(part: RunEnvironment, model: RunModel) -> Iterator[_Row]:
    digests = ("case_id", "case__external_id", "case__input_digest", "case__scoring_digest")
    columns = (*digests, "status", "cost_usd", "role_cost_usd", "latency_ms")
    return cell_responses(part, model).values_list(*columns).iterator(chunk_size=2000)


def reason_not_compared(a: ComparedCase, b: ComparedCase | None) -> str:
    """Return why two cases with the same id cannot be compared, or "" if they can."""
    if b is None:
        return ONLY_A
    if a.input_digest != b.input_digest:
        return OTHER_INPUT
    if a.scoring_digest != b.scoring_digest:
        return OTHER_SCORING
    if a.quarantined or b.quarantined:
        return QUARANTINED
    return UNSCORED if a.mean is None or b.mean is None else ""
