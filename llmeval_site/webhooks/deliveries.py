"""Deliveries of webhooks: stored together with the event, sent by workers, repeated until they are accepted.

A worker counts an attempt and sets the time of the next one before it sends. A delivery whose worker is killed is
therefore sent again at that time, so a receiver can get an event twice, with the same id.
"""

import asyncio
import json
import logging
import uuid
from collections.abc import Sequence
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from hub.common.errors import Conflict
from hub.common.worker import task_messages
from hub.common.worker.shutdown import is_shutting_down
from llmeval_site.models import Webhook, WebhookDelivery
from llmeval_site.webhooks.sending import Result, check_url, new_secret, send
from runs.models import Run
from runs.selectors import visible_runs

logger = logging.getLogger(__name__)
DELIVER = "site.deliver_webhooks"
MAX_WEBHOOKS = 20  # of a user
MAX_ATTEMPTS = 8
FIRST_DELAY = timedelta(seconds=30)  # doubled after each attempt: the last one is sent after about an hour
DISABLE_AFTER = 3  # deliveries in a row that were given up
_AT_A_TIME = 20
HIDDEN = "The run of this event is hidden from you by now."
Status = WebhookDelivery.Status


def create_webhook(*, user: User, url: str, events: Sequence[str]) -> Webhook:
    """Store a webhook of *user* with a new secret. Raises UserError."""
    check_url(url)
    if user.webhooks.count() >= MAX_WEBHOOKS:
        raise Conflict(f"You have {MAX_WEBHOOKS} webhooks, which is the limit. Delete one first.", "url")
    return Webhook.objects.create(
        user=user, url=url, events=[event for event in Webhook.Event.values if event in events], secret=new_secret()
    )


def enable_webhook(webhook: Webhook) -> None:
    """Enable a webhook that was disabled. Events that happened in the meantime are not sent."""
    Webhook.objects.filter(pk=webhook.pk).update(disabled_at=None, failures=0)


def record_run_end(run_id: int, status: Run.Status) -> None:
    """Store a delivery for each webhook that wants the event and whose user may see the run; a listener of `runs`."""
    event = f"run.{status.value}"
    webhooks = Webhook.objects.filter(disabled_at=None, user__is_active=True).select_related("user")
    chosen = [webhook for webhook in webhooks if event in webhook.events]
    chosen = [webhook for webhook in chosen if visible_runs(webhook.user).filter(pk=run_id).exists()]
    if not chosen:
        return
    run = Run.objects.select_related("created_by").get(pk=run_id)
    described = {
        "run": run.pk,
        "path": f"/runs/{run.pk}/",
        "name": run.name,
        "status": run.status,
        "message": run.message,
        "created_by": run.created_by.username if run.created_by else None,
        "created_at": run.created_at.isoformat(),
        "finished_at": run.finished_at.isoformat() if run.finished_at else None,
        "seconds": run.seconds,
        "cost_usd": run.cost_usd,
    }
    for webhook in chosen:
        _store_delivery(webhook, event, described)


def send_test_event(webhook: Webhook) -> None:
    """Store a delivery of the event `test`."""
    _store_delivery(webhook, "test", None)


def _store_delivery(webhook: Webhook, event: str, run: dict[str, object] | None) -> None:
    event_id, now = uuid.uuid4(), timezone.now()
    body = {"id": str(event_id), "type": event, "timestamp": now.isoformat(), "data": run or {}}
    WebhookDelivery.objects.create(
        webhook=webhook, event_id=event_id, event=event, body=json.dumps(body), next_attempt_at=now
    )
    transaction.on_commit(_wake_worker)


def send_again(delivery: WebhookDelivery) -> None:
    """Send a delivery again, with the same event id. Raises Conflict if the webhook is disabled."""
    if delivery.webhook.disabled_at is not None:
        raise Conflict("The webhook is disabled. Enable it first.")
    rows = WebhookDelivery.objects.filter(pk=delivery.pk)
    rows.update(status=Status.WAITING, attempts=0, next_attempt_at=timezone.now())
    transaction.on_commit(_wake_worker)


def _wake_worker() -> None:
    try:
        task_messages.send(DELIVER)
    except task_messages.BrokerUnavailable as error:
        logger.warning("webhooks wait for the next sweep of a worker: %s", error)


def deliver_due() -> None:
    """Send all deliveries that are due, until the process shuts down."""
    while not is_shutting_down() and (taken := _take_due()):
        results = asyncio.run(_send_all(taken))
        for delivery, result in zip(taken, results, strict=True):
            _store_result(delivery, result)


def _take_due() -> list[WebhookDelivery]:
    """Count an attempt of the deliveries that are due, and return those that no other worker took."""
    now = timezone.now()
    rows = WebhookDelivery.objects.filter(status=Status.WAITING, next_attempt_at__lte=now)
    rows = rows.filter(webhook__disabled_at=None, webhook__user__is_active=True)
    taken = []
    for delivery in rows.select_related("webhook__user").order_by("next_attempt_at", "id")[:_AT_A_TIME]:
        following = now + FIRST_DELAY * 2 ** min(delivery.attempts, MAX_ATTEMPTS)
        seen = WebhookDelivery.objects.filter(
            pk=delivery.pk, status=Status.WAITING, next_attempt_at=delivery.next_attempt_at
        )
        if not _may_be_sent(delivery):
            seen.update(status=Status.FAILED, problem=HIDDEN)
        elif seen.update(attempts=F("attempts") + 1, next_attempt_at=following):
            delivery.attempts, delivery.next_attempt_at = delivery.attempts + 1, following
            taken.append(delivery)
    return taken


def _may_be_sent(delivery: WebhookDelivery) -> bool:
    """Return whether the user of the webhook may still see the run of *delivery*; True for the event `test`."""
    run = json.loads(delivery.body)["data"].get("run")
    return run is None or visible_runs(delivery.webhook.user, deleted=True).filter(pk=run).exists()


async def _send_all(deliveries: Sequence[WebhookDelivery]) -> list[Result]:
    return await asyncio.gather(
        *(send(item.webhook.url, item.webhook.secret, str(item.event_id), item.body) for item in deliveries)
    )


@transaction.atomic
def _store_result(delivery: WebhookDelivery, result: Result) -> None:
    given_up = bool(result.problem) and delivery.attempts >= MAX_ATTEMPTS
    status = Status.WAITING if result.problem else Status.DELIVERED
    taken = WebhookDelivery.objects.filter(
        pk=delivery.pk, status=Status.WAITING, next_attempt_at=delivery.next_attempt_at
    )
    stored = taken.update(
        status=Status.FAILED if given_up else status,
        response_status=result.status,
        problem=result.problem[:500],
        attempted_at=timezone.now(),
    )
    webhooks = Webhook.objects.filter(pk=delivery.webhook_id)
    if not stored:
        return  # deleted, or sent again by its user in the meantime
    if not result.problem:
        webhooks.update(failures=0)
    elif given_up:
        webhooks.update(failures=F("failures") + 1)
        if webhooks.filter(failures__gte=DISABLE_AFTER, disabled_at=None).update(disabled_at=timezone.now()):
            logger.warning("webhook %s was disabled: %s", delivery.webhook_id, result.problem)
