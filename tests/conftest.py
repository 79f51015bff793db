"""What every test shares: nothing is written outside a temporary folder, and no variable of the developer's leaks in."""

import os
import tempfile

# Before Django reads its settings: a test run has a var/ of its own, for each worker of pytest-xdist.
_var = tempfile.TemporaryDirectory(prefix="llmeval-tests-")
os.environ["LLMEVAL_VAR"] = _var.name
for _name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MLFLOW_TRACKING_URI", "LLMEVAL_API_KEY_VARIABLES"):
    os.environ.pop(_name, None)


def pytest_unconfigure() -> None:
    """Leave nothing behind."""
    _var.cleanup()
