"""The part `tracking` of a run's config."""

from typing import Literal

from runs.models import Run
from runs.stages import StageConfig

Traces = Literal["none", "failures", "all"]


class TrackingConfig(StageConfig):
    """`tracking:` of a config. `experiment` defaults to the run's name; `traces` logs responses as traces."""

    mlflow: bool = True
    experiment: str | None = None
    traces: Traces = "none"


def tracking_config(run: Run) -> TrackingConfig:
    """Return the tracking part of a stored run's config."""
    return TrackingConfig.model_validate(run.config.get("tracking") or {})
