"""Names of the folders with snapshots of episodes, and the removal of those that no episode needs any more."""

from uuid import UUID

from django.utils import timezone

from runs.models import EpisodeCheckpoint, EpisodeSession
from sandbox.workspaces.snapshots import list_snapshot_folders, remove_snapshots

_RUNS, _ROLLOUTS = "runs", "rollouts"


def response_folder(run_model_id: int, case_id: int, attempt: int) -> str:
    """Return the folder of the episode of a response."""
    return f"{_RUNS}/{run_model_id}-{case_id}-{attempt}"


def rollout_folder(session_id: UUID) -> str:
    """Return the folder of an episode over REST."""
    return f"{_ROLLOUTS}/{session_id}"


def unneeded_snapshots() -> list[str]:
    """Return the folders of episodes that have ended, expired or were deleted."""
    found = list(list_snapshot_folders(_RUNS))
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
