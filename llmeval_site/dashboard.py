"""The first page after sign-in: what goes on, what came out, what is new. A panel is a template and a function."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hub.browsing import environments_filtered
from runs.browsing import live_counts, played_by, runs_visible
from runs.models import Run
from runs.past import latest_results

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of the dashboard: `context` gives what `template` shows, or None where it has nothing to say."""

    template: str
    context: Callable[[User], dict[str, Any] | None]


def _running(user: User) -> dict[str, Any] | None:
    going = runs_visible(user).filter(status__in=[Run.Status.QUEUED, Run.Status.RUNNING])[:SHOWN]
    return {"runs": [(run, live_counts(run)) for run in going]} if going else None


def _latest(user: User) -> dict[str, Any]:
    found = list(latest_results(user, SHOWN))
    return {"results": found, "played": played_by([run for run, _ in found]), "may_add": user.has_perm("runs.add_run")}


def _changed(user: User) -> dict[str, Any] | None:
    rows = environments_filtered(user).order_by("-updated_at")[:SHOWN]
    return {"environments": rows} if rows else None


PANELS = [
    Panel("site/panels/running.html", _running),
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
