"""The stage that logs a run in MLflow."""

import asyncio

from django.db import connections

from hub.protocols.messages import JSON
from runs.models import Run
from runs.selectors import TRACKING
from runs.stages import RunSize, Stage, StageContext, StageEstimate
from runs.tracking.client import Tracker
from runs.tracking.config import TrackingConfig
from runs.tracking.sync import TrackingOutcome, address_without_password, track


class TrackingStage(Stage[TrackingConfig]):
    """Last stage: logs the run with the summaries of the other stages."""

    key = TRACKING
    title = "Tracking in MLflow"
    order = 100
    Config = TrackingConfig
    implicit = True

    def estimate(self, size: RunSize, config: TrackingConfig) -> StageEstimate:
        line = f"Tracking in MLflow at {address_without_password()}." if config.mlflow else "No tracking in MLflow."
        return StageEstimate(line=line)

    def is_configured(self, run: Run) -> bool:
        """Return whether *run* is tracked. Its config may lack the section, or turn tracking off."""
        return run.tracking_state != Run.TrackingState.OFF

    async def execute(self, context: StageContext, config: TrackingConfig) -> dict[str, JSON]:
        """Return a summary with `state` (off, logged, pending) and, if it is pending, `error`."""
        tracker = context.tracker if isinstance(context.tracker, Tracker) else Tracker.start(config)
        try:
            outcome = await asyncio.to_thread(_track_in_thread, context.run, tracker, config)
        finally:
            if context.tracker is None:
                tracker.close()
        return {**outcome}


def _track_in_thread(run: Run, tracker: Tracker, config: TrackingConfig) -> TrackingOutcome:
    try:
        return track(run, tracker, config)
    finally:
        connections.close_all()  # of this thread
