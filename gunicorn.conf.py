"""Settings of the web server, for every way to start it: `manage.py serve`, the container, `gunicorn` by hand."""

import os
import shutil
import sys
import tempfile
from types import FrameType

from gunicorn.arbiter import Arbiter
from gunicorn.workers.base import Worker
from gunicorn.workers.gthread import ThreadWorker


class WebWorker(ThreadWorker):
    """Worker with threads that stops as soon as it has answered its requests.

    ThreadWorker also waits for idle connections, until `graceful_timeout` has passed. Each open browser has one.
    """

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        for connection in (*self.keepalived_conns, *self.pending_conns):
            connection.timeout = 0.0  # have it closed now


worker_class = WebWorker

workers = int(os.environ.get("WEB_CONCURRENCY", "2"))
threads = 8
# Trainers and browsers think between two requests. The default of 2 s closes the connection meanwhile, and a client
# that sends its next request at that moment gets a reset.
keepalive = 75
# Each process listens with a socket of its own, so that the kernel divides the connections evenly. With one socket for
# all, one of two processes had 165 of 288 connections of benchmarks/load.py and answered after 2.5 s, while the other
# one was half idle.
reuse_port = True

# The processes share their counters for /metrics in files. prometheus_client reads the variable when it is imported, so
# nothing may import it before this line.
os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="llmeval-metrics-")


def on_starting(server: Arbiter) -> None:
    """Stop if an address is in use. Several servers could share one without noticing, because of `reuse_port`."""
    ports = all(isinstance(address, tuple) and address[1] for address in server.cfg.address)
    if not ports or "LISTEN_FDS" in os.environ:
        # Unix sockets, ports that the system chooses, and sockets of systemd exist once for all processes.
        server.cfg.set("reuse_port", False)
        return
    from llmeval_site.ports import find_bind_error  # it can be found once gunicorn has entered the folder

    for host, port in server.cfg.address:
        if error := find_bind_error(host, port):
            sys.exit(f"The web server cannot listen at {host}:{port}: {error.strerror}.")
        server.log.info("Each process listens at %s:%s", host, port)


def child_exit(server: Arbiter, worker: Worker) -> None:
    """Remove the gauges of a process that has ended; its counters still count."""
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def on_exit(server: Arbiter) -> None:
    """Delete the counters."""
    shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
