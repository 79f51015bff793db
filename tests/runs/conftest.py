"""Fixtures of the tests of runs."""

from pathlib import Path

import pytest

from tests.runs.capitals import write_bundle
from tests.tracking import in_mlflow, new_store, shared, start, store, tracker

__all__ = ["in_mlflow", "new_store", "shared", "start", "store", "tracker"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the environment of capitals in its subfolder `capitals`."""
    write_bundle(tmp_path / "capitals")
    return tmp_path
