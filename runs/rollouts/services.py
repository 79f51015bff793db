"""Services for rollouts: episodes that a trainer creates, steps and deletes. Their state is stored between steps.

The episodes are the same as in evaluations. This module does not depend on any harness or scorer.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial
from math import ceil
from typing import TypeVar, cast
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Min, QuerySet
from django.utils import timezone

from hub.common import wording
from hub.common.digests import attempt_seed
from hub.common.errors import Conflict, TooManyRequests, UserError
from hub.environments.episodes import Episode, EpisodeError, Observation, Step
from hub.harnesses.base import HarnessError
from hub.models import Case, EnvironmentVersion
from hub.protocols.calls import ModelError, Usage
from hub.protocols.messages import JSON, Message
from hub.scorers.base import ScoringFailed
from hub.selectors import compile_version
from runs.models import EpisodeSession, ModelEndpoint
from runs.rollouts.roles import InvalidRecordings, RecordingNotFound, validate_recordings
from runs.rollouts.stepping import advance
from sandbox.errors import SandboxUnavailable

T = TypeVar("T")
MAX_MESSAGE_BYTES = 1024 * 1024
_RETRY_SECONDS = 10  # upper limit of retry_after, because an open episode may end before it expires
_LIST_FIELDS = [
    "case__external_id",
    "case__version__version",
    "case__version__environment__slug",
    "attempt",
    "model",
    "done",
    "truncated",
    "reward",
    "created_at",
    "expires_at",
]


class RolloutError(UserError):
    """The request is not allowed or does not fit the episode. `path` is the invalid key of the request."""


class RolloutConflict(Conflict):
    """A concurrent request has stepped the same episode. Nothing was changed."""


class TooManyEpisodes(TooManyRequests):
    """The user has reached the limit of open episodes."""


class RolloutFailed(Exception):
    """The sandbox or a role model failed. The episode is unchanged and the step can be sent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRollout:
    """A new episode and its first observation."""

    session: EpisodeSession
    observation: Observation


def create_rollout(
    *,
    user: User,
    version: EnvironmentVersion,
    case_id: str | None = None,
    seed: int = 0,
    attempt: int = 1,
    model: str = "",
    roles: Mapping[str, list[str]] | None = None,
    recordings: Sequence[JSON] | None = None,
) -> NewRollout:
    """Start an episode of *case_id*, or of a case drawn by *seed*.

    *model* is a label that the trainer chooses, such as the name of a checkpoint. *recordings* are replies of role
    models in an earlier episode of the same case and attempt; with them, *roles* may be left out.

    Raises RolloutError, TooManyEpisodes, RolloutFailed.
    """
    roles = dict(roles or {})
    if version.environment.held_out:
        raise RolloutError(f"{version.environment.slug} is held out: it must not be used for training.")
    compiled = compile_version(version)
    missing = [role for role in compiled.roles if not roles.get(role)]
    if missing and recordings is None:
        keys = ", ".join(f"roles.{role}" for role in missing)
        raise RolloutError(f"{version} needs role models. Name registered models in {keys}: {_registered()}.", "roles")
    _check_roles(roles)
    _check_limit(user)  # before the reset, which may be expensive
    case = _case(version, case_id, seed)
    session = EpisodeSession(
        user=user,
        case=case,
        seed=attempt_seed(seed, version.environment.slug, case.external_id, attempt),
        attempt=attempt,
        model=model,
        roles=roles,
        recordings=_recordings(recordings or [], version, case, attempt),
        expires_at=_expiry(),
    )
    observation = _advance(session, _reset)
    _save_within_limit(session)
    return NewRollout(session=session, observation=observation)


def step_rollout(*, session: EpisodeSession, message: Message, usage: Usage | None = None) -> Step:
    """Step the episode with *message*.

    *usage* is the number of tokens of the message, if the trainer knows it.

    Raises RolloutError, RolloutConflict and RolloutFailed; the stored episode is then unchanged.
    """
    if session.expires_at < timezone.now():
        raise RolloutError("The episode has expired. Start a new one.")
    step = _advance(session, partial(_step, message=validate_message(message)))
    session.done, session.truncated, session.reward = step.done, step.truncated, step.reward
    if step.score is not None:
        session.score = _score(step)
    session.usage = [*session.usage, asdict(usage) if usage else None]
    revision = session.revision
    stored = EpisodeSession.objects.filter(pk=session.pk, revision=revision).update(
        state=session.state,
        calls=session.calls,
        usage=session.usage,
        revision=revision + 1,
        done=session.done,
        truncated=session.truncated,
        reward=session.reward,
        score=session.score,
        expires_at=_expiry(),
    )
    if not stored:
        raise RolloutConflict("Another request has stepped this episode. Read the episode again before the next step.")
    session.revision = revision + 1
    return step


def get_session(*, user: User, pk: UUID) -> EpisodeSession | None:
    """Return the episode *pk* of *user*, or None."""
    try:
        return EpisodeSession.objects.get(pk=pk, user=user)
    except EpisodeSession.DoesNotExist:
        return None


def list_sessions(*, user: User, done: bool | None = None) -> QuerySet[EpisodeSession]:
    """Return the episodes of *user*, the latest first. done: only those that have ended, or only the open ones."""
    sessions = EpisodeSession.objects.filter(user=user).select_related("case__version__environment")
    sessions = sessions.only(*_LIST_FIELDS).order_by("-created_at")
    if done is None:
        return sessions
    return sessions.filter(done=True) if done else sessions.filter(done=False, expires_at__gt=timezone.now())


def delete_rollout(*, session: EpisodeSession) -> None:
    """Delete an episode."""
    session.delete()


def delete_expired_rollouts() -> int:
    """Delete episodes that expired more than EPISODE_KEEP_DAYS days ago. Return the number of deleted episodes."""
    oldest_kept = timezone.now() - timedelta(days=settings.EPISODE_KEEP_DAYS)
    deleted, _ = EpisodeSession.objects.filter(expires_at__lt=oldest_kept).delete()
    return deleted


def validate_message(message: object) -> Message:
    """Return *message* as an assistant message of chat completions. Raises RolloutError."""
    if not isinstance(message, dict):
        raise RolloutError('`message` must be an assistant message, such as {"role": "assistant", "content": "…"}.')
    if len(json.dumps(message)) > MAX_MESSAGE_BYTES:
        raise RolloutError(f"`message` is larger than {MAX_MESSAGE_BYTES:,} bytes.")
    content = message.get("content")
    if message.get("role", "assistant") != "assistant":
        raise RolloutError(f"`message.role` must be assistant, not {message['role']!r}.")
    if not isinstance(content, str | None):
        raise RolloutError("`message.content` must be text or null.")
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(_is_tool_call(call) for call in calls):
        raise RolloutError("`message.tool_calls` must be a list of {id, type, function: {name, arguments: JSON text}}.")
    if not content and not calls:
        content = content or ""
    return cast(Message, {**message, "role": "assistant", "content": content})


def _is_tool_call(call: object) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return (
        isinstance(function, dict)
        and isinstance(function.get("name"), str)
        and isinstance(function.get("arguments"), str)
    )


def _case(version: EnvironmentVersion, case_id: str | None, seed: int) -> Case:
    cases = version.cases.all()
    if case_id is None:
        return cases.get(position=attempt_seed(seed, version.environment.slug, "", 1) % version.case_count)
    try:
        return cases.get(external_id=case_id)
    except Case.DoesNotExist:
        raise RolloutError(f"{version} has no case {case_id!r}.", "case") from None


def _check_roles(roles: Mapping[str, list[str]]) -> None:
    names = {name for listed in roles.values() for name in listed}
    if not names:
        return
    known = ModelEndpoint.objects.filter(name__in=names, enabled=True).values_list("name", flat=True)
    unknown = names - set(known)
    if unknown:
        raise RolloutError(f"No model is registered as {', '.join(sorted(unknown))}: {_registered()}.", "roles")


def _registered() -> str:
    names = ModelEndpoint.objects.filter(enabled=True).order_by("name").values_list("name", flat=True)
    return wording.suggest("", names) or "none is registered yet; an administrator can register one"


def _recordings(rows: Sequence[JSON], version: EnvironmentVersion, case: Case, attempt: int) -> list[dict[str, JSON]]:
    try:
        return validate_recordings(rows, environment=version.environment.slug, case=case.external_id, attempt=attempt)
    except InvalidRecordings as error:
        raise RolloutError(str(error), "recordings") from None


def _check_limit(user: User) -> None:
    """Raise TooManyEpisodes if *user* may not open another episode."""
    now = timezone.now()
    expiries = EpisodeSession.objects.filter(user=user, done=False, expires_at__gt=now)
    count = expiries.count()
    if count < settings.EPISODES_PER_USER:
        return
    first = expiries.aggregate(first=Min("expires_at"))["first"] or now
    raise TooManyEpisodes(
        f"You have {wording.counted(count, 'open episode')}, which is the limit. Finish or delete one before you "
        "start another; GET /api/v1/episodes/?done=false lists them.",
        retry_after=min(_RETRY_SECONDS, max(1, ceil((first - now).total_seconds()))),
    )


def _save_within_limit(session: EpisodeSession) -> None:
    """Insert *session*. Raises TooManyEpisodes if concurrent requests have reached the limit.

    The lock on the user's row lets one request of a user count and insert at a time. SQLite has no row locks, but its
    transactions hold the write lock from the beginning (transaction_mode in the settings).
    """
    with transaction.atomic():
        User.objects.select_for_update().get(pk=session.user_id)
        _check_limit(session.user)
        session.save(force_insert=True)


def _expiry() -> datetime:
    return timezone.now() + timedelta(seconds=settings.EPISODE_IDLE_SECONDS)


def _score(step: Step) -> dict[str, JSON]:
    assert step.score is not None
    rules = [
        {"rule": rule.rule, "type": rule.type, "value": rule.value, "weight": rule.weight, "reason": rule.reason}
        for rule in step.score.rules
    ]
    return {"status": step.score.status, "value": step.score.value, "rules": rules}


async def _reset(episode: Episode) -> Observation:
    return await episode.reset()


async def _step(episode: Episode, message: Message) -> Step:
    return await episode.step(message)


def _advance(session: EpisodeSession, act: Callable[[Episode], Awaitable[T]]) -> T:
    """Call `advance`. Raises RolloutError if the trainer can fix the cause, and RolloutFailed if not."""
    try:
        return advance(session, act)
    except (EpisodeError, RecordingNotFound) as error:
        raise RolloutError(str(error)) from None
    except (HarnessError, ScoringFailed, ModelError, SandboxUnavailable) as error:
        raise RolloutFailed(str(error)) from None
