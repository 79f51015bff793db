"""Celery tasks: close boxes without an owner, send webhooks, and permanently remove old data."""

import logging

from celery import shared_task

from hub.common.shutdown import is_shutting_down
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
        closed = close_expired_rollouts()
        save_idle_rollouts()
        remove_unneeded_snapshots()
        removed = get_workspaces().sweep()
        if closed or removed:
            logger.info("closed %d expired episodes of workspaces and removed %d boxes", closed, len(removed))


@shared_task(name=DELIVER, ignore_result=True)
def deliver_webhooks() -> None:
    """Send the deliveries of webhooks that are due."""
    deliver_due()


@shared_task(name="site.prune", ignore_result=True)
def prune() -> None:
    """Remove data that is older than LLMEVAL_KEEP_..._DAYS, and expired rollouts.

    An interrupted removal is continued by the next call.
    """
    for removal in removals_by_settings():
        if is_shutting_down():
            return
        _remove(removal)


@shared_task(name="site.remove_unused_files", ignore_result=True)
def remove_unused_files() -> None:
    """Remove the files of large values that no row refers to."""
    _remove(unused_files())


def _remove(removal: Removal) -> None:
    if removal.count:
        removal.remove()
        logger.info("removed %s %s (%s characters)", removal.count, removal.kind, removal.characters)
