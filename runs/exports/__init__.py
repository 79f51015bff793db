"""Exports of a run's responses: failing cases, rollouts to train on, and recordings to replay."""

from runs.exports.failure_formats.registry import FORMATS
from runs.exports.failures import export_failures
from runs.exports.protocol import ExportError, ExportReport
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
