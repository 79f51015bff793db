"""Snapshots of the boxes of episodes over REST, and the removal of all snapshots that no episode needs any more."""

import logging
from uuid import UUID

from django.utils import timezone

from runs.execution.checkpoints import RESPONSES, response_folder
from runs.models import EpisodeCheckpoint, EpisodeSession
from sandbox.workspaces.snapshots import list_snapshot_folders, remove_snapshots

logger = logging.getLogger(__name__)

_ROLLOUTS = "rollouts"


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
    """Return the folders of episodes, also those of runs, that have ended, expired or were deleted."""
    found = list(list_snapshot_folders(RESPONSES))
    if found:
        keys = EpisodeCheckpoint.objects.values_list("run_model_id", "case_id", "attempt")
        needed = {response_folder(*key) for key in keys}
        found = [folder for folder in found if folder not in needed]
    rollouts = list(list_snapshot_folders(_ROLLOUTS))
    if rollouts:
        open_sessions = EpisodeSession.objects.filter(done=False, expires_at__gt=timezone.now())
        needed = {rollout_folder(pk) for pk in open_sessions.values_list("pk", flat=True)}
        found += [folder for folder in rollouts if folder not in needed]
    return found


def remove_unneeded_snapshots() -> int:
    """Remove the snapshots that no episode needs any more, and return the number of episodes."""
    folders = unneeded_snapshots()
    for folder in folders:
        remove_snapshots(folder)
    return len(folders)
