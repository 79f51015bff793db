"""Episodes for trainers: begun, stepped and ended from outside, with the state in the database between steps.

The episode is the very one that evaluations play; nothing here knows a harness or a scorer.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from hub.canonical import attempt_seed, storable
from hub.cases import CaseData
from hub.episodes import Episode, EpisodeError, Observation, Step
from hub.harnesses.base import HarnessError, Services
from hub.models import Case, EnvironmentVersion
from hub.pools import pool_options
from hub.ports import JSON, AskError, CallKey, Message, Reply, Tool
from hub.scorers.base import ScoringFailed
from hub.selectors import compile_version
from runs.asking import Asker, Budget, Connection, Tally
from runs.endpoints import endpoint_spec
from runs.models import EpisodeSession, ModelEndpoint
from runs.providers.base import ProviderContext
from runs.providers.registry import PROVIDERS
from sandbox.pool import shared

MAX_MESSAGE_BYTES = 1024 * 1024
_TURNS = 100  # of any episode; harnesses have limits of their own
_CASE_SECONDS = 300.0  # that one step may wait for role models


class RolloutRefused(ValueError):
    """What was asked for is not allowed or does not fit; the text is a sentence."""


class RolloutConflict(Exception):
    """Somebody else stepped the same episode meanwhile; nothing was changed."""


class RolloutFailed(Exception):
    """The world failed (sandbox, role model): the episode is as it was, and the step may be sent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A new episode and the first thing its model sees."""

    session: EpisodeSession
    observation: Observation


def rollout_begin(
    *,
    user: User,
    version: EnvironmentVersion,
    case_id: str | None = None,
    seed: int = 0,
    attempt: int = 1,
    roles: Mapping[str, list[str]] | None = None,
) -> Begun:
    """Begin an episode of *case_id*, or of a case drawn by *seed*. Raises RolloutRefused, RolloutFailed."""
    if version.environment.held_out:
        raise RolloutRefused(f"{version.environment.slug} is held out: it is for evaluation, and never trained on.")
    compiled = compile_version(version)
    missing = [role for role in compiled.roles if not (roles or {}).get(role)]
    if missing:
        raise RolloutRefused(f"{version} asks models by role; name registered ones: roles.{', roles.'.join(missing)}.")
    _check_roles(roles or {})
    open_ones = EpisodeSession.objects.filter(user=user, done=False, expires_at__gt=timezone.now()).count()
    if open_ones >= settings.EPISODES_PER_USER:
        raise RolloutRefused(
            f"You have {open_ones} episodes open, as many as are allowed; finish or DELETE some of them first."
        )
    case = _case(version, case_id, seed)
    session = EpisodeSession(
        user=user,
        case=case,
        seed=attempt_seed(seed, version.environment.slug, case.external_id, attempt),
        attempt=attempt,
        roles=dict(roles or {}),
        expires_at=_expiry(),
    )
    observation = _drive(session, _reset)
    session.save(force_insert=True)
    return Begun(session=session, observation=observation)


def rollout_step(*, session: EpisodeSession, message: Message) -> Step:
    """Answer with *message*. Raises RolloutRefused, RolloutConflict, RolloutFailed; then the episode is as it was."""
    if session.expires_at < timezone.now():
        raise RolloutRefused("The episode has expired; begin another.")
    step: Step = _drive(session, partial(_step, message=checked_message(message)))
    session.done, session.truncated, session.reward = step.done, step.truncated, step.reward
    if step.score is not None:
        session.score = _score(step)
    read = session.revision
    stored = EpisodeSession.objects.filter(pk=session.pk, revision=read).update(
        state=session.state,
        calls=session.calls,
        revision=read + 1,
        done=session.done,
        truncated=session.truncated,
        reward=session.reward,
        score=session.score,
        expires_at=_expiry(),
    )
    if not stored:
        raise RolloutConflict("Another step of this episode came first; read it and decide again.")
    session.revision = read + 1
    return step


def rollout_end(*, session: EpisodeSession) -> None:
    """Forget an episode."""
    session.delete()


def rollouts_sweep() -> int:
    """Forget episodes that expired a day ago; how many they were."""
    deleted, _ = EpisodeSession.objects.filter(expires_at__lt=timezone.now() - timedelta(days=1)).delete()
    return deleted


def checked_message(message: Any) -> Message:
    """An assistant message of the wire's shape. Raises RolloutRefused, saying what is wrong."""
    if not isinstance(message, dict):
        raise RolloutRefused('`message` must be an assistant message, such as {"role": "assistant", "content": "…"}.')
    if len(json.dumps(message)) > MAX_MESSAGE_BYTES:
        raise RolloutRefused(f"`message` is larger than {MAX_MESSAGE_BYTES:,} bytes.")
    content = message.get("content")
    if message.get("role", "assistant") != "assistant":
        raise RolloutRefused(f"`message.role` must be assistant, not {message['role']!r}.")
    if not isinstance(content, str | None):
        raise RolloutRefused("`message.content` must be text or null.")
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(_is_call(call) for call in calls):
        raise RolloutRefused(
            "`message.tool_calls` must be a list of {id, type, function: {name, arguments: JSON text}}."
        )
    if not content and not calls:
        content = content or ""
    return {**message, "role": "assistant", "content": content}


def _is_call(call: Any) -> bool:
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
        raise RolloutRefused(f"{version} has no case {case_id!r}.") from None


def _check_roles(roles: Mapping[str, list[str]]) -> None:
    wanted = {name for names in roles.values() for name in names}
    known = set(ModelEndpoint.objects.filter(name__in=wanted, enabled=True).values_list("name", flat=True))
    if wanted - known:
        raise RolloutRefused(f"No model is registered as {', '.join(sorted(wanted - known))}.")


def _expiry() -> Any:
    return timezone.now() + timedelta(seconds=settings.EPISODE_IDLE_SECONDS)


def _score(step: Step) -> dict[str, Any]:
    assert step.score is not None
    rules = [
        {"rule": rule.rule, "type": rule.type, "value": rule.value, "reason": rule.reason} for rule in step.score.rules
    ]
    return {"status": step.score.status, "value": step.score.value, "rules": rules}


# ---- one call in an event loop of its own ----------------------------------------------------------------------------


def _drive(session: EpisodeSession, act: Callable[[Episode], Awaitable[Any]]) -> Any:
    """Rebuild the episode from the session, let *act* drive it once, and take its state and its calls back."""
    version = session.case.version
    compiled = compile_version(version)
    pool = shared(pool_options()) if compiled.needs_sandbox else None
    endpoints = {
        role: list(ModelEndpoint.objects.filter(name__in=names, enabled=True).order_by("name"))
        for role, names in session.roles.items()
    }
    key = CallKey(
        purpose="answer",
        environment=version.environment.slug,
        case=session.case.external_id,
        attempt=session.attempt,
        model="trainer",
    )

    async def driven() -> Any:
        # Clients belong to the loop that they are made in.
        roles = {role: [_connect(endpoint) for endpoint in rows] for role, rows in endpoints.items()}
        ask = _Recording(Asker(models={}, roles=roles, cache=None, budget=Budget(), seed_of=lambda _: session.seed))
        episode = Episode(
            compiled,
            CaseData.from_json(session.case.data),
            key=key,
            seed=session.seed,
            services=Services(ask=ask, pool=pool, seats={role: len(rows) for role, rows in roles.items()}),
            max_turns=_TURNS,
            state=session.state,
        )
        try:
            return await act(episode), episode.state, ask.calls
        finally:
            clients = [item.provider.aclose() for rows in roles.values() for item in rows]
            await asyncio.gather(*clients, return_exceptions=True)

    try:
        result, session.state, calls = asyncio.run(driven())
        session.state = storable(session.state)
    except (HarnessError, ScoringFailed, AskError) as error:
        raise RolloutFailed(str(error)) from None
    except EpisodeError as error:
        raise RolloutRefused(str(error)) from None
    session.calls = [*session.calls, *calls]
    return result


async def _reset(episode: Episode) -> Observation:
    return await episode.reset()


async def _step(episode: Episode, message: Message) -> Step:
    return await episode.step(message)


def _connect(endpoint: ModelEndpoint) -> Connection:
    spec = endpoint_spec(endpoint)
    provider = PROVIDERS[spec.provider]
    options = provider.Options.model_validate(spec.options)
    key = settings.ENV.lookup(endpoint.api_key_env) if endpoint.api_key_env else None
    return Connection(
        label=spec.name,
        spec=spec,
        provider=provider(spec, options, ProviderContext(api_key=key)),
        fingerprint=provider.fingerprint(spec, options),
        slots=asyncio.Semaphore(4),
    )


class _Recording:
    """The port for role models: what they answered is kept."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self.calls: list[dict[str, Any]] = []

    async def __call__(
        self,
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
    ) -> Reply:
        reply = await self._asker.call(key, messages, tools, parameters, Tally(seconds_left=_CASE_SECONDS))
        self.calls.append({"key": asdict(key), "message": reply.message})
        return reply
