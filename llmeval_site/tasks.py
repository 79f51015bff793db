"""Celery tasks: close boxes without an owner, send webhooks, and permanently remove old data."""

import logging
from collections.abc import Callable, Iterable
from functools import partial

from celery import shared_task

from hub.common.worker.shutdown import is_shutting_down
from llmeval_site.retention import removals_by_settings
from llmeval_site.webhooks.deliveries import DELIVER, deliver_due
from runs.retention import Removal, unused_files
from runs.rollouts.sessions import close_expired_rollouts, save_idle_rollouts
from runs.rollouts.snapshots import remove_unneeded_snapshots
from sandbox.workspaces.shared import get_workspaces, has_workspaces

logger = logging.getLogger(__name__)


@shared_task(name="site.close_workspaces", ignore_result=True)
def close_workspaces() -> None:
    """Close the boxes of expired episodes, and remove those whose process was killed. Needs no engine.

    Snapshots of idle episodes are stored, and those that no episode needs are removed.
    """
    if has_workspaces():
        _run_all([_close_expired_rollouts, save_idle_rollouts, remove_unneeded_snapshots, _sweep])


@shared_task(name=DELIVER, ignore_result=True)
def deliver_webhooks() -> None:
    """Send the deliveries of webhooks that are due."""
    deliver_due()


@shared_task(name="site.prune", ignore_result=True)
def prune() -> None:
    """Remove data that is older than LLMEVAL_KEEP_..._DAYS, and expired rollouts.

    An interrupted removal is continued by the next call.
    """
    _run_all(partial(_remove, removal) for removal in removals_by_settings())


@shared_task(name="site.remove_unused_files", ignore_result=True)
def remove_unused_files() -> None:
    """Remove the files of large values that no row refers to."""
    _remove(unused_files)


def _run_all(steps: Iterable[Callable[[], object]]) -> None:
    """Run *steps* until the process shuts down, also those after one that fails. Raises the first error at the end."""
    first: Exception | None = None
    for step in steps:
        if is_shutting_down():
            break
        try:
            step()
        except Exception as error:  # such as a storage that cannot be reached
            if first is None:
                first = error
            else:
                logger.exception("another step of the task failed")
    if first is not None:
        raise first


def _close_expired_rollouts() -> None:
    if closed := close_expired_rollouts():
        logger.info("closed %d expired episodes of workspaces", closed)


def _sweep() -> None:
    if removed := get_workspaces().sweep():
        logger.info("removed %d boxes", len(removed))


def _remove(select: Callable[[], Removal]) -> None:
    removal = select()
    if removal.count:
        removal.remove()
        logger.info("removed %s %s (%s characters)", removal.count, removal.kind, removal.characters)
