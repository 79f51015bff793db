"""Liveness and readiness, for orchestrators: no sign-in, no detail that an outsider could use."""

import logging
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from hub.common.sandbox_pools import pool_options
from llmeval_site.celery import app
from sandbox.pool import Pool

logger = logging.getLogger(__name__)

FREE_BYTES = 200 * 1024 * 1024  # below this, uploads and results are about to fail
_BROKER_TIMEOUT_S = 1.0


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@login_not_required
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Whether all that serving needs answers: 200, or 503 with the names of what does not and a sentence for each.

    The sentences are ours alone: what an exception says may hold addresses and names, and goes to the log.
    """
    reasons = {name: part.reason for name, part in PARTS.items() if not _works(name, part)}
    body = {
        "status": "unavailable" if reasons else "ok",
        "parts": {name: "unavailable" if name in reasons else "ok" for name in PARTS},
        "reasons": reasons,
    }
    return JsonResponse(body, status=503 if reasons else 200)


@dataclass(frozen=True, slots=True)
class Part:
    """Something that serving needs. `check` raises whatever it likes where that does not work; `reason` is told."""

    check: Callable[[], None]
    reason: str


def _works(name: str, part: Part) -> bool:
    try:
        part.check()
    except Exception as error:
        logger.warning("not ready: %s: %s", name, error)
        return False
    return True


def _database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM django_migrations")


def _broker() -> None:
    if settings.CELERY_BROKER_URL.startswith("filesystem://"):
        if not Path(settings.QUEUE_DIR, "messages").is_dir():
            raise NotADirectoryError(f"{settings.QUEUE_DIR} is gone")
        return
    timeouts = {"socket_connect_timeout": _BROKER_TIMEOUT_S, "socket_timeout": _BROKER_TIMEOUT_S}
    with app.connection_for_write(transport_options=timeouts) as broker:
        broker.ensure_connection(max_retries=1, timeout=_BROKER_TIMEOUT_S)


def _disk() -> None:
    if shutil.disk_usage(settings.VAR_DIR).free < FREE_BYTES:
        raise OSError("disk nearly full")


def _sandbox() -> None:
    """An engine opens, and holds against the attacks of its self-test. Which tier it reaches is each run's business."""
    Pool.open(replace(pool_options(accept="ABC"), workers=1)).close()


@dataclass(slots=True)
class Watched:
    """A check that takes long, made in a thread of its own: waited for *wait_s*, and its outcome kept for *keep_s*."""

    check: Callable[[], None]
    keep_s: float = 30.0
    wait_s: float = 2.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _under_way: threading.Event | None = None
    _known_at: float = 0.0
    _error: Exception | None = None

    def __call__(self) -> None:
        """Raises what the check raised, TimeoutError where it has not said anything yet."""
        with self._lock:
            stale = not self._known_at or time.monotonic() - self._known_at > self.keep_s
            if stale and self._under_way is None:
                self._under_way = threading.Event()
                threading.Thread(target=self._look, args=[self._under_way], daemon=True).start()
            under_way = self._under_way
        if under_way is not None and not under_way.wait(self.wait_s):
            raise TimeoutError(f"no answer within {self.wait_s:g} s")
        if self._error is not None:
            raise self._error

    def _look(self, done: threading.Event) -> None:
        error: Exception | None = None
        try:
            self.check()
        except Exception as raised:
            error = raised
        with self._lock:
            self._error, self._known_at, self._under_way = error, time.monotonic(), None
        done.set()


PARTS: dict[str, Part] = {
    "database": Part(_database, "It does not answer, or holds no tables yet: manage.py prepare makes them."),
    "broker": Part(_broker, "It cannot be reached: CELERY_BROKER_URL names it. Runs wait for the workers' next sweep."),
    "sandbox": Part(Watched(_sandbox), "It does not start: manage.py sandbox_check says why. No code can be scored."),
    "disk": Part(_disk, "Less than 200 MiB are free where LLMEVAL_VAR lies."),
}
