"""Preference data to train on: formats by name, the linter, and whole exports with card and provenance."""

from preferences.exporters.base import ExportError
from preferences.exporters.registry import FORMATS
from preferences.exporters.writing import Written, preferences_export

__all__ = ["FORMATS", "ExportError", "Written", "preferences_export"]
