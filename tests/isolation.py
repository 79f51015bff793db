"""Pytest plugin that is loaded before Django's settings. It gives tests a data folder and environment of their own."""

import os
import tempfile

import pytest

# Each worker of pytest-xdist, and each test session running at the same time, has its own data folder.
_var = tempfile.TemporaryDirectory(prefix="llmeval-tests-")
os.environ["LLMEVAL_VAR"] = _var.name
for _name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MLFLOW_TRACKING_URI", "LLMEVAL_API_KEY_VARIABLES"):
    os.environ.pop(_name, None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --only-database, which tests/conftest.py applies."""
    parser.addoption("--only-database", action="store_true", help="run only the tests that use the database")


def pytest_unconfigure() -> None:
    """Delete the data folder."""
    _var.cleanup()
