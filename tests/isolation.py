"""A pytest plugin, loaded before Django's settings: tests write to a folder of their own, and no variable leaks in."""

import os
import tempfile

# Each worker of pytest-xdist, and each test run beside another, has a var/ of its own.
_var = tempfile.TemporaryDirectory(prefix="llmeval-tests-")
os.environ["LLMEVAL_VAR"] = _var.name
for _name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MLFLOW_TRACKING_URI", "LLMEVAL_API_KEY_VARIABLES"):
    os.environ.pop(_name, None)


def pytest_unconfigure() -> None:
    """Leave nothing behind."""
    _var.cleanup()
