"""Settings of the tests: those of the site, with a data folder and environment of their own."""

import atexit
import os
import sys
import tempfile

# Each worker of pytest-xdist, and each test session running at the same time, has its own data folder.
_var = tempfile.TemporaryDirectory(prefix="llmeval-tests-")
atexit.register(_var.cleanup)
os.environ["LLMEVAL_VAR"] = _var.name
os.environ["LLMEVAL_WORKSPACES_PREPARED"] = "0"  # tests count boxes
# Tests start dozens of processes. Each would compile the same modules again, a fifth of the time of its start. So would
# this process and each worker of pytest: collecting the tests would take four times as long.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
for _name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MLFLOW_TRACKING_URI", "LLMEVAL_API_KEY_VARIABLES"):
    os.environ.pop(_name, None)

from llmeval_site.settings import *  # noqa: E402, F403

if DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql":  # noqa: F405
    DATABASES["default"]["ENGINE"] = "tests.postgresql"  # noqa: F405

# Each test client begins with a middleware of its own, which would read the names of all static files again: 12 ms of
# processor time.
WHITENOISE_AUTOREFRESH = True

# Processes that tests start use the settings of the site, in the environment made above.
os.environ["DJANGO_SETTINGS_MODULE"] = "llmeval_site.settings"
