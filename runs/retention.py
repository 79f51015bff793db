"""Permanent removal of old data: deleted runs, cached calls, expired rollouts, requests for gates, unused files.

`llmeval_site/retention.py` adds entries of the audit log, and selects by the settings.

Everything is removed in batches, each in a transaction of its own, so an interrupted removal can be repeated. A run
that has not ended, or that another app needs, is never removed. Removals raise ContentUnavailable if the storage of
files does not respond; rows whose files are in it are then kept.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from django.conf import settings
from django.db import models, transaction
from django.db.models import Q, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from hub.bundles.stored import find_unused_archives
from hub.common import leases
from hub.common.fields import length_of, unused_files_deleted
from hub.common.unused_files import delete_unused_files, find_unused_files, size_of_files
from hub.gates.queue import TRIES
from hub.models import GateRequest
from runs.models import ACTIVE, ENDED, EpisodeCheckpoint, EpisodeSession, ModelCall, Response, Run, Score
from runs.rescoring import remove_recordings
from runs.rollouts.expiry import expired_rollouts
from runs.rollouts.snapshots import remove_snapshot_folders, unneeded_snapshots

BATCH = 500
_RESPONSE_TEXTS = ("messages", "text", "reason")
_CALL_TEXTS = ("message", "usage")
_EPISODE_TEXTS = ("state", "calls", "recordings", "tokens", "last_answer")

Row = TypeVar("Row", bound=models.Model)

_needed_runs: list[Callable[[], Q]] = []


def register_needed_runs(condition: Callable[[], Q]) -> None:
    """Register a function that returns the condition on runs that another app needs. Called from `ready()`."""
    _needed_runs.append(condition)


@dataclass(frozen=True, slots=True)
class Removal:
    """Rows of one kind to remove: how many, and how many characters of text they hold.

    kept: how many are kept although they are old enough, and why. remove: removes the rows.
    """

    kind: str
    count: int
    characters: int
    remove: Callable[[], None]
    kept: str = ""


def deleted_runs(*, before: datetime) -> Removal:
    """Return the removal of the runs that were deleted before *before*, except those that another app needs."""
    rows = _removable_runs(before)
    deleted = Run.objects.filter(deleted_at__lt=before).count()
    ids = list(rows.order_by("pk").values_list("pk", flat=True))
    responses = Response.objects.filter(run_environment__run__in=ids).order_by()
    kept = deleted - len(ids)
    return Removal(
        "deleted runs",
        len(ids),
        _characters(responses, _RESPONSE_TEXTS),
        partial(_remove_runs, ids, before),
        f"{kept:,} kept: preferences refer to their responses" if kept else "",
    )


def _removable_runs(before: datetime) -> QuerySet[Run]:
    rows = Run.objects.filter(leases.free(), deleted_at__lt=before, status__in=ENDED)
    for condition in _needed_runs:
        rows = rows.exclude(condition())
    return rows


def _remove_runs(ids: list[int], before: datetime) -> None:
    for pk in ids:
        while _remove_part_of_run(pk, before):
            pass


def _remove_part_of_run(pk: int, before: datetime) -> bool:
    """Remove a batch of responses, or the run if it has none left. Returns whether the run is still there.

    The row of the run is locked, so that it cannot be restored in the meantime.
    """
    with transaction.atomic():
        if not Run.objects.select_for_update(of=("self",)).filter(pk=pk, deleted_at__lt=before).exists():
            return False
        run = _removable_runs(before).filter(pk=pk).first()
        if run is None:
            return False
        responses = Response.objects.filter(run_environment__run=run).order_by("pk")
        batch = list(responses.values_list("pk", flat=True)[:BATCH])
        if batch:
            _delete(Response.objects.filter(pk__in=batch), Score.objects.filter(response__in=batch))
            run.results.all().delete()  # they no longer agree with the responses, should the run be restored
            return True
        remove_recordings(run)
        run.delete()
        return False


def cached_calls(*, before: datetime | None, max_characters: int | None) -> Removal:
    """Return the removal of the cached calls stored before *before*, and of the oldest above *max_characters*.

    Calls that were stored since the oldest run in progress was created are kept.
    """
    limits = [before] if before is not None else []
    if max_characters is not None and (limit := _age_limit(max_characters)) is not None:
        limits.append(limit)
    rows = ModelCall.objects.filter(created_at__lt=max(limits)) if limits else ModelCall.objects.none()
    active = Run.objects.filter(status__in=ACTIVE).order_by("created_at").first()
    if active is not None:
        rows = rows.filter(created_at__lt=active.created_at)
    return rows_removal("cached model calls", rows, _CALL_TEXTS)


def _age_limit(max_characters: int) -> datetime | None:
    """Return the time before which calls are removed, so that the rest has at most *max_characters*; or None."""
    total = 0
    newest_first = ModelCall.objects.order_by("-created_at").annotate(size=_length(ModelCall, _CALL_TEXTS))
    for created_at, size in newest_first.values_list("created_at", "size").iterator(chunk_size=BATCH):
        total += size
        if total > max_characters:
            return created_at + timedelta(microseconds=1)  # removes this call and all earlier ones
    return None


def old_rollouts() -> Removal:
    """Return the removal of the rollouts that expired more than EPISODE_KEEP_DAYS days ago."""
    return rows_removal("expired rollouts", expired_rollouts(), _EPISODE_TEXTS)


def episode_checkpoints() -> Removal:
    """Return the removal of the checkpoints of runs that ended, or do not use them any more, EPISODE_KEEP_DAYS ago."""
    before = timezone.now() - timedelta(days=settings.EPISODE_KEEP_DAYS)
    rows = EpisodeCheckpoint.objects.filter(updated_at__lt=before).exclude(run_environment__run__status__in=ACTIVE)
    return rows_removal("checkpoints", rows, ("state", "totals"))


def workspace_snapshots() -> Removal:
    """Return the removal of the snapshots of workspaces that no episode needs any more. Raises ContentUnavailable."""
    folders = unneeded_snapshots()
    return Removal("snapshots", len(folders), 0, partial(remove_snapshot_folders, folders))


def unused_files() -> Removal:
    """Return the removal of the files of large values that no row refers to. Its size is that of the files.

    Raises ContentUnavailable.
    """
    return _files("unused files", find_unused_files(Response, Score, ModelCall, EpisodeCheckpoint, EpisodeSession))


def unused_archives() -> Removal:
    """Return the removal of the archives that no version has. Its size is that of the files.

    No task executes it: the archives of another installation at the same place would be removed as well. Raises
    ContentUnavailable.
    """
    return _files("unused archives", find_unused_archives())


def _files(kind: str, names: list[str]) -> Removal:
    return Removal(kind, len(names), size_of_files(names), partial(delete_unused_files, names))


def gate_leftovers(*, before: datetime) -> Removal:
    """Return the removal of requests for gates that have a result, or were given up before *before*."""
    rows = GateRequest.objects.filter(leases.free()).filter(
        Q(version__certificate__isnull=False) | Q(tries__gte=TRIES, created_at__lt=before)
    )
    return rows_removal("leftovers of gates", rows, ("problem",))


def rows_removal(kind: str, rows: QuerySet[Row], texts: tuple[str, ...]) -> Removal:
    """Return the removal of *rows* in batches. *texts*: the columns whose characters count as their size."""
    return Removal(kind, rows.count(), _characters(rows, texts), partial(_remove, rows))


def _remove(rows: QuerySet[Row]) -> None:
    while _delete(rows.filter(pk__in=rows.order_by("pk").values("pk")[:BATCH])):
        pass


def _delete(rows: QuerySet[Row], *dependent: QuerySet[models.Model]) -> int:
    """Delete *rows* with *dependent* ones and, once that is committed, their files. Return the number of all."""
    with transaction.atomic(), unused_files_deleted(rows, *dependent, must_respond=True):
        return rows.only("pk").delete()[0]  # without reading large values


def _length(model: type[models.Model], columns: tuple[str, ...]) -> models.expressions.Combinable:
    total: models.expressions.Combinable = models.Value(0)
    for column in columns:
        total = total + Coalesce(length_of(model, column), 0)
    return total


def _characters(rows: QuerySet[Row], columns: tuple[str, ...]) -> int:
    return int(rows.aggregate(total=Sum(_length(rows.model, columns)))["total"] or 0)
