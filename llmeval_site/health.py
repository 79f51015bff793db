"""Liveness and readiness checks for orchestrators. They need no sign-in and reveal nothing that helps an attacker.

`middleware/health_checks.py` calls the two views.
"""

import logging
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from llmeval_site.celery import app
from sandbox.client.pool import Pool
from sandbox.client.settings import get_pool_options

logger = logging.getLogger(__name__)

MIN_FREE_BYTES = 200 * 1024 * 1024  # with less, uploads and results are about to fail
_BROKER_TIMEOUT_S = 1.0


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Respond with 200 as long as the process serves requests."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Respond with 503 if a component does not work that every page needs, otherwise with 200.

    The body names each failed component and a reason. A process without Redis or a sandbox still serves pages; if all
    processes were taken out of service, nobody could use the site because of a part that only runs need.

    The reasons are fixed sentences. Messages of exceptions may contain addresses and names, so they are only logged.
    """
    reasons = {name: component.reason for name, component in COMPONENTS.items() if not _works(name, component)}
    serves = not any(COMPONENTS[name].required for name in reasons)
    body = {
        "status": "unavailable" if not serves else "degraded" if reasons else "ok",
        "parts": {name: "unavailable" if name in reasons else "ok" for name in COMPONENTS},
        "reasons": reasons,
    }
    return JsonResponse(body, status=200 if serves else 503)


@dataclass(frozen=True, slots=True)
class Component:
    """Something the site needs. `check` raises an exception if it does not work; `reason` is then reported.

    required: whether pages and REST cannot be served without it.
    """

    check: Callable[[], None]
    reason: str
    required: bool = False


def _works(name: str, component: Component) -> bool:
    try:
        component.check()
    except Exception as error:
        logger.warning("not ready: %s: %s", name, error)
        return False
    return True


def check_database() -> None:
    """Raise an exception if the database is unreachable or not migrated. Uses a connection of its own."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_migrations")
    finally:
        connection.close()


def check_broker() -> None:
    """Raise an exception if the message broker is unreachable."""
    if settings.CELERY_BROKER_URL.startswith("filesystem://"):
        if not Path(settings.QUEUE_DIR, "messages").is_dir():
            raise NotADirectoryError(f"{settings.QUEUE_DIR} does not exist")
        return
    timeouts = {"socket_connect_timeout": _BROKER_TIMEOUT_S, "socket_timeout": _BROKER_TIMEOUT_S}
    with app.connection_for_write(transport_options=timeouts) as broker:
        broker.ensure_connection(max_retries=1, timeout=_BROKER_TIMEOUT_S)


def check_disk() -> None:
    """Raise OSError if the disk is nearly full."""
    if shutil.disk_usage(settings.VAR_DIR).free < MIN_FREE_BYTES:
        raise OSError("disk nearly full")


def check_sandbox() -> None:
    """Raise an exception if no sandbox engine starts or its self-test fails.

    Any isolation tier is accepted. Each run checks for itself whether the tier is high enough.
    """
    Pool.open(replace(get_pool_options(accept="ABC"), workers=1)).close()


@dataclass(slots=True)
class BackgroundCheck:
    """A slow check that runs in a thread. Callers wait for it at most *wait_s*; its result is reused for *keep_s*."""

    check: Callable[[], None]
    keep_s: float = 30.0
    wait_s: float = 2.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _running: threading.Event | None = None
    _finished_at: float = 0.0
    _error: Exception | None = None

    def __call__(self) -> None:
        """Raise the exception of the check, or TimeoutError if it has no result yet."""
        with self._lock:
            outdated = not self._finished_at or time.monotonic() - self._finished_at > self.keep_s
            if outdated and self._running is None:
                self._running = threading.Event()
                threading.Thread(target=self._run, args=[self._running], daemon=True).start()
            running = self._running
        if running is not None and not running.wait(self.wait_s):
            raise TimeoutError(f"no result within {self.wait_s:g} s")
        if self._error is not None:
            raise self._error

    def _run(self, finished: threading.Event) -> None:
        error: Exception | None = None
        try:
            self.check()
        except Exception as raised:
            error = raised
        with self._lock:
            self._error, self._finished_at, self._running = error, time.monotonic(), None
        finished.set()


COMPONENTS: dict[str, Component] = {
    "database": Component(
        BackgroundCheck(check_database, keep_s=0),  # a database that is paused does not answer at all
        "The database is unreachable or has no tables. Run: manage.py prepare",
        required=True,
    ),
    "broker": Component(
        check_broker,
        "The message broker is unreachable. Check CELERY_BROKER_URL. Runs wait for the next periodic check.",
    ),
    "sandbox": Component(
        BackgroundCheck(check_sandbox),
        "The sandbox does not start, so no code can be scored. Run: manage.py sandbox_check",
    ),
    "disk": Component(check_disk, "Less than 200 MiB are free on the disk of LLMEVAL_VAR.", required=True),
}
