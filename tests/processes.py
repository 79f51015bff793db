"""Commands in separate processes that use the database of the tests."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from django.conf import settings


def start_eval(folder: Path, *arguments: str, extra: dict[str, str] | None = None) -> subprocess.Popen[str]:
    database = settings.DATABASES["default"]
    url = f"sqlite:///{database['NAME']}"
    if database["ENGINE"] != "django.db.backends.sqlite3":
        url = f"postgres://{database['USER']}:{database['PASSWORD']}@{database['HOST']}:{database['PORT']}/{database['NAME']}"
    environment = {**os.environ, "LLMEVAL_VAR": str(settings.VAR_DIR), "DATABASE_URL": url, **(extra or {})}
    return subprocess.Popen(
        [sys.executable, str(settings.BASE_DIR / "manage.py"), "eval", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until *condition* returns True because of another process, for at most a minute."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the condition is still false after a minute"
        time.sleep(0.02)
