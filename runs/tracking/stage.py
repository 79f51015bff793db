"""Tracking in MLflow: a process of its own that speaks to it, the stage that hands it a finished run, catching up.

`Tracker.start(config)` when a run starts, `track` at its end (the stage does that), `Tracker.close()` in any case. A
command that is about to read a config begins with `Tracker.ahead()`, and `manage.py` has its process launched even
before (runs.tracking_launch), since mlflow takes as long to import as all else.
MLflow being down or slow never loses a run: Run.tracking is then `{"state": "pending", "error": ...}`. Workers, now and
then, and `manage.py sync_tracking` log it later; they also log again what people judged since. Nothing but
runs.tracking_process imports mlflow.
"""

import asyncio
import json
import subprocess
import tempfile
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal, Self
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connections
from django.utils import timezone

from hub.protocols.messages import JSON
from runs.models import Run
from runs.stages import Stage, StageConfig, StageContext, StageEstimate
from runs.tracking import launch
from runs.tracking.additions import newest
from runs.tracking.job import build_job

_ANSWER_S = 120.0  # for a job without traces
_TRACE_S = 0.2  # more for each trace
_LEAVE_S = 5.0  # for the process to end by itself once its stdin has ended


class TrackingError(Exception):
    """MLflow did not take a run; the text says why."""


class TrackingConfig(StageConfig):
    """`tracking:` of a config. `experiment` is by default the run's name; `traces` logs each response as a trace."""

    mlflow: bool = True
    experiment: str | None = None
    traces: Literal["none", "failures", "all"] = "none"


class Tracker:
    """The process that speaks to MLflow, starting up while cases are played. Without a process: tracking is off."""

    def __init__(self, process: subprocess.Popen[str] | None, said: IO[str] | None) -> None:
        self._process = process
        self._said = said  # its stderr, for when it dies
        self._opened = False

    @classmethod
    def ahead(cls) -> "Tracker":
        """Begin to import mlflow, before it is known whether it is wanted. Nothing is opened or written yet."""
        return cls(*launch.take())

    @classmethod
    def start(cls, config: TrackingConfig | None) -> "Tracker":
        """Begin to import mlflow and to open the store. Does nothing where *config* is None or says `mlflow: false`."""
        return cls.ahead().opened(config) if config is not None and config.mlflow else cls.off()

    @classmethod
    def off(cls) -> "Tracker":
        """No tracking: a process that was launched ahead is ended."""
        launch.drop()
        return cls(None, None)

    def opened(self, config: TrackingConfig | None) -> Self:
        """Begin to open the store; end the process where *config* wants none."""
        process = self._process
        if config is None or not config.mlflow:
            self.close()
        elif process is not None and process.stdin is not None:
            self._opened = True
            with suppress(BrokenPipeError):  # it died already, which `log` tells
                process.stdin.write(json.dumps({"open": settings.MLFLOW_TRACKING_URI}) + "\n")
                process.stdin.flush()
        return self

    @property
    def on(self) -> bool:
        return self._process is not None

    def log(self, job: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Hand over one job and wait for the answer, at most *seconds*. Raises TrackingError."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise TrackingError("Tracking is off.")
        # Killing it ends the wait below: a pipe has no read with a time limit.
        limit = threading.Timer(seconds, process.kill)
        limit.start()
        try:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (BrokenPipeError, ValueError):
            line = ""
        finally:
            limit.cancel()
        if not line.endswith("\n"):  # it died, perhaps in the middle of its answer
            raise TrackingError(self._last_words(seconds))
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise TrackingError(answer["error"])
        return answer

    def _last_words(self, seconds: float) -> str:
        assert self._process is not None and self._said is not None
        code = self._process.wait()
        self._said.seek(0)
        lines = self._said.read().strip().splitlines()
        if code == -9:
            return f"MLflow did not answer within {seconds:.0f} s."
        return f"The tracking process ended with {code}: {lines[-1] if lines else 'it said nothing'}"

    def close(self) -> None:
        """End the process; one that does not leave by itself is killed. May be called again."""
        process, self._process = self._process, None
        if process is None or process.stdin is None or process.stdout is None:
            return
        if not self._opened:
            process.kill()  # it has nothing to lose yet, and would first import to the end
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        if self._said is not None:
            self._said.close()


def track(run: Run, tracker: Tracker, config: TrackingConfig) -> dict[str, JSON]:
    """Log *run* and keep the links in Run.tracking, which is returned. Never raises for what MLflow does.

    A run that was logged before is completed, not logged twice.
    """
    if not tracker.on:
        run.tracking = {"state": "off"}
    else:
        place = {"uri": _shown(settings.MLFLOW_TRACKING_URI), "experiment": config.experiment or run.name}
        try:
            run.tracking = {"state": "logged", **place, **_log(run, tracker, config)}
        except (TrackingError, OSError) as error:  # OSError: no room for the artifacts
            kept = {key: value for key, value in run.tracking.items() if key in ("parent", "cells", "experiment_id")}
            run.tracking = {"state": "pending", **place, **kept, "error": str(error)}
    Run.objects.filter(pk=run.pk).update(tracking=run.tracking)
    return run.tracking


def _log(run: Run, tracker: Tracker, config: TrackingConfig) -> dict[str, Any]:
    began = timezone.now()  # what people judge from now on is not in this log
    with tempfile.TemporaryDirectory(prefix="llmeval-tracking-") as folder:
        job = build_job(
            run,
            Path(folder),
            experiment=config.experiment or run.name,
            artifact_root=_artifact_root(),
            traces=config.traces,
        )
        traces = sum(cell["metrics"]["responses"] for cell in job["cells"]) if job["traces"] else 0
        answer = tracker.log(job, _ANSWER_S + _TRACE_S * traces)
    return {**answer, "logged_at": began.isoformat()}


def _artifact_root() -> str | None:
    """Where a store without a server of its own keeps artifacts; a server decides that by itself."""
    if urlsplit(settings.MLFLOW_TRACKING_URI).scheme in ("http", "https"):
        return None
    root = settings.MLFLOW_ARTIFACTS
    return root if "://" in root else Path(root).resolve().as_uri()


def _shown(uri: str) -> str:
    """The address without user and password."""
    parts = urlsplit(uri)
    return uri if "@" not in parts.netloc else parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def config_of(run: Run) -> TrackingConfig:
    """The tracking part of a stored run's config."""
    return TrackingConfig.model_validate(run.config.get("tracking") or {})


def pending_runs() -> list[Run]:
    """Runs that ended without being logged, the oldest first: MLflow was down, or the process died too early."""
    ended = Run.objects.exclude(status__in=[Run.Status.QUEUED, Run.Status.RUNNING]).order_by("pk")
    return [run for run in ended if run.tracking.get("state") not in ("logged", "off") and config_of(run).mlflow]


def outdated_runs() -> list[Run]:
    """Runs that were logged before people, or a judge, said something of them that is not in the log."""
    moments = newest()
    runs = Run.objects.filter(pk__in=moments, tracking__state="logged").order_by("pk")
    return [run for run in runs if moments[run.pk] > _logged_at(run)]


def behind_runs() -> list[Run]:
    """All whose log lacks something."""
    return [*pending_runs(), *outdated_runs()]


def _logged_at(run: Run) -> datetime:
    """When what is logged was read; the earliest moment for what was logged before that was noted."""
    noted = run.tracking.get("logged_at")
    return datetime.fromisoformat(noted) if noted else datetime.min.replace(tzinfo=UTC)


class TrackingStage(Stage):
    """The last stage: log the run, with what the others found."""

    key = "tracking"
    title = "Tracking in MLflow"
    order = 100
    Config = TrackingConfig
    implicit = True

    def estimate(self, run_config: Any, config: TrackingConfig, responses: int) -> StageEstimate:
        where = _shown(settings.MLFLOW_TRACKING_URI)
        return StageEstimate(line=f"Tracking in MLflow at {where}." if config.mlflow else "No tracking in MLflow.")

    async def execute(self, context: StageContext, config: TrackingConfig) -> dict[str, JSON]:
        """The summary has `state` (off, logged, pending) and, where pending, `error`."""
        tracker = context.tracker or Tracker.start(config)
        try:
            tracking = await asyncio.to_thread(_track_in_thread, context.run, tracker, config)
        finally:
            if context.tracker is None:
                tracker.close()
        return {key: tracking[key] for key in ("state", "error") if key in tracking}


def _track_in_thread(run: Run, tracker: Tracker, config: TrackingConfig) -> dict[str, JSON]:
    try:
        return track(run, tracker, config)
    finally:
        connections.close_all()  # this thread's own
