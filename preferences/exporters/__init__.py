"""Export of preference data for training: formats, linter, dataset card and provenance."""

from preferences.exporters.export import export_preferences, zip_preferences
from preferences.exporters.formats.registry import FORMATS
from preferences.exporters.reports import PreferenceReport
from runs.exports.protocol import ExportError

__all__ = ["FORMATS", "ExportError", "PreferenceReport", "export_preferences", "zip_preferences"]
