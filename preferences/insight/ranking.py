"""Ranking of models by environment, computed from the preferences in force."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import Q, QuerySet

from preferences.insight.bradley_terry import Match, RankedModel, SeparateGroups, rank_models
from preferences.insight.verdicts import MAX_ROWS, score_of_first
from preferences.models import Preference
from preferences.precedence import with_highest_precedence
from preferences.selectors import case_has_accepted_defect, openly_disputing_preferences, without_refuted


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Ranked models of one environment, or the `problem` that prevents ranking them."""

    models: list[RankedModel] = field(default_factory=list)
    problem: str = ""


class SourcedMatch(NamedTuple):
    """Comparison of two models with the source of the verdict."""

    source: str
    match: Match


def compute_rankings(rows: QuerySet[Preference]) -> dict[str, Ranking]:
    """Return the ranking of each environment, by its slug, from one verdict for each pair of responses.

    As in exports, verdicts of reviewers take precedence over execution, and execution over judges. A pair does not
    count if verdicts of that source contradict each other. "Both bad" counts as a tie. Verdicts that accepted the
    wrong suggestion of an attention check do not count, unless the check rests on tests that were found wrong. Neither
    do verdicts of judges that saw the results of wrong tests, and pairs with an open report about the tests.
    """
    pairs: dict[str, dict[tuple[int, int], list[SourcedMatch]]] = defaultdict(lambda: defaultdict(list))
    tests_wrong = Q(case_has_accepted_defect())
    failed_check = Q(check_result=Preference.Check.FAILED) & ~tests_wrong
    saw_wrong_tests = Q(source=Preference.Source.LLM, saw_evidence=True) & tests_wrong
    counted = without_refuted(rows).exclude(failed_check).exclude(saw_wrong_tests)
    disputing = openly_disputing_preferences().exclude(check_result=Preference.Check.FAILED).exclude(tests_wrong)
    disputed = {frozenset(pair) for pair in disputing.values_list("first_id", "second_id")}
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
        if a == b or frozenset((first, second)) in disputed:
            continue
        score = score_of_first(verdict)
        match = Match(a, b, score, case) if first < second else Match(b, a, 1 - score, case)
        pairs[slug][min(first, second), max(first, second)].append(SourcedMatch(source, match))
    return {slug: _ranking(found.values()) for slug, found in sorted(pairs.items())}


def _ranking(pairs: Iterable[Sequence[SourcedMatch]]) -> Ranking:
    matches = []
    for verdicts in pairs:
        found = {verdict.match for verdict in with_highest_precedence(verdicts)}
        if len(found) == 1:
            matches.append(found.pop())
    try:
        return Ranking(models=rank_models(matches))
    except SeparateGroups as error:
        return Ranking(problem=str(error))
