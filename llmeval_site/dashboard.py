"""The first page after sign-in: what goes on, waits, went wrong, came out. A panel is a template and a function."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hub.selectors import is_curator, open_defects
from hub.web.queries import environments_filtered
from review.queue.backlog import review_progress
from runs.models import Run
from runs.reports.history import latest_results, result_before, same_cases
from runs.results.outcomes import outcomes_of
from runs.selectors import visible_runs
from runs.web.queries import live_counts, troubled_runs

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of the dashboard: `context` gives what `template` shows, or None where it has nothing to say."""

    template: str
    context: Callable[[User], dict[str, Any] | None]


def _running(user: User) -> dict[str, Any] | None:
    going = visible_runs(user).filter(status__in=[Run.Status.QUEUED, Run.Status.RUNNING])[:SHOWN]
    outcomes = outcomes_of(going)
    return {"runs": [(run, outcomes[run.pk], live_counts(run)) for run in going]} if going else None


def _waiting(user: User) -> dict[str, Any] | None:
    """What only this person, or people like them, can settle."""
    context: dict[str, Any] = {}
    if user.has_perm("review.decide_pair"):
        context["pairs"] = review_progress(user)
    if is_curator(user):
        context["claims"] = open_defects().count()
    waits = ("pairs" in context and context["pairs"].waiting) or context.get("claims")
    return context if waits else None


def _trouble(user: User) -> dict[str, Any] | None:
    found = troubled_runs(user, SHOWN)
    outcomes = outcomes_of(run for run, _ in found)
    return {"runs": [(run, outcomes[run.pk], counts) for run, counts in found]} if found else None


def _latest(user: User) -> dict[str, Any]:
    found = [(run, [_since(user, run, cell) for cell in shown.cells]) for run, shown in latest_results(user, SHOWN)]
    return {"results": found, "may_add": user.has_perm("runs.add_run")}


def _since(user: User, run: Run, cell: dict[str, Any]) -> dict[str, Any]:
    """A result, the one of the same model and environment before it, and by how much the accuracy changed.

    Where other cases were played the two accuracies say nothing together; their comparison, case by case, does.
    """
    before = result_before(user, run, cell["slug"], cell["model"])
    now, then = cell["accuracy"], before.cell["accuracy"] if before else None
    alike = before is not None and same_cases(run, before.run, cell["slug"])
    change = now - then if alike and now is not None and then is not None else None
    return {"cell": cell, "before": before, "change": change}


def _changed(user: User) -> dict[str, Any] | None:
    rows = environments_filtered(user).annotate(version_count=Count("versions")).order_by("-updated_at")[:SHOWN]
    return {"environments": rows} if rows else None


PANELS = [
    Panel("site/panels/running.html", _running),
    Panel("site/panels/waiting.html", _waiting),
    Panel("site/panels/trouble.html", _trouble),
    Panel("site/panels/latest.html", _latest),
    Panel("site/panels/changed.html", _changed),
]


@require_safe
def dashboard(request: HttpRequest) -> HttpResponse:
    assert request.user.is_authenticated
    panels = []
    for panel in PANELS:
        context = panel.context(request.user)
        if context is not None:
            panels.append({"template": panel.template, **context})
    return render(request, "site/dashboard.html", {"panels": panels})
