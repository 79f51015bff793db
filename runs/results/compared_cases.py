"""Cases of two runs that can be compared one by one: same id, same input digest, same scoring digest."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

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
    """Case of one side: digests, mean of its scored attempts (None: no attempt was scored), cluster."""

    input_digest: str
    scoring_digest: str
    mean: float | None
    cluster: str | None
    quarantined: bool


def load_cases(run: Run, part: RunEnvironment, model: RunModel) -> dict[str, ComparedCase]:
    """Return every case with a response, by its id."""
    left_out = quarantined_cases(run, part)
    clusters = case_clusters(part)
    counts: Counter[tuple[int, bool]] = Counter()
    cases: dict[int, tuple[str, str, str]] = {}
    for pk, external_id, inputs, scoring, status in _response_rows(part, model):
        cases[pk] = (external_id, inputs, scoring)
        if status in _SCORED:
            counts[pk, status == Response.Status.PASSED] += 1
    sides = {}
    for pk, (external_id, inputs, scoring) in cases.items():
        scored = counts[pk, True] + counts[pk, False]
        mean = counts[pk, True] / scored if scored else None
        sides[external_id] = ComparedCase(inputs, scoring, mean, clusters.get(pk), pk in left_out)
    return sides


def _response_rows(part: RunEnvironment, model: RunModel) -> Iterator[tuple[int, str, str, str, str]]:
    columns = ("case_id", "case__external_id", "case__input_digest", "case__scoring_digest", "status")
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
