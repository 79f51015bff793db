"""Fixtures of the MLflow store."""

from tests.tracking import in_mlflow, new_store, shared, start, store, tracker

__all__ = ["in_mlflow", "new_store", "shared", "start", "store", "tracker"]
