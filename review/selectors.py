"""Selectors of the pairs and preferences of a run or of a response."""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, Q

from preferences.models import Preference
from preferences.selectors import current_preferences, without_withheld
from review.models import Assignment, JudgeCall, Pair
from review.queue.blinding import undecided_pairs
from runs.models import Response, Run

PAIRS_SHOWN = 50  # for one response; comparing attempts creates many pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPairs:
    """Number of pairs of a run, of those that wait for a reviewer, and of verdicts in force by source."""

    pairs: int
    waiting: int
    verdicts: list[tuple[Preference.Source, int]]


def summarize_run_pairs(run: Run) -> RunPairs:
    """Return the number of pairs of *run*, of those that wait for a reviewer, and of verdicts in force."""
    counts = Pair.objects.filter(run=run).aggregate(pairs=Count("pk"), waiting=Count("pk", filter=Q(free__gt=0)))
    # Two counts over indexes: looking for the successor of each of 50,000 preferences takes 80 ms.
    rows = Preference.objects.filter(run=run).order_by()
    stored = dict(rows.values_list("source").annotate(Count("pk")))
    later = rows.filter(supersedes__isnull=False).values("supersedes")
    superseded = dict(Preference.objects.filter(pk__in=later).order_by().values_list("source").annotate(Count("pk")))
    counted = ((source, stored.get(source, 0) - superseded.get(source, 0)) for source in Preference.Source)
    verdicts = [(source, count) for source, count in counted if count]
    return RunPairs(pairs=counts["pairs"], waiting=counts["waiting"], verdicts=verdicts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsePair:
    """Pair of a response, the other response, and the current verdicts, each with its text.

    If the user may still review the pair, it is `undecided`, and neither verdicts nor the other response are shown.
    """

    pair: Pair
    other: Response
    undecided: bool
    verdicts: list[tuple[Preference, str]]


def list_response_pairs(user: User | AnonymousUser, response: Response) -> list[ResponsePair]:
    """Return the first PAIRS_SHOWN pairs of *response*, with what *user* may see of them."""
    with_it = Q(first=response) | Q(second=response)
    pairs = Pair.objects.filter(with_it).select_related("first__run_model", "second__run_model")
    pairs = pairs.defer("first__messages", "first__text", "second__messages", "second__text").order_by("pk")
    verdicts: dict[int, list[tuple[Preference, str]]] = {}
    preferences = without_withheld(user, current_preferences().filter(with_it))
    for preference in preferences.select_related("reviewer").order_by("pk"):
        other_id = preference.second_id if preference.first_id == response.pk else preference.first_id
        verdicts.setdefault(other_id, []).append((preference, _verdict_text(preference, response)))
    found = []
    undecided = set(undecided_pairs(user).filter(with_it).values_list("pk", flat=True))
    for pair in pairs[:PAIRS_SHOWN]:
        other = pair.second if pair.first_id == response.pk else pair.first
        found.append(
            ResponsePair(pair=pair, other=other, undecided=pair.pk in undecided, verdicts=verdicts.get(other.pk, []))
        )
    return found


def _verdict_text(preference: Preference, response: Response) -> str:
    """Return the verdict as text for the page of *response*."""
    if not preference.decisive:
        return preference.get_verdict_display()
    chosen = preference.first_id if preference.verdict == "first" else preference.second_id
    return "this one is better" if chosen == response.pk else "the other is better"


def list_judge_calls(preference: Preference) -> list[JudgeCall]:
    """Return the calls from which the judge's verdict was made: one for each order, the pair's own order first."""
    calls = JudgeCall.objects.filter(
        pair__first=preference.first_id,
        pair__second=preference.second_id,
        judge=preference.judge,
        fingerprint=preference.judge_fingerprint,
        prompt_version=preference.prompt_version,
    )
    return list(calls.order_by("swapped", "pk"))


def has_reviewed(user: User) -> bool:
    """Return whether pairs were assigned to *user*, or *user* is the reviewer of preferences."""
    return Assignment.objects.filter(reviewer=user).exists() or Preference.objects.filter(reviewer=user).exists()
