"""Scoring stored responses again, with the current version of their environments and without asking a model."""

from runs.rescoring.creation import RescoreError, Rescoring, create_rescoring

__all__ = ["RescoreError", "Rescoring", "create_rescoring"]
