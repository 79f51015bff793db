"""Ranking of models by environment, computed from the preferences in force."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import QuerySet

from preferences.insight.bradley_terry import Match, SeparateGroups, Standing, standings
from preferences.insight.verdicts import MAX_ROWS, score_of_first
from preferences.models import Preference
from preferences.precedence import from_first_source
from preferences.selectors import standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Standings of one environment, or the `problem` that prevents them."""

    standings: list[Standing] = field(default_factory=list)
    problem: str = ""


class SourcedMatch(NamedTuple):
    """Comparison of two models with the source of the verdict."""

    source: str
    match: Match


def compute_rankings(rows: QuerySet[Preference]) -> dict[str, Ranking]:
    """Return the standings by environment, from one verdict for each pair of responses.

    As in exports, a person's verdict counts before execution's, and execution's before a judge's; a pair on which
    verdicts of one source contradict each other does not count. Both bad is a tie: neither is better. Accepted wrong
    suggestions that were seeded as checks do not count.
    """
    pairs: dict[str, dict[tuple[int, int], list[SourcedMatch]]] = defaultdict(lambda: defaultdict(list))
    counted = standing(rows).exclude(check_result=Preference.Check.FAILED)
    columns = (
        "version__environment__slug",
        "source",
        "first_id",
        "second_id",
        "first__run_model__label",
        "second__run_model__label",
        "verdict",
        "case_id",
    )
    for slug, source, first, second, a, b, verdict, case in counted.order_by("-id").values_list(*columns)[:MAX_ROWS]:
        if a == b:
            continue
        score = score_of_first(verdict)
        match = Match(a, b, score, case) if first < second else Match(b, a, 1 - score, case)
        pairs[slug][min(first, second), max(first, second)].append(SourcedMatch(source, match))
    return {slug: _ranking(found.values()) for slug, found in sorted(pairs.items())}


def _ranking(pairs: Iterable[Sequence[SourcedMatch]]) -> Ranking:
    matches = []
    for verdicts in pairs:
        found = {verdict.match for verdict in from_first_source(verdicts)}
        if len(found) == 1:
            matches.append(found.pop())
    try:
        return Ranking(standings=standings(matches))
    except SeparateGroups as error:
        return Ranking(problem=str(error))
