"""Liveness and readiness, for orchestrators: no sign-in, no detail that an outsider could use."""

import shutil
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

_FREE_BYTES = 200 * 1024 * 1024  # below this, uploads and results are about to fail


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@login_not_required
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Everything that serving needs answers: 200, or 503 with the names of what does not."""
    parts = {name: _state(check) for name, check in CHECKS.items()}
    ready = all(state == "ok" for state in parts.values())
    return JsonResponse({"status": "ok" if ready else "unavailable", "parts": parts}, status=200 if ready else 503)


def _state(check: Callable[[], None]) -> str:
    try:
        check()
    except Exception:  # whatever it raises, the part is not ready; the log of the part says why
        return "unavailable"
    return "ok"


def _database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _disk() -> None:
    if shutil.disk_usage(settings.VAR_DIR).free < _FREE_BYTES:
        raise OSError("disk nearly full")


CHECKS: dict[str, Callable[[], None]] = {"database": _database, "disk": _disk}
