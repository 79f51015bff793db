"""Snapshots of the boxes of episodes over REST, and the removal of all snapshots that no episode needs any more."""

import logging
from collections.abc import Iterable
from uuid import UUID

from django.utils import timezone

from hub.common.fields import content_unavailable
from runs.execution.checkpoints import RESPONSES, response_folder
from runs.models import EpisodeCheckpoint, EpisodeSession
from sandbox.workspaces.snapshots import list_snapshot_folders, remove_snapshots

logger = logging.getLogger(__name__)

_ROLLOUTS = "rollouts"
_VARIABLE = "LLMEVAL_SNAPSHOTS"  # names the storage


def rollout_folder(session_id: UUID) -> str:
    """Return the folder of an episode in the storage of snapshots."""
    return f"{_ROLLOUTS}/{session_id}"


def remove_rollout_snapshots(session: EpisodeSession) -> None:
    """Remove the snapshots of an episode. If the storage fails, a periodic task removes them."""
    harness = session.state.get("harness")
    world = harness.get("world") if isinstance(harness, dict) else None
    if not isinstance(world, dict) or "snapshot" not in world:  # other harnesses may have any JSON there
        return
    try:
        remove_snapshots(rollout_folder(session.pk))
    except Exception as error:
        logger.warning("the snapshots of episode %s cannot be removed: %s", session.pk, error)


def unneeded_snapshots() -> list[str]:
    """Return the folders of episodes, also those of runs, that have ended, expired or were deleted.

    Raises ContentUnavailable.
    """
    found = _list_folders(RESPONSES)
    if found:
        keys = EpisodeCheckpoint.objects.values_list("run_model_id", "case_id", "attempt")
        needed = {response_folder(*key) for key in keys}
        found = [folder for folder in found if folder not in needed]
    rollouts = _list_folders(_ROLLOUTS)
    if rollouts:
        open_sessions = EpisodeSession.objects.filter(done=False, expires_at__gt=timezone.now())
        needed = {rollout_folder(pk) for pk in open_sessions.values_list("pk", flat=True)}
        found += [folder for folder in rollouts if folder not in needed]
    return found


def _list_folders(kind: str) -> list[str]:
    try:
        return list(list_snapshot_folders(kind))
    except Exception as error:
        raise content_unavailable(error, "Snapshots of workspaces cannot be listed", _VARIABLE) from error


def remove_snapshot_folders(folders: Iterable[str]) -> None:
    """Remove the snapshots in *folders*. Stops at the first error of the storage, and raises ContentUnavailable."""
    for folder in folders:
        try:
            remove_snapshots(folder)
        except Exception as error:
            raise content_unavailable(error, f"The snapshots in {folder} cannot be removed", _VARIABLE) from error


def remove_unneeded_snapshots() -> int:
    """Remove the snapshots that no episode needs any more, and return the number of episodes.

    Raises ContentUnavailable.
    """
    folders = unneeded_snapshots()
    remove_snapshot_folders(folders)
    return len(folders)
