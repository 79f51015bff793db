"""One reset or step of a trainer's episode, which is rebuilt from its session for each call."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from pydantic import ValidationError

from hub.bundles.stored import ArchivesUnreachable, ArchiveUnavailable
from hub.common.storable import storable
from hub.environments.compiled import CaseError, CompiledEnvironment, CompileError
from hub.environments.episodes import Episode, EpisodeError
from hub.harnesses.base import HarnessError, Services
from hub.models import Case, EnvironmentVersion
from hub.protocols.calls import CallKey, ModelError
from hub.protocols.cases import CaseData
from hub.scorers.base import ScoringFailed
from hub.selectors import compile_version, may_see_content
from hub.teams.visibility import sees_team
from runs.models import EpisodeSession, Response
from runs.rollouts.errors import EnvironmentFailed, RolloutError, RolloutFailed
from runs.rollouts.roles import TRAINER, RecordedCall, RecordingNotFound, RoleModels, list_role_endpoints
from runs.rollouts.snapshots import remove_rollout_snapshots, rollout_folder
from runs.selectors import reason_without_target
from sandbox.client.settings import get_pool_options
from sandbox.client.shared_pools import get_shared_pool
from sandbox.errors import SandboxUnavailable

T = TypeVar("T")
_NEVER_REPLIES = {"no_recording", "configuration", "too_long"}  # errors of role models that repetition cannot cure
_MAX_TURNS = 100  # limit of every episode, besides that of its harness


@dataclass(frozen=True, slots=True)
class SessionEnvironment:
    """Compiled environment and case of a session, which never change."""

    compiled: CompiledEnvironment
    case: CaseData


def advance(session: EpisodeSession, act: Callable[[Episode], Awaitable[T]]) -> T:
    """Call *act* with the session's episode. Set the episode's new state and calls on the session without saving it.

    Raises RolloutError if the trainer can fix the cause, QuotaExceeded if the team of the session may spend no more,
    EnvironmentFailed if the environment is wrong, and RolloutFailed if a later attempt may succeed; the session is then
    unchanged.
    """
    try:
        result, state, calls = _run(session, act)
    except (EpisodeError, RecordingNotFound) as error:
        raise RolloutError(storable(str(error))) from None
    except (HarnessError, ScoringFailed, CaseError, ModelError, SandboxUnavailable) as error:
        # A batch, a list of cases and a drawn case leave the trainer without another hint at the case.
        # Code of the bundle decides what some of these errors say.
        message = storable(f"Case {session.case.external_id!r}: {_shown_message(session, error)}")
        if isinstance(error, CaseError) or (isinstance(error, HarnessError | ScoringFailed) and not error.temporary):
            raise EnvironmentFailed(message) from None
        if isinstance(error, ModelError) and error.kind in _NEVER_REPLIES:
            raise RolloutError(f"{message} Start another episode with other models in `roles`.") from None
        raise RolloutFailed(message) from None
    session.state = storable(state)
    session.calls = [*session.calls, *storable(calls)]
    return result


def _shown_message(
    session: EpisodeSession, error: HarnessError | ScoringFailed | CaseError | ModelError | SandboxUnavailable
) -> str:
    """Return the message of *error*, without what the user of *session* may not read as the reason of a score."""
    if may_see_content(session.user, session.case.version.environment):
        return str(error)
    if isinstance(error, ScoringFailed | ModelError):
        kind = error.kind
    else:
        kind = "sandbox" if isinstance(error, SandboxUnavailable) else "environment"
    return reason_without_target(str(error), Response.Status.ERRORED, kind)


def _run(
    session: EpisodeSession, act: Callable[[Episode], Awaitable[T]]
) -> tuple[T, dict[str, object], list[RecordedCall]]:
    """Return what *act* returned, with the new state and the calls of role models."""
    fixed = _session_environment(session)
    pool = fixed.compiled.pool(get_shared_pool(get_pool_options())) if fixed.compiled.needs_sandbox else None
    roles, payer = fixed.compiled.roles, session.team
    if any(session.roles.get(role) for role in roles) and not sees_team(session.user, session.team_id):
        raise RolloutError(
            f"You have left the team {payer}, which pays for the role models of this episode. Start another one.",
            "roles",
        )
    endpoints = list_role_endpoints(session, roles)
    key = CallKey(
        purpose="answer",
        environment=fixed.compiled.slug,
        case=fixed.case.id,
        attempt=session.attempt,
        model=TRAINER,
    )

    async def run_episode() -> tuple[T, dict[str, object], list[RecordedCall]]:
        models = RoleModels(session, fixed.compiled, endpoints, payer)
        episode = Episode(
            fixed.compiled,
            fixed.case,
            key=key,
            seed=session.seed,
            services=Services(
                call_model=models,
                pool=pool,
                models_per_role=models.models_per_role,
                process_bound=False,
                snapshots=rollout_folder(session.pk),
            ),
            max_turns=_MAX_TURNS,
        )
        episode.restore(session.state)
        try:
            result = await act(episode)
        except Exception:
            if models.exceeded is not None:  # scorers and harnesses report a call that failed in their own words
                raise models.exceeded from None
            raise
        finally:
            await models.aclose()
        if models.exceeded is not None:
            raise models.exceeded
        return result, dict(episode.state), models.calls

    return asyncio.run(run_episode())


def close_episode(session: EpisodeSession) -> None:
    """Free what the session's episode has opened, and remove its snapshots."""
    if session.done or not session.state:
        return
    with suppress(EnvironmentFailed):  # a box that cannot be closed ends by itself
        environment = compile_for_rollout(session.case.version)
        asyncio.run(environment.harness.close(session.state.get("harness")))
    remove_rollout_snapshots(session)


def _session_environment(session: EpisodeSession) -> SessionEnvironment:
    version = session.case.version
    return SessionEnvironment(compile_for_rollout(version), _case_data(session.case_id, version.digest))


def compile_for_rollout(version: EnvironmentVersion) -> CompiledEnvironment:
    """Return the compiled environment of *version*. Raises EnvironmentFailed, ArchivesUnreachable."""
    try:
        return compile_version(version)
    except ArchivesUnreachable:
        raise
    except ArchiveUnavailable as error:
        raise EnvironmentFailed(str(error)) from None
    except (CompileError, ValidationError):
        raise EnvironmentFailed(f"The stored manifest of {version} is not valid. Import a new version.") from None


@lru_cache(maxsize=128)
def _case_data(case_id: int, version_digest: str) -> CaseData:
    """Return a case of the version with this digest, which never changes. It is cached, so that steps need not read it.

    The digest is a part of the key because ids of cases that were removed may be used again.
    """
    return CaseData.from_json(Case.objects.values_list("data", flat=True).get(pk=case_id))
