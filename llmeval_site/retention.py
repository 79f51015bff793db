"""Permanent removal of old data by the settings: entries of the audit log, deliveries, drafts, and old data of runs."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.utils import timezone

from hub.models import UploadDraft
from llmeval_site.models import AuditEntry, WebhookDelivery
from runs.retention import (
    Removal,
    cached_calls,
    deleted_runs,
    episode_checkpoints,
    gate_leftovers,
    old_rollouts,
    rows_removal,
    workspace_snapshots,
)

KEEP_DELIVERIES_DAYS = 30


def audit_entries(*, before: datetime) -> Removal:
    """Return the removal of the entries of the audit log from before *before*."""
    rows = AuditEntry.objects.filter(created_at__lt=before)
    return rows_removal("audit entries", rows, ("username", "action", "path"))


def webhook_deliveries(*, before: datetime) -> Removal:
    """Return the removal of the deliveries of webhooks from before *before*."""
    return rows_removal("deliveries of webhooks", WebhookDelivery.objects.filter(created_at__lt=before), ("body",))


def expired_drafts() -> Removal:
    """Return the removal of the drafts of uploads that have expired."""
    rows = UploadDraft.objects.filter(changed_at__lte=timezone.now() - UploadDraft.KEPT)
    return rows_removal("expired drafts", rows, ("problems",))


def removals_by_settings() -> Iterator[Callable[[], Removal]]:
    """Yield functions that return the removals selected by LLMEVAL_KEEP_..._DAYS. 0 days keep everything.

    Each one reads the database or the storage, so each may fail on its own.
    """
    now = timezone.now()
    if settings.KEEP_DELETED_RUNS_DAYS:
        yield partial(deleted_runs, before=now - timedelta(days=settings.KEEP_DELETED_RUNS_DAYS))
    if settings.KEEP_CALLS_DAYS:
        yield partial(cached_calls, before=now - timedelta(days=settings.KEEP_CALLS_DAYS), max_characters=None)
    yield old_rollouts
    yield episode_checkpoints
    yield workspace_snapshots
    yield expired_drafts
    yield partial(webhook_deliveries, before=now - timedelta(days=KEEP_DELIVERIES_DAYS))
    if settings.KEEP_GATES_DAYS:
        yield partial(gate_leftovers, before=now - timedelta(days=settings.KEEP_GATES_DAYS))
    if settings.KEEP_AUDIT_DAYS:
        yield partial(audit_entries, before=now - timedelta(days=settings.KEEP_AUDIT_DAYS))
