"""Dashboard, the first page after sign-in. A panel is a template with a function that returns its context."""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hub.common.web.users import signed_in_user
from hub.selectors import is_curator, list_open_defects, may_see_content
from hub.web.queries import filter_environments
from review.queue.backlog import review_progress
from runs.models import ACTIVE
from runs.reports.page import best_cells
from runs.results.figures import CellResult
from runs.results.history import PastResult, latest_results, results_before, same_cases
from runs.results.outcomes import outcomes_of
from runs.selectors import visible_runs
from runs.web.progress import get_progress
from runs.web.queries import list_incomplete_runs

SHOWN = 5
Context = dict[str, object]


@dataclass(frozen=True, slots=True)
class Panel:
    """Part of the dashboard. `context` returns the context of `template`, or None if the panel has no content."""

    template: str
    context: Callable[[User], Context | None]


def _running(user: User) -> Context | None:
    runs = visible_runs(user).filter(status__in=ACTIVE)[:SHOWN]
    outcomes = outcomes_of(runs)
    return {"runs": [(run, outcomes[run.pk], get_progress(run)) for run in runs]} if runs else None


def _waiting(user: User) -> Context | None:
    """Return the pairs and reports of wrong cases that wait for a decision of the user."""
    pairs = review_progress(user) if user.has_perm("review.decide_pair") else None
    defects = list_open_defects(user).count() if is_curator(user) else 0
    return {"pairs": pairs, "defects": defects} if defects or (pairs is not None and pairs.waiting) else None


def _trouble(user: User) -> Context | None:
    found = list_incomplete_runs(user, SHOWN)
    outcomes = outcomes_of(run for run, _ in found)
    return {"runs": [(run, outcomes[run.pk], counts) for run, counts in found]} if found else None


def _latest(user: User) -> Context:
    latest = latest_results(user, SHOWN)
    before = results_before(user, [run for run, _ in latest])
    found = []
    for run, cells in latest:
        best = best_cells(cells)
        rows = [_with_change(cell, before.get((cell.run_environment.pk, cell.run_model.pk))) for cell in best]
        found.append((run, rows, len(cells) - len(best)))
    return {"results": found, "may_add": user.has_perm("runs.add_run")}


def _with_change(cell: CellResult, before: PastResult | None) -> Context:
    """Return a result, the result of the same model and environment before it, and the change of the accuracy.

    There is no change if the two results are of different cases, or one has no scored response; comparing the runs case
    by case shows the difference.
    """
    change = None
    same = before is not None and same_cases(cell, before.cell)
    if before is not None and same:
        now, then = cell.accuracy.value, before.cell.accuracy.value
        change = now - then if now is not None and then is not None else None
    return {"cell": cell, "before": before, "change": change, "same": same}


def _changed(user: User) -> Context | None:
    rows = filter_environments(user).annotate(version_count=Count("versions")).order_by("-updated_at")[:SHOWN]
    return {"environments": [(row, may_see_content(user, row)) for row in rows]} if rows else None


PANELS = [
    Panel("site/panels/running.html", _running),
    Panel("site/panels/waiting.html", _waiting),
    Panel("site/panels/trouble.html", _trouble),
    Panel("site/panels/latest.html", _latest),
    Panel("site/panels/changed.html", _changed),
]


@require_safe
def dashboard(request: HttpRequest) -> HttpResponse:
    """Show the panels that have content for the user."""
    user = signed_in_user(request)
    panels = []
    for panel in PANELS:
        context = panel.context(user)
        if context is not None:
            panels.append({"template": panel.template, **context})
    return render(request, "site/dashboard.html", {"panels": panels})
