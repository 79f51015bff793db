"""One call of a trainer's episode: rebuilt from its session, driven once in an event loop of its own, taken back."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar
from uuid import UUID

from hub.common.storable import storable
from hub.environments.compiled import CompiledEnvironment
from hub.environments.episodes import Episode
from hub.harnesses.base import Services
from hub.models import Case
from hub.protocols.calls import CallKey
from hub.protocols.cases import CaseData
from hub.selectors import compile_version
from runs.models import EpisodeSession
from runs.rollouts.roles import TRAINER, RoleModels, session_endpoints
from sandbox.client.settings import get_pool_options
from sandbox.client.shared_pools import get_shared_pool

T = TypeVar("T")
_TURNS = 100  # of any episode; harnesses have limits of their own


@dataclass(frozen=True, slots=True)
class SessionEnvironment:
    """Compiled environment and case of a session, which never change."""

    compiled: CompiledEnvironment
    case: CaseData


def advance(session: EpisodeSession, act: Callable[[Episode], Awaitable[T]]) -> T:
    """Let *act* drive the session's episode, and put the episode's new state and calls into the session, unsaved.

    Raises what the episode raises; the session is then as it was.
    """
    scene = _session_environment(session.pk, session.case_id)
    pool = scene.compiled.pool(get_shared_pool(get_pool_options())) if scene.compiled.needs_sandbox else None
    endpoints = session_endpoints(session)
    key = CallKey(
        purpose="answer",
        environment=scene.compiled.slug,
        case=scene.case.id,
        attempt=session.attempt,
        model=TRAINER,
    )

    async def driven() -> tuple[T, dict[str, Any], list[dict[str, Any]]]:
        roles = RoleModels(session, scene.compiled, endpoints)
        episode = Episode(
            scene.compiled,
            scene.case,
            key=key,
            seed=session.seed,
            services=Services(call_model=roles, pool=pool, models_per_role=roles.seats),
            max_turns=_TURNS,
            state=session.state,
        )
        try:
            return await act(episode), dict(episode.state), roles.calls
        finally:
            await roles.aclose()

    result, state, calls = asyncio.run(driven())
    session.state = storable(state)
    session.calls = [*session.calls, *calls]
    return result


@lru_cache(maxsize=128)
def _session_environment(session: UUID, case_id: int) -> SessionEnvironment:
    """Kept by the session, whose id is never given again, so that its steps need not read the case anew."""
    case = Case.objects.select_related("version").only("data", "version__digest").get(pk=case_id)
    return SessionEnvironment(compile_version(case.version), CaseData.from_json(case.data))
