"""Scoring stored responses again, with the current version of their environments and without asking a model."""

from runs.rescoring.creation import RescoreError, Rescoring, create_rescoring
from runs.rescoring.recordings import remove_recordings

__all__ = ["RescoreError", "Rescoring", "create_rescoring", "remove_recordings"]
