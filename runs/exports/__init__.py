"""Exports of a run's responses: failing cases, rollouts to train on, and recordings to replay."""

from runs.exports.failure_formats.base import COMPLETIONS, FailureFilters
from runs.exports.failure_formats.registry import FORMATS
from runs.exports.failures import export_failures, failures_export
from runs.exports.protocol import Export, ExportError, ExportReport, NothingToExport
from runs.exports.recordings import export_responses
from runs.exports.rollout_formats.registry import ROLLOUT_FORMATS
from runs.exports.rollouts import (
    RolloutSelection,
    episodes_export,
    export_episodes,
    export_run_rollouts,
    run_rollouts_export,
)
from runs.exports.selection import check_known

__all__ = [
    "COMPLETIONS",
    "FORMATS",
    "ROLLOUT_FORMATS",
    "Export",
    "ExportError",
    "ExportReport",
    "FailureFilters",
    "NothingToExport",
    "RolloutSelection",
    "check_known",
    "episodes_export",
    "export_episodes",
    "export_failures",
    "export_responses",
    "export_run_rollouts",
    "failures_export",
    "run_rollouts_export",
]
