"""Settings of the web server, for every way to start it: `manage.py serve`, the container, `gunicorn` by hand."""

import os
import shutil
import tempfile

from gunicorn.arbiter import Arbiter
from gunicorn.workers.base import Worker

workers = int(os.environ.get("WEB_CONCURRENCY", "2"))
threads = 8
# Trainers and browsers think between two requests. The default of 2 s closes the connection meanwhile, and a client
# that sends its next request at that moment gets a reset.
keepalive = 75

# The processes share their counters for /metrics in files. prometheus_client reads the variable when it is imported, so
# nothing may import it before this line.
os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="llmeval-metrics-")


def child_exit(server: Arbiter, worker: Worker) -> None:
    """Remove the gauges of a process that has ended; its counters still count."""
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def on_exit(server: Arbiter) -> None:
    """Delete the counters."""
    shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
