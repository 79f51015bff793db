"""A run's responses as files: failing cases, rollouts to train on, and everything as recordings to replay."""

from runs.exports.base import ExportError, ExportReport
from runs.exports.failures import FORMATS, export_failures
from runs.exports.recordings import export_responses
from runs.exports.rollouts import RolloutSelection, export_episodes, export_run_rollouts

__all__ = [
    "FORMATS",
    "ExportError",
    "ExportReport",
    "RolloutSelection",
    "export_episodes",
    "export_failures",
    "export_responses",
    "export_run_rollouts",
]
