"""REST API of events: the progress of a run as a stream of server-sent events, for programs."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

from django.conf import settings
from django.contrib.auth.models import User
from django.http import Http404, StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import APIException
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from hub.common.digests import digest
from hub.common.errors import TooManyRequests
from runs.execution.faults import DATABASE_ERRORS
from runs.models import ENDED, Run
from runs.web.live import event_of
from runs.web.queries import get_visible_run

LOOK_EVERY_S = 1.0
HEARTBEAT_S = 15.0
LASTS_S = 300.0  # a client connects again after that, so that a process can shut down and permissions are checked
# One event of the stream, as OpenAPI describes `text/event-stream`.
_EVENT = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "event": {"type": "string", "enum": ["progress", "end"]},
        "data": {"type": "string", "description": "The state of the run as JSON."},
        "retry": {"type": "integer"},
    },
}
ReadUser = Callable[[], User | None]
logger = logging.getLogger(__name__)
_streams = threading.BoundedSemaphore(settings.EVENT_STREAMS)


class EventStreamRenderer(JSONRenderer):
    """Accepts `Accept: text/event-stream`. Errors are JSON nevertheless."""

    media_type = "text/event-stream"
    format = "events"


class EventStream:
    """The events of one run for one client. It holds a thread of the server, and one of the places for streams."""

    def __init__(self, read_user: ReadUser, run: Run, last_id: str) -> None:
        if not _streams.acquire(blocking=False):
            raise TooManyRequests(
                f"This process already sends {settings.EVENT_STREAMS} streams of events. Try again later, or request "
                f"the run itself from time to time.",
                retry_after=5,
            )
        self._held = True
        self._events = _events(read_user, run, last_id)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._events)
        except DATABASE_ERRORS as error:
            logger.warning("A stream of events ends, because the database does not work at the moment: %s", error)
            raise StopIteration from None  # the client connects again, as after LASTS_S

    def close(self) -> None:
        """Give the place back; the server calls it when the client has gone or the stream has ended."""
        if self._held:
            self._held = False
            _streams.release()


class RunEvents(APIView):
    """Send the progress of a run until it has ended."""

    renderer_classes = [JSONRenderer, EventStreamRenderer]

    @extend_schema(
        operation_id="runs_events",
        description="Server-sent events. Each `progress` event has the whole state of the run as JSON, and is sent "
        "when it has changed; a last event `end` is sent when the run has ended. A stream lasts at most five minutes: "
        "connect again with the id of the last event in `Last-Event-ID`, and it is not sent twice unless it is `end`.",
        parameters=[OpenApiParameter("Last-Event-ID", str, OpenApiParameter.HEADER)],
        responses={(200, "text/event-stream"): OpenApiResponse(_EVENT)},
    )
    def get(self, request: Request, pk: int) -> StreamingHttpResponse:
        run = get_visible_run(request.user, pk)
        stream = EventStream(partial(_read_user, request), run, request.headers.get("Last-Event-ID", ""))
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingHttpResponse(stream, content_type="text/event-stream", headers=headers)


def _read_user(request: Request) -> User | None:
    """Return a new instance of the user of *request*, which knows the present rights; None if it would be refused now.

    The token may have been revoked in the meantime.
    """
    authenticator = request.successful_authenticator
    try:
        found = authenticator and authenticator.authenticate(request)
    except APIException:
        return None
    user = found[0] if found else None
    return User.objects.filter(pk=user.pk, is_active=True).first() if isinstance(user, User) else None


def _events(read_user: ReadUser, run: Run, last_id: str) -> Iterator[bytes]:
    """Yield events and heartbeats until *run* has ended, or the user may no longer see it."""
    started = quiet_since = time.monotonic()
    yield b"retry: 2000\n\n"
    while True:
        event = event_of(run)
        body = json.dumps(event, separators=(",", ":"))
        ended = run.status in ENDED
        # The estimate of the time alone is no news.
        event_id = digest([ended, {**event, "seconds_left": None, "rate": None}])[:16]
        if event_id != last_id or ended:
            yield f"id: {event_id}\nevent: {'end' if ended else 'progress'}\ndata: {body}\n\n".encode()
            last_id, quiet_since = event_id, time.monotonic()
        if ended or time.monotonic() - started > LASTS_S:
            return
        if time.monotonic() - quiet_since > HEARTBEAT_S:
            yield b": still here\n\n"  # also finds out whether the client has gone
            quiet_since = time.monotonic()
        time.sleep(LOOK_EVERY_S)
        user = read_user()
        if user is None:
            return
        try:
            run = get_visible_run(user, run.pk)
        except Http404:
            return
