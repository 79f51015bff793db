"""Export of preference data for training: formats, linter, dataset card and provenance."""

from preferences.exporters.base import ExportError
from preferences.exporters.registry import FORMATS
from preferences.exporters.writing import Written, export_preferences

__all__ = ["FORMATS", "ExportError", "Written", "export_preferences"]
