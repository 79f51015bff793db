"""Stored episodes of a user: read, list and delete them."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import TypedDict
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from hub.common import leases
from hub.common.fields import ContentUnavailable, unused_files_deleted, update_row
from hub.environments.episodes import Episode
from runs.models import EpisodeSession
from runs.rollouts.claims import claim_step
from runs.rollouts.errors import EnvironmentFailed, RolloutConflict, RolloutError, RolloutFailed
from runs.rollouts.rebuilding import advance, close_episode
from runs.selectors import visible_episodes

logger = logging.getLogger(__name__)

_CLOSE_WITHIN = timedelta(minutes=10)  # of the expiry; boxes that are not closed within this time end by themselves
_CLOSE_AT_ONCE = 500
_IDLE = timedelta(seconds=60)  # since the last step
_SAVE_WITHIN = timedelta(minutes=5)  # of becoming idle; later attempts would fail like those before
_SAVE_AT_ONCE = 50
_HARNESS_WITH_BOXES = "workspace"  # the only one that opens anything
# Tokens may be many, and only a step that adds some needs them. The others are read once and cached (`rebuilding`).
_DEFERRED_FIELDS = ["tokens", "case__data", "case__version__manifest", "case__version__readme"]
_LIST_FIELDS = [
    "case__external_id",
    "case__version__version",
    "case__version__environment__slug",
    "attempt",
    "model",
    "group",
    "done",
    "truncated",
    "reward",
    "created_at",
    "expires_at",
]


class StepReward(TypedDict):
    """Reward that a harness of the bundle returned for one step; None if it returned none."""

    reward: float | None


def get_session(*, user: User, pk: UUID) -> EpisodeSession | None:
    """Return the episode *pk* of *user*, or None."""
    try:
        sessions = visible_episodes(user).select_related("case__version__environment")
        return sessions.defer(*_DEFERRED_FIELDS).get(pk=pk)
    except EpisodeSession.DoesNotExist:
        return None


def session_steps(session: EpisodeSession) -> list[StepReward] | None:
    """Return the reward of each step of *session* as its harness returned it; None if it returned none at all."""
    rewards = session.state.get("rewards")
    if not rewards:
        return None
    missing = session.state["turns"] - len(rewards)
    return [StepReward(reward=reward) for reward in [*rewards, *[None] * missing]]


def list_sessions(*, user: User, done: bool | None = None, group: str = "") -> QuerySet[EpisodeSession]:
    """Return the episodes of *user*, the latest first.

    done: only those that have ended, or only the open ones. group: only those of this group.
    """
    sessions = visible_episodes(user).select_related("case__version__environment")
    sessions = sessions.only(*_LIST_FIELDS).order_by("-created_at")
    if group:
        sessions = sessions.filter(group=group)
    if done is None:
        return sessions
    return sessions.filter(done=True) if done else sessions.filter(done=False, expires_at__gt=timezone.now())


def close_expired_rollouts() -> int:
    """Free what episodes that have just expired had opened, and return their number. Closing twice does no harm."""
    now = timezone.now()
    expired = EpisodeSession.objects.filter(done=False, expires_at__lt=now, expires_at__gt=now - _CLOSE_WITHIN)
    expired = expired.filter(leases.free())  # a step may last longer than an episode may be idle
    sessions = expired.filter(case__version__manifest__harness__type=_HARNESS_WITH_BOXES).order_by("expires_at")
    closed = 0
    for session in _each(sessions[:_CLOSE_AT_ONCE]):
        close_episode(session)
        closed += 1
    return closed


def save_idle_rollouts() -> int:
    """Store snapshots of the boxes of episodes that are idle, if their environment has snapshots. Return how many."""
    now = timezone.now()
    used_before = now + timedelta(seconds=settings.EPISODE_IDLE_SECONDS) - _IDLE
    idle = EpisodeSession.objects.filter(leases.free(), done=False, revision__gt=0)
    idle = idle.filter(expires_at__gt=max(now, used_before - _SAVE_WITHIN), expires_at__lt=used_before)
    idle = idle.filter(case__version__manifest__harness__snapshot_turns__gt=0).order_by("expires_at")
    saved = 0
    for session in _each(idle[:_SAVE_AT_ONCE]):
        state = session.state["harness"]
        if state["world"].get("snapshot", {}).get("turns") != state["turns"]:
            saved += _save(session)
    return saved


def _each(sessions: QuerySet[EpisodeSession]) -> Iterator[EpisodeSession]:
    """Yield *sessions* one at a time, because each may be large. Those whose file cannot be read are logged."""
    for pk in list(sessions.values_list("pk", flat=True)):
        try:
            session = EpisodeSession.objects.filter(pk=pk).first()
        except ContentUnavailable as error:
            logger.warning("episode %s cannot be read: %s", pk, error)
            continue
        if session is not None:
            yield session


def _save(session: EpisodeSession) -> bool:
    revision = session.revision
    try:
        with claim_step(session, wait=False) as claimed:
            if not claimed:
                return False
            advance(session, _save_episode)
            unchanged = EpisodeSession.objects.filter(revision=revision)
            return update_row(session, unchanged, {"state": session.state})
    except (RolloutConflict, RolloutError, EnvironmentFailed, RolloutFailed):
        # It is used again, its user has left the team that pays, or its box cannot be reached.
        return False


async def _save_episode(episode: Episode) -> None:
    await episode.save()


def delete_rollout(*, session: EpisodeSession) -> None:
    """Delete an episode, and free what it has opened. Wait for a step that is executed, for at most 10 seconds.

    Raises StepInProgress; the episode is then unchanged.
    """
    deleted = False
    while not deleted:
        with claim_step(session, wait=True) as claimed:
            if claimed:  # otherwise a step was stored meanwhile, and the session was read again
                close_episode(session)
                with unused_files_deleted(EpisodeSession.objects.filter(pk=session.pk)):
                    session.delete()
                deleted = True
