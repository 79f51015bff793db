"""`manage.py serve`: run the web site and its workers on one machine."""

import errno
import os
import secrets
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path
from types import FrameType

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command

from hub.common.termination import termination_signals
from hub.management import base
from hub.management.invocation import command
from llmeval_site.celery import app
from llmeval_site.ports import find_bind_error

_GRACE_S = 35  # more than gunicorn's `graceful_timeout` of 30 s, after which it kills its own processes


class Command(base.Command):
    help = "Serve the web site and run its workers until Ctrl-C."
    needs_database = False  # `handle` prepares every kind of database

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="port of the site (default 8000)")
        parser.add_argument(
            "--host", default="127.0.0.1", help="address to listen at (default 127.0.0.1); others require a TLS proxy"
        )

    def handle(self, *, host: str, port: int, **options: object) -> None:
        if not 1 <= port <= 65535:
            raise self.invalid_input(f"--port {port}: must be between 1 and 65535.")
        error = find_bind_error(host, port)
        if error and error.errno == errno.EADDRINUSE:
            again = command("serve", "--port", port + 1 if port < 65535 else port - 1)
            raise self.exit_with(base.UNAVAILABLE, f"Port {port} is in use. Use another: {again}")
        if error:
            raise self.invalid_input(f"The site cannot listen at {host}:{port}: {error.strerror}.")
        call_command("prepare")
        sign_in = _first_user()
        _create_exchange()
        # The command may be called in any folder, and the data folder may be named relative to that one.
        environment = {**os.environ, "LLMEVAL_VAR": str(settings.VAR_DIR)}
        received = _receive_signals()
        # In groups of their own, the processes get the signals of the terminal only from this one.
        processes = [
            subprocess.Popen(words, cwd=settings.BASE_DIR, env=environment, process_group=0)
            for words in _commands(host, port)
        ]
        self.stdout.write(f"LLM-Eval is at http://{host}:{port}/   (stop with Ctrl-C)")
        self.stdout.write(sign_in)
        self.stdout.flush()
        code = _watch(processes, received)
        self.stdout.write("Stopped.")
        if code:
            again = command("serve", "--host", host, "--port", port)
            message = "The site or one of its workers stopped unexpectedly; see its messages above, then start it again"
            raise self.exit_with(base.INCOMPLETE, f"{message}: {again}")


def _create_exchange() -> None:
    """Create the file of the exchange that both workers bind to, if messages are files.

    The workers start at the same time. At the first start of all, one would create the file, and the other could read
    it while it is empty and stop with a JSONDecodeError.
    """
    folder = getattr(settings, "CELERY_BROKER_TRANSPORT_OPTIONS", {}).get("control_folder")
    if folder:
        with suppress(FileExistsError), Path(folder, f"{app.control.mailbox.exchange.name}.exchange").open("x") as file:
            file.write("[]")


def _commands(host: str, port: int) -> list[list[str]]:
    web = [sys.executable, "-m", "gunicorn", "llmeval_site.wsgi", "--bind", f"{host}:{port}"]
    web += ["--config", str(settings.BASE_DIR / "gunicorn.conf.py"), "--log-level", "warning"]
    web += ["--chdir", str(settings.BASE_DIR)]
    # Threads are enough: the worker mostly waits for models and for the sandbox, which runs code in its own processes.
    worker = [sys.executable, "-m", "celery", "--quiet", "-A", "llmeval_site", "worker", "--pool", "threads"]
    worker += ["--concurrency", "2", "--without-gossip", "--without-mingle"]
    # A process of its own for gates and periodic tasks, so that they do not wait for long runs.
    runs = [*worker, "--queues", "runs", "--hostname", "runs@%h"]
    others = [*worker, "--queues", "gates,maintenance", "--hostname", "gates@%h", "--beat"]
    return [web, runs, others]


def _receive_signals() -> list[int]:
    """Return a list to which each signal to stop is appended from now on."""
    received: list[int] = []

    def receive(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    for number in (signal.SIGINT, *termination_signals()):
        signal.signal(number, receive)
    return received


def _watch(processes: list[subprocess.Popen[bytes]], received: list[int]) -> int:
    """Wait for a signal or the end of one of *processes*, then stop all. Return 0 after a signal, otherwise 1.

    A second Ctrl-C kills those that still run, as does the end of the time that they have.
    """
    while not received and all(process.poll() is None for process in processes):
        time.sleep(0.2)
    code = 0 if received else 1
    received.clear()
    for process in processes:
        if process.poll() is None:
            process.terminate()
    deadline = time.monotonic() + _GRACE_S
    while any(process.poll() is None for process in processes):
        if time.monotonic() > deadline or signal.SIGINT in received:
            for process in processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)  # with the processes that it has started
                    process.wait()
        time.sleep(0.05)
    return code


def _first_user() -> str:
    """Return how to sign in. At the first start this creates an administrator and returns its password."""
    users = get_user_model().objects
    admins = users.filter(is_superuser=True, is_active=True).order_by("pk")
    if admins.exists():
        return f"Sign in as {admins[0].get_username()}. Forgot the password? {command('changepassword', admins[0])}"
    password = secrets.token_urlsafe(12)
    users.create_superuser("admin", password=password)
    return f"Sign in as admin with the password {password}  (shown once; {command('changepassword', 'admin')})"
