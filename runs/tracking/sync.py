"""Logging runs in MLflow, and finding the runs that are not logged or whose log is out of date.

A run is never lost because MLflow is down or slow: its `tracking_state` is then `pending`, and workers or
`manage.py sync_tracking` log it later. They also log runs again that have newer preferences.
"""

import tempfile
from collections.abc import Generator, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone

from hub.common.fields import ContentUnavailable
from runs.models import ENDED, Run
from runs.tracking.additions import latest_changes
from runs.tracking.client import Tracker, TrackingError, without_password
from runs.tracking.config import Traces, TrackingConfig, tracking_config
from runs.tracking.job import build_job

_ANSWER_S = 120.0  # for a job without traces
_TRACE_S = 0.2  # more for each trace
_RESUMED = "The run was resumed while it was logged. It is logged again when it has ended."
_KEPT = ("parent", "cells", "experiment_id")  # links that stay valid if a later attempt fails
State = Run.TrackingState


class TrackingOutcome(TypedDict, total=False):
    """State of a run's tracking; `error` if it is pending."""

    state: str
    error: str


def track(run: Run, tracker: Tracker, config: TrackingConfig) -> TrackingOutcome:
    """Log *run* and store the links in Run.tracking, or why MLflow failed or its transcripts cannot be read.

    A run that was logged before is completed, not logged twice. A run that is resumed meanwhile is not marked as
    logged, because the log may lack its new results.
    """
    if not tracker.on:
        run.tracking_state, run.tracking = State.OFF, {}
    else:
        place = {"uri": address_without_password(), "experiment": _experiment(run, config)}
        try:
            run.tracking = {**place, **_log(run, tracker, place["experiment"], config.traces)}
            run.tracking_state = State.LOGGED
        except (TrackingError, ContentUnavailable, OSError) as error:  # OSError: no space for the artifacts
            kept = {key: value for key, value in run.tracking.items() if key in _KEPT}
            run.tracking = {**place, **kept, "error": str(error)}
            run.tracking_state = State.PENDING
    rows = Run.objects.filter(pk=run.pk)
    if run.tracking_state == State.LOGGED:
        rows = rows.filter(finished_at=run.finished_at)  # it changes when a run is resumed, and when it ends
    if not rows.update(tracking=run.tracking, tracking_state=run.tracking_state):
        run.tracking_state, run.tracking = State.PENDING, {**run.tracking, "error": _RESUMED}
    outcome = TrackingOutcome(state=run.tracking_state)
    if "error" in run.tracking:
        outcome["error"] = run.tracking["error"]
    return outcome


def track_in_turn(runs: Iterable[Run]) -> Generator[tuple[Run, TrackingOutcome], None, None]:
    """Log *runs* one after the other, and yield each with its outcome.

    If the process that logs has ended, as after the time limit of a run, the next run gets a new one.
    """
    tracker = Tracker.start(TrackingConfig())
    try:
        for run in runs:
            if tracker.has_ended:
                tracker.close()
                tracker = Tracker.start(TrackingConfig())
            yield run, track(run, tracker, tracking_config(run))
    finally:
        tracker.close()


def _experiment(run: Run, config: TrackingConfig) -> str:
    """Return the experiment of *run*: by default the one in which it is logged already, or else its name.

    A run that was renamed since is not logged a second time.
    """
    logged = str(run.tracking["experiment"]) if "parent" in run.tracking else ""
    return config.experiment or logged or run.name


def _log(run: Run, tracker: Tracker, experiment: str, traces_of: Traces) -> dict[str, object]:
    began = timezone.now()  # preferences from now on are not in this log
    with tempfile.TemporaryDirectory(prefix="llmeval-tracking-") as folder:
        job = build_job(
            run,
            Path(folder),
            experiment=experiment,
            artifact_root=_artifact_root(),
            traces=traces_of,
        )
        traces = sum(cell["metrics"]["responses"] for cell in job["cells"]) if job["traces"] else 0
        answer = tracker.log(job, _ANSWER_S + _TRACE_S * traces)
    return {**answer, "logged_at": began.isoformat()}


def _artifact_root() -> str | None:
    """Return where a local store keeps artifacts; None for a server, which decides that itself."""
    if urlsplit(settings.MLFLOW_TRACKING_URI).scheme in ("http", "https"):
        return None
    root = settings.MLFLOW_ARTIFACTS
    return root if "://" in root else Path(root).resolve().as_uri()


def address_without_password() -> str:
    """Return the address of MLflow without user and password."""
    return without_password(settings.MLFLOW_TRACKING_URI)


# ---- runs to log -----------------------------------------------------------------------------------------------------


def pending_runs() -> list[Run]:
    """Return runs that ended without being logged, the oldest first."""
    return list(Run.objects.filter(tracking_state=State.PENDING, status__in=ENDED, deleted_at=None).order_by("pk"))


def outdated_runs() -> list[Run]:
    """Return logged runs with preferences that are not in the log, the oldest first."""
    changes = latest_changes()
    logged = Run.objects.filter(tracking_state=State.LOGGED, status__in=ENDED, deleted_at=None)
    runs = logged.filter(pk__in=changes).order_by("pk")
    return [run for run in runs if changes[run.pk] > _logged_at(run)]


def runs_to_log() -> list[Run]:
    """Return the runs that are pending or outdated."""
    return [*pending_runs(), *outdated_runs()]


def _logged_at(run: Run) -> datetime:
    """Return when the run was read for its log; the earliest moment for logs without that time."""
    moment = run.tracking.get("logged_at")
    return datetime.fromisoformat(moment) if moment else datetime.min.replace(tzinfo=UTC)
