"""`manage.py serve`: the web site and its worker as one command, for one machine; ends both cleanly."""

import secrets
import signal
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser
from types import FrameType
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from hub.common.invocation import command

_GRACE_S = 20  # for a worker to hand its run back


class Command(BaseCommand):
    help = "Serve the web site and run its worker until Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--host", default="127.0.0.1", help="other than this machine: put a TLS proxy in front")

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], options["port"]
        if not 1 <= port <= 65535:
            raise CommandError(f"--port {port}: a port lies between 1 and 65535.", returncode=2)
        if _taken(host, port):
            again = command("serve", "--port", port + 1)
            raise CommandError(f"Port {port} is in use; name another: {again}", returncode=3)
        call_command("prepare")
        sign_in = _first_user()
        processes = [subprocess.Popen(words) for words in _commands(host, port)]
        self.stdout.write(f"LLM-Eval is at http://{host}:{port}/   (Ctrl-C ends it)")
        self.stdout.write(sign_in)
        self.stdout.flush()
        code = _watch(processes)
        self.stdout.write("Ended.")
        if code:
            raise CommandError("The site or its worker ended by itself; its last lines say why.", returncode=1)


def _commands(host: str, port: int) -> list[list[str]]:
    web = [sys.executable, "-m", "gunicorn", "llmeval_site.wsgi", "--bind", f"{host}:{port}"]
    web += ["--config", str(settings.BASE_DIR / "gunicorn.conf.py"), "--log-level", "warning"]
    web += ["--chdir", str(settings.BASE_DIR)]
    # Threads: the worker waits on models and the sandbox; code of models runs in processes of the sandbox's own.
    worker = [sys.executable, "-m", "celery", "-A", "llmeval_site", "worker", "--beat", "--pool", "threads"]
    worker += ["--concurrency", "2", "--loglevel", "WARNING", "--without-gossip", "--without-mingle"]
    return [web, worker]


def _watch(processes: list[subprocess.Popen[bytes]]) -> int:
    """Wait until a signal comes or one of *processes* ends, then end all. 0 where a signal was the reason."""
    stop = False

    def ask_to_stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stop
        stop = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask_to_stop)
    while not stop and all(process.poll() is None for process in processes):
        time.sleep(0.2)
    for process in processes:
        if process.poll() is None:
            process.terminate()
    deadline = time.monotonic() + _GRACE_S
    for process in processes:
        try:
            process.wait(max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return 0 if stop else 1


def _taken(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return True
    return False


def _first_user() -> str:
    """How to sign in; at the very first start an administrator is made, whose password is shown this once."""
    users = get_user_model().objects
    admins = users.filter(is_superuser=True, is_active=True).order_by("pk")
    if admins.exists():
        return f"Sign in as {admins[0].get_username()}; forgotten? {command('changepassword', admins[0])}"
    password = secrets.token_urlsafe(12)
    users.create_superuser("admin", password=password)
    return f"Sign in as admin with the password {password}  (shown once; {command('changepassword', 'admin')})"
