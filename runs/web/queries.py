"""What the pages and REST of runs list: visible runs, filtered responses, counts of a run that goes on."""

from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Exists, F, OuterRef, QuerySet
from django.db.models.functions import Lower
from django.http import Http404

from runs.models import ENDED, WITH_RESULTS, Response, Run, RunEnvironment, RunModel
from runs.selectors import (
    KNOWN_COST,
    REASON_WITHHELD,
    UNKNOWN_COSTS,
    reasons_withheld,
    responses_matching,
    visible_runs,
    withheld_environments,
)

# What lists can be sorted by: name in the address -> field of the rows.
RUN_COLUMNS = {"run": "name_key", "status": "status", "took": "seconds", "cost": "cost_usd", "started": "id"}
RESPONSE_COLUMNS = {
    "case": "case_name",
    "status": "status",
    "model": "run_model__label",
    "environment": "run_environment__version__environment__slug",
    "score": "score",
    "ms": "latency_ms",
    "tokens": "output_tokens",
}
HEAVY = ("messages", "text")  # a response's columns that lists do not load


def run_of(user: User | AnonymousUser, pk: int) -> Run:
    """Raises Http404 where there is none that *user* may see."""
    run = visible_runs(user).defer(None).filter(pk=pk).first()
    if run is None:
        raise Http404(f"There is no run {pk}, or one of its environments is private to another user.")
    return run


def filter_runs(
    user: User | AnonymousUser, *, status: str = "", environment: str = "", model: str = "", q: str = ""
) -> QuerySet[Run]:
    runs = visible_runs(user).annotate(name_key=Lower("name"))
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


def played_by(runs: list[Run]) -> dict[int, dict[str, Any]]:
    """By run id: `{"environments": [slug], "models": [label], "priced": whether any has a price}`, as in the config."""
    played: dict[int, dict[str, Any]] = {run.pk: {"environments": [], "models": [], "priced": False} for run in runs}
    environments = RunEnvironment.objects.filter(run__in=runs).order_by("run", "position")
    for pk, slug in environments.values_list("run_id", "version__environment__slug"):
        played[pk]["environments"].append(slug)
    models = RunModel.objects.filter(run__in=runs, role="").order_by("run", "position")
    for pk, label in models.values_list("run_id", "label"):
        played[pk]["models"].append(label)
    for pk in RunModel.objects.filter(run__in=runs, spec__price__isnull=False).values_list("run_id", flat=True):
        played[pk]["priced"] = True
    return played


def answering_labels(run: Run) -> list[str]:
    """Labels of the models that answer in *run*, in the order of the config."""
    return list(run.models.filter(role="").order_by("position").values_list("label", flat=True))


def comparable_run(user: User | AnonymousUser, run: Run) -> Run | None:
    """The run to compare *run* with: the latest other one with one of its environments and has results, else
    *run* itself where several models answered in it, else none."""
    slugs = run.environments.values("version__environment")
    played = RunEnvironment.objects.filter(run=OuterRef("pk"), version__environment__in=slugs)
    other = visible_runs(user).exclude(pk=run.pk).filter(Exists(played), status__in=WITH_RESULTS).first()
    return other or (run if len(answering_labels(run)) > 1 else None)


def downloadable_run(user: User | AnonymousUser, pk: int) -> Run:
    """A run whose responses may be exported with targets and reasons. Raises Http404 and PermissionDenied."""
    run = run_of(user, pk)
    withheld = withheld_environments(user, run).select_related("version__environment").first()
    if withheld is not None:
        raise PermissionDenied(
            f"{withheld.version.environment.slug} is held out: files with its targets and reasons are for its owner "
            "and curators."
        )
    return run


SHORT = [Response.Status.ERRORED, Response.Status.UNSCORED]
LOOKED_AT = 30  # the latest ended runs


def troubled_runs(user: User | AnonymousUser, shown: int) -> list[tuple[Run, dict[str, int]]]:
    """Recent runs that broke off or hold responses without a score, and how many by status, the latest first.

    A run is left out once a later run of the same config has completed in full.
    """
    recent = list(visible_runs(user).filter(status__in=ENDED).exclude(status=Run.Status.CANCELLED)[:LOOKED_AT])
    counts: dict[int, dict[str, int]] = {run.pk: {} for run in recent}
    rows = Response.objects.filter(run_environment__run__in=recent, status__in=SHORT).order_by()
    by_status = rows.values_list("run_environment__run", "status").annotate(count=Count("id"))
    for pk, status, count in by_status:
        counts[pk][status] = count
    mended: set[str] = set()
    found = []
    for run in recent:
        if run.status == Run.Status.COMPLETED and not counts[run.pk]:
            mended.add(run.config_hash)
        elif run.config_hash not in mended:
            found.append((run, counts[run.pk]))
    return found[:shown]


def responses_of(run: Run) -> QuerySet[Response]:
    """All responses of *run*, with what a list names of them and without their texts."""
    return (
        Response.objects.filter(run_environment__run=run)
        .select_related("run_model", "run_environment__version__environment")
        .defer(*HEAVY, "run_environment__version__manifest", "run_environment__version__readme")
        .annotate(case_name=F("case__external_id"))
        .order_by("id")
    )


def filter_responses(
    user: User | AnonymousUser,
    run: Run,
    *,
    status: str = "",
    environment: str = "",
    model: str = "",
    q: str = "",
    flag: str = "",
) -> QuerySet[Response]:
    """The responses of *run* that match; *q* and *flag* as in runs.selectors."""
    rows = responses_of(run)
    if status:
        rows = rows.filter(status=status)
    if environment:
        rows = rows.filter(run_environment__version__environment__slug=environment)
    if model:
        rows = rows.filter(run_model__label=model)
    return responses_matching(rows, q=q, flag=flag, withheld=withheld_environments(user, run))


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
    """How far *run* is: `{"done", "expected", "cost_usd", "cells": [{"environment", "model", "passed", ...}]}`.

    `cost_usd` is None where a part of it is not known.
    """
    parts = list(run.environments.select_related("version__environment").order_by("position"))
    models = list(run.models.filter(role="").order_by("position"))
    rows = (
        Response.objects.filter(run_environment__in=parts)
        .order_by()
        .values("run_environment_id", "run_model_id", "status")
        .annotate(count=Count("id"), cost=KNOWN_COST, unknown=UNKNOWN_COSTS)
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
                    "expected": part.case_count * run.attempts,
                    "stopped": model.stopped,
                    **by_status,
                }
            )
    return {
        "done": sum(cell["done"] for cell in cells),
        "expected": sum(cell["expected"] for cell in cells),
        "cost_usd": None if any(row["unknown"] for row in rows) else sum(row["cost"] or 0.0 for row in rows),
        "cells": cells,
    }


def withhold_reasons(user: User | AnonymousUser, rows: list[Response]) -> None:
    """Replace in memory the reasons that *user* may not read."""
    for row in rows:
        if row.reason and reasons_withheld(user, row):
            row.reason = REASON_WITHHELD
