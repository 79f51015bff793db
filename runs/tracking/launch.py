"""Starts the process that speaks to MLflow. No Django here, so that `manage.py eval` can do it before all else."""

import atexit
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

_ROOT = Path(__file__).resolve().parents[2]
_ASKS_NOTHING = {"--dry-run", "--enqueue", "--help", "-h"}
# An operator may set these; by default a server that is down is given up after seconds, not minutes.
_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}
_FORCED = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


class Launched(NamedTuple):
    """The process, spoken to by its stdin and stdout, and what it says on stderr, for when it dies."""

    process: subprocess.Popen[str]
    said: IO[str]


_waiting: Launched | None = None


def launch_for(arguments: Sequence[str]) -> None:
    """Start it now if the command with these arguments will play a run. It ends with this program if nobody takes it.

    mlflow takes longer to import than a short run takes for everything else, and needs nothing else of the program.
    """
    global _waiting
    if arguments[:1] == ["eval"] and not _ASKS_NOTHING & set(arguments) and _waiting is None:
        _waiting = _start()
        atexit.register(drop)


def take() -> Launched:
    """The process that was started ahead, or a new one."""
    global _waiting
    launched, _waiting = _waiting, None
    return launched or _start()


def drop() -> None:
    """End the process that was started ahead, if nobody took it. It has opened nothing."""
    global _waiting
    launched, _waiting = _waiting, None
    if launched is not None:
        launched.process.kill()
        launched.process.wait()


def _start() -> Launched:
    said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed by its owner
    process = subprocess.Popen(
        [sys.executable, "-m", "runs.tracking.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=said,
        text=True,
        encoding="utf-8",
        cwd=_ROOT,
        env={**_PATIENCE, **os.environ, **_FORCED},
        # A Ctrl-C is for the run, which then still wants to be logged.
        start_new_session=True,
    )
    return Launched(process, said)
