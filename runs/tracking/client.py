"""Client of the process that logs to MLflow.

mlflow takes over a second to import and as long to create a store. The process therefore starts with the run, gets
ready while the cases are evaluated, and receives one job at the end (docs/decisions/0001).
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from typing import IO
from urllib.parse import urlsplit

from django.conf import settings

from runs.tracking.config import TrackingConfig
from runs.tracking.messages import TrackingAnswer, TrackingJob

_EXIT_S = 5.0  # for the process to end by itself after the end of its stdin
# Defaults that an operator may override: an unreachable server is given up after seconds, not minutes.
_DEFAULTS = {
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


class TrackingError(Exception):
    """MLflow did not accept a run; the message is the reason."""


def without_password(text: str) -> str:
    """Return *text* without the user and password in the address of MLflow, which mlflow repeats in its errors."""
    user, at, _ = urlsplit(settings.MLFLOW_TRACKING_URI).netloc.rpartition("@")
    return text.replace(user + at, "") if at else text


class Tracker:
    """Client of the process that logs to MLflow. Without a process, tracking is off."""

    def __init__(self, process: subprocess.Popen[str] | None, stderr: IO[str] | None) -> None:
        self._process = process
        self._stderr = stderr

    @classmethod
    def start(cls, config: TrackingConfig | None) -> "Tracker":
        """Start the process, which imports mlflow and opens the store; none if *config* has tracking off."""
        if config is None or not config.mlflow:
            return cls(None, None)
        stderr = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed by `close`
        process = subprocess.Popen(
            [sys.executable, "-m", "runs.tracking.mlflow_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
            cwd=settings.BASE_DIR,
            # The address is not an argument, since it may have a password, and arguments are visible to other users.
            env={**_DEFAULTS, **os.environ, **_FORCED, "MLFLOW_TRACKING_URI": settings.MLFLOW_TRACKING_URI},
            start_new_session=True,  # Ctrl-C interrupts the run, which is then still logged
        )
        os.setpriority(os.PRIO_PROCESS, process.pid, 5)  # a lower priority than the process that evaluates the cases
        return cls(process, stderr)

    @property
    def on(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, for example because it was killed after its time limit."""
        return self._process is not None and self._process.poll() is not None

    def log(self, job: TrackingJob, seconds: float) -> TrackingAnswer:
        """Send one job and wait for the answer, at most *seconds*. Raises TrackingError."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise TrackingError("Tracking is off.")
        # A pipe has no read with a time limit, so a timer ends the read by killing the process.
        limit = threading.Timer(seconds, process.kill)
        limit.start()
        try:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (BrokenPipeError, ValueError):
            line = ""
        finally:
            limit.cancel()
        if not line.endswith("\n"):  # the process ended, perhaps in the middle of its answer
            raise TrackingError(without_password(self._exit_message(process, seconds)))
        answer: TrackingAnswer = json.loads(line)
        if "error" in answer:
            raise TrackingError(without_password(answer["error"]))
        return answer

    def _exit_message(self, process: subprocess.Popen[str], seconds: float) -> str:
        """Return why the process has ended: the time limit, or its exit code and the last line of its stderr."""
        code = process.wait()
        if code == -9:
            return f"MLflow did not answer within {seconds:.0f} s."
        lines = self.stderr().strip().splitlines()
        return f"The tracking process ended with code {code}: {lines[-1] if lines else 'no error message'}"

    def stderr(self) -> str:
        """Return what the process has written to stderr."""
        if self._stderr is None:
            return ""
        self._stderr.seek(0)
        return self._stderr.read()

    def close(self) -> None:
        """End the process, and kill it if it does not end by itself. May be called again."""
        process, self._process = self._process, None
        if process is None or process.stdin is None or process.stdout is None:
            return
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        if self._stderr is not None:
            self._stderr.close()
