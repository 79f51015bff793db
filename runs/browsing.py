"""What the pages and REST of runs list: visible runs, filtered responses, counts of a run that goes on."""

from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, Exists, F, OuterRef, QuerySet, Sum
from django.http import Http404

from hub.models import Environment
from hub.selectors import is_curator
from runs.counting import attempts_of
from runs.models import Response, Run, RunEnvironment, RunModel

ENDED = [
    Run.Status.COMPLETED,
    Run.Status.INTERRUPTED,
    Run.Status.STOPPED,
    Run.Status.CANCELLED,
    Run.Status.FAILED,
]
HEAVY = ("messages", "text")  # a response's columns that lists do not load


def runs_visible(user: User | AnonymousUser) -> QuerySet[Run]:
    """Runs whose environments *user* may see: a run shows its cases."""
    runs = Run.objects.select_related("created_by").defer("host")
    if is_curator(user):
        return runs
    foreign = RunEnvironment.objects.filter(
        run=OuterRef("pk"), version__environment__visibility=Environment.Visibility.PRIVATE
    )
    if user.pk:
        foreign = foreign.exclude(version__environment__owner_id=user.pk)
    return runs.filter(~Exists(foreign))


def run_of(user: User | AnonymousUser, pk: int) -> Run:
    """Raises Http404 where there is none that *user* may see."""
    run = runs_visible(user).defer(None).filter(pk=pk).first()
    if run is None:
        raise Http404(f"There is no run {pk}, or it played an environment that is private to somebody else.")
    return run


def runs_filtered(
    user: User | AnonymousUser, *, status: str = "", environment: str = "", model: str = "", q: str = ""
) -> QuerySet[Run]:
    runs = runs_visible(user)
    if status:
        runs = runs.filter(status=status)
    if environment:
        played = RunEnvironment.objects.filter(run=OuterRef("pk"), version__environment__slug=environment)
        runs = runs.filter(Exists(played))
    if model:
        runs = runs.filter(Exists(RunModel.objects.filter(run=OuterRef("pk"), role="", label=model)))
    if q:
        runs = runs.filter(name__icontains=q)
    return runs


def played_by(runs: list[Run]) -> dict[int, dict[str, list[str]]]:
    """By run id: `{"environments": [slug], "models": [label]}`, in the order of the config."""
    played: dict[int, dict[str, list[str]]] = {run.pk: {"environments": [], "models": []} for run in runs}
    environments = RunEnvironment.objects.filter(run__in=runs).order_by("run", "position")
    for pk, slug in environments.values_list("run_id", "version__environment__slug"):
        played[pk]["environments"].append(slug)
    models = RunModel.objects.filter(run__in=runs, role="").order_by("run", "position")
    for pk, label in models.values_list("run_id", "label"):
        played[pk]["models"].append(label)
    return played


def responses_of(run: Run) -> QuerySet[Response]:
    """All responses of *run*, with what a list names of them and without their texts."""
    return (
        Response.objects.filter(run_environment__run=run)
        .select_related("run_model", "run_environment__version__environment")
        .defer(*HEAVY, "run_environment__version__manifest", "run_environment__version__readme")
        .annotate(case_name=F("case__external_id"))
        .order_by("id")
    )


def responses_filtered(
    run: Run, *, status: str = "", environment: str = "", model: str = "", q: str = "", flag: str = ""
) -> QuerySet[Response]:
    """*flag*: truncated, refused or limit. *q* looks in case ids and reasons."""
    rows = responses_of(run)
    if status:
        rows = rows.filter(status=status)
    if environment:
        rows = rows.filter(run_environment__version__environment__slug=environment)
    if model:
        rows = rows.filter(run_model__label=model)
    if flag in ("truncated", "refused"):
        rows = rows.filter(**{flag: True})
    elif flag == "limit":
        rows = rows.exclude(stop__in=["", "done"])
    if q:
        rows = rows.filter(case__external_id__icontains=q) | rows.filter(reason__icontains=q)
    return rows


def response_of(user: User | AnonymousUser, pk: int) -> Response:
    """Raises Http404."""
    found = (
        Response.objects.select_related("run_model", "case", "run_environment__version__environment")
        .filter(pk=pk)
        .first()
    )
    if found is None:
        raise Http404(f"There is no response {pk}.")
    found.run_environment.run = run_of(user, found.run_environment.run_id)
    return found


def live_counts(run: Run) -> dict[str, Any]:
    """How far *run* is: `{"done", "expected", "cost_usd", "cells": [{"environment", "model", "passed", ...}]}`."""
    parts = list(run.environments.select_related("version__environment").order_by("position"))
    models = list(run.models.filter(role="").order_by("position"))
    rows = (
        Response.objects.filter(run_environment__in=parts)
        .order_by()
        .values("run_environment_id", "run_model_id", "status")
        .annotate(count=Count("id"), cost=Sum(F("cost_usd") + F("role_cost_usd")))
    )
    counts = {(row["run_environment_id"], row["run_model_id"], row["status"]): row["count"] for row in rows}
    cells = []
    for part in parts:
        for model in models:
            by_status = {status: counts.get((part.pk, model.pk, status), 0) for status in Response.Status.values}
            cells.append(
                {
                    "environment": str(part.version),
                    "slug": part.version.environment.slug,
                    "model": model.label,
                    "done": sum(by_status.values()),
                    "expected": part.case_count * attempts_of(run),
                    "stopped": model.stopped,
                    **by_status,
                }
            )
    return {
        "done": sum(cell["done"] for cell in cells),
        "expected": sum(cell["expected"] for cell in cells),
        "cost_usd": sum(row["cost"] or 0.0 for row in rows),
        "cells": cells,
    }
