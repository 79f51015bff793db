"""Process that logs to MLflow, started as `python -m runs.tracking.mlflow_process` by `runs.tracking.client`.

It opens the store at MLFLOW_TRACKING_URI, then reads one job (runs.tracking.messages) per line from stdin and answers
each with one line. The end of stdin ends it. It uses neither Django nor the database.
"""

import json
import os
import socket
import ssl
import sys
from typing import IO

# Libraries that mlflow imports if they are installed, and that nothing here needs. Without them a second
# `make eval` of configs/eval_v1.yaml takes 13 % less processor time (5.7 instead of 6.6 s, median of 5).
_UNUSED = ("numpy", "pandas", "pygments")


def main() -> None:
    answers = _redirect_stdout()
    for name in _UNUSED:
        sys.modules[name] = None  # type: ignore[assignment]  # makes an import of it fail
    from runs.tracking.mlflow_log import log_run, open_store

    open_store()
    for line in sys.stdin:
        try:
            answer: object = log_run(json.loads(line))
        except Exception as error:
            answer = {"error": describe(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    # Everything is stored. mlflow's exit handlers take a second, for which the command would wait.
    os._exit(0)


def describe(error: BaseException) -> str:
    """Return what went wrong: if the connection to a server failed, only why, which mlflow writes at the end."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, TimeoutError):
            return "MLflow did not answer in time."
        if isinstance(link, ConnectionError | socket.gaierror | ssl.SSLError):
            return f"MLflow could not be reached: {link.strerror or link}."
        link = link.__cause__ or link.__context__
    return f"{type(error).__name__}: {error}"


def _redirect_stdout() -> IO[str]:
    """Return the real stdout for answers, and send everything that a library prints to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    main()
