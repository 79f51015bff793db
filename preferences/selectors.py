"""Selectors of preferences: current ones, filters, related objects, history and issue categories."""

from collections.abc import Callable
from datetime import date
from typing import TypedDict

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Exists, OuterRef, Q, QuerySet

from hub.models import CaseDefect
from preferences.models import IssueCategory, Preference
from runs.selectors import sees_all_runs, visible_runs


def current_preferences() -> QuerySet[Preference]:
    """Return the preferences in force, which are those that no other preference supersedes."""
    # Not `successor__isnull=True`: PostgreSQL expects one row of that, and joins everything else with nested loops.
    return Preference.objects.filter(~Exists(Preference.objects.filter(supersedes=OuterRef("pk"))))


Withheld = Callable[[User | AnonymousUser], Q | None]
_withheld: list[Withheld] = []


def register_withheld(condition: Withheld) -> None:
    """Register a function that returns the condition on preferences hidden from a user. Called from `ready()`."""
    _withheld.append(condition)


def without_withheld(user: User | AnonymousUser, rows: QuerySet[Preference]) -> QuerySet[Preference]:
    """Return *rows* without the preferences hidden from *user*."""
    for condition in _withheld:
        hidden = condition(user)
        if hidden is not None:
            rows = rows.exclude(hidden)
    return rows


def sees_all_preferences(user: User | AnonymousUser) -> bool:
    """Return whether no preference is hidden from *user*."""
    return sees_all_runs(user) and all(condition(user) is None for condition in _withheld)


def visible_preferences(user: User | AnonymousUser, *, superseded: bool = False) -> QuerySet[Preference]:
    """Return the preferences that *user* may see: those in force and, if *superseded*, also the earlier ones.

    Deleting a run keeps its preferences.
    """
    rows = Preference.objects.all() if superseded else current_preferences()
    return without_withheld(user, rows.filter(run__in=visible_runs(user, deleted=True).order_by().values("pk")))


def runs_with_preferences() -> Q:
    """Return the condition on runs that preferences refer to, so that they are never removed."""
    return Q(Exists(Preference.objects.filter(run=OuterRef("pk"))))


class PreferenceFilters(TypedDict, total=False):
    """Filters of preferences; empty values do not filter."""

    source: str
    run: int | None
    environment: str
    since: date | None
    verdict: str
    reviewer: str


def filter_preferences(
    rows: QuerySet[Preference],
    *,
    source: str = "",
    run: int | None = None,
    environment: str = "",
    since: date | None = None,
    verdict: str = "",
    reviewer: str = "",
) -> QuerySet[Preference]:
    """Return the *rows* that match all given filters."""
    wanted: dict[str, object] = {
        "source": source,
        "run_id": run,
        "version__environment__slug": environment,
        "created_at__date__gte": since,
        "verdict": verdict,
        "reviewer__username": reviewer,
    }
    return rows.filter(**{name: value for name, value in wanted.items() if value})


def case_has_accepted_defect() -> Exists:
    """Return the condition that a curator accepted a defect of the case, so that its tests do not count."""
    return Exists(CaseDefect.objects.filter(case=OuterRef("case"), status=CaseDefect.Status.ACCEPTED))


def openly_disputing_preferences() -> QuerySet[Preference]:
    """Return the preferences in force that overrule tests, with a report that no curator has resolved."""
    return current_preferences().filter(disputes_tests=True, defect__status=CaseDefect.Status.OPEN)


def without_refuted(rows: QuerySet[Preference]) -> QuerySet[Preference]:
    """Return *rows* without verdicts refuted by curators.

    These are verdicts of execution on cases that are wrong, and verdicts that overruled tests that are correct.
    """
    wrong = Q(case_has_accepted_defect())
    wrongly_overruled = Q(disputes_tests=True, defect__status=CaseDefect.Status.REJECTED) & ~wrong
    return rows.exclude(Q(source=Preference.Source.EXECUTION) & wrong).exclude(wrongly_overruled)


def with_related_objects(rows: QuerySet[Preference]) -> QuerySet[Preference]:
    """Return *rows* loaded with the related objects that pages and exports show."""
    return (
        rows.annotate(case_found_wrong=case_has_accepted_defect())
        .select_related(
            "first__run_model",
            "second__run_model",
            "case",
            "version__environment",
            "run",
            "reviewer",
            "suggestion",
            "defect",
        )
        .defer("version__manifest", "version__readme", "case__data", "run__host")
    )


def history(preference: Preference) -> list[Preference]:
    """Return all verdicts on the same two responses, including superseded ones, newest first."""
    same = Q(first=preference.first_id, second=preference.second_id) | Q(
        first=preference.second_id, second=preference.first_id
    )
    return list(Preference.objects.filter(same).select_related("reviewer", "successor").order_by("-id"))


def categories() -> list[IssueCategory]:
    """Return the active issue categories in the order set by curators."""
    return list(IssueCategory.objects.filter(active=True))
