"""Loading of pairs with what their pages and prompts show: run, case, suggestion, and the responses with scores."""

from collections.abc import Sequence

from django.db.models import QuerySet

from review.models import Assignment, Pair
from runs.models import Response

# Large columns that neither judges nor reviewers see.
_DEFERRED = ("run__config", "run__host", "run__tracking", "case__data")
_DEFERRED_OF_RESPONSES = (
    "text",
    "run_environment__version__manifest",
    "run_environment__version__readme",
    "run_environment__version__certificate",
)


def with_run_and_case(pairs: QuerySet[Pair]) -> QuerySet[Pair]:
    """Let *pairs* be loaded with their run, case and suggestion."""
    return pairs.select_related("run", "case", "suggestion").defer(*_DEFERRED)


def with_pair(assignments: QuerySet[Assignment]) -> QuerySet[Assignment]:
    """Let *assignments* be loaded with their pair, its run, case and suggestion."""
    assignments = assignments.select_related("pair__run", "pair__case", "pair__suggestion")
    return assignments.defer(*(f"pair__{name}" for name in _DEFERRED))


def pairs_with_responses(wanted: QuerySet[Pair]) -> list[Pair]:
    """Return *wanted* in queue order, loaded with responses, scores, models and case."""
    pairs = list(with_run_and_case(wanted).order_by("position", "id"))
    load_responses(pairs)
    return pairs


def find_assignment(wanted: QuerySet[Assignment]) -> Assignment | None:
    """Return the first of *wanted*, its pair loaded as by `pairs_with_responses`."""
    assignment = with_pair(wanted).first()
    if assignment is not None:
        load_responses([assignment.pair])
    return assignment


def load_responses(pairs: Sequence[Pair]) -> None:
    """Load the responses of *pairs*, which were read `with_run_and_case`, with scores and models."""
    # A query of their own, because PostgreSQL took 4 ms to plan one that joins everything: four times as long as these.
    sides = Response.objects.filter(pk__in={pk for pair in pairs for pk in (pair.first_id, pair.second_id)})
    sides = sides.select_related("run_model", "run_environment__version__environment").defer(*_DEFERRED_OF_RESPONSES)
    responses = {side.pk: side for side in sides.order_by().prefetch_related("scores")}
    for pair in pairs:
        pair.first, pair.second = responses[pair.first_id], responses[pair.second_id]
        pair.first.run_environment.run = pair.second.run_environment.run = pair.run
        pair.first.case = pair.second.case = pair.case
