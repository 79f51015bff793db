"""Preference data to train on: formats by name, the linter, and whole exports with card and provenance."""

from preferences.exporters.base import ExportError
from preferences.exporters.registry import FORMATS
from preferences.exporters.writing import Written, export_preferences

__all__ = ["FORMATS", "ExportError", "Written", "export_preferences"]
