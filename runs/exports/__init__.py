"""A run's responses as files: failing cases to train on, read or play again, and everything as recordings to replay."""

from runs.exports.base import Exported, ExportError
from runs.exports.failures import FORMATS, export_failures
from runs.exports.recordings import export_responses

__all__ = ["FORMATS", "ExportError", "Exported", "export_failures", "export_responses"]
