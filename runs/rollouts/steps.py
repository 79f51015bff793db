"""Steps of an episode, and its end by the trainer.

Each holds the lease of the episode while it is executed, so a request that is repeated meanwhile waits for the answer.
The answer is stored in the same update as the step, so a later repetition returns it and nothing is executed again.

A step is executed by the thread of its request, or in the background (`wait_s`). The request then returns after
`wait_s` at the latest, and later requests ask for the answer.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent import futures
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Literal

from django.db import connection
from django.utils import timezone

from hub.common import leases
from hub.common.digests import digest
from hub.common.fields import update_row
from hub.common.storable import storable
from hub.environments.episodes import Episode, Step
from hub.protocols.calls import Usage
from hub.protocols.messages import JSON, Message, Tool
from runs.models import EpisodeSession
from runs.rollouts.background import get_step_threads
from runs.rollouts.claims import PendingStep, claim_step, limited_wait, pauses, read_again
from runs.rollouts.errors import (
    CRASHED,
    DifferentMessage,
    EpisodeEnded,
    EpisodeExpired,
    RolloutConflict,
    StepInterrupted,
    StepRunning,
    TurnNotFound,
    WrongTurn,
    error_json,
    restore_error,
)
from runs.rollouts.expiry import next_expiry
from runs.rollouts.messages import validate_message
from runs.rollouts.rebuilding import advance
from runs.rollouts.snapshots import remove_rollout_snapshots
from runs.rollouts.tokens import StepTokens, append_tokens

logger = logging.getLogger(__name__)

FinishReason = Literal["tokens", "time", "other"]
_WAITING_FIELDS = ["revision", "pending", "lease_owner", "lease_until"]
_BUSY_RETRY_S = 1  # until the next request for an answer, if too many requests wait
_OTHER_REQUEST = (
    "Another request is executing turn {turn} of this episode, with another message or reason. Wait for its answer "
    "before the next step."
)
_CONFLICT = "Another request has stepped this episode. Read the episode again before the next step."


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAnswer:
    """Answer to a step or finish, as it is stored.

    `turn` is the turn that it answers, and `request` a digest of the request. `stop` is null until the
    episode is done, and so is `score`: its status, value and rules. `step_reward` is that of the harness for this step.
    """

    turn: int
    request: str
    messages: list[Message]
    tools: list[Tool]
    tools_changed: bool
    reward: float
    done: bool
    truncated: bool
    stop: str | None
    score: dict[str, JSON] | None
    info: dict[str, JSON]
    step_reward: float | None = None
    parameters: dict[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """Request for a step or the end of an episode.

    `act` executes it, and `digest` identifies its content. `turn` is the number of earlier steps; None if the trainer
    does not count them. `changes` are fields of the session that are stored with the step.
    """

    act: Callable[[Episode], Awaitable[Step]]
    digest: str
    turn: int | None
    changes: Mapping[str, object] = field(default_factory=dict)


def step_rollout(
    *,
    session: EpisodeSession,
    message: Message,
    usage: Usage | None = None,
    tokens: StepTokens | None = None,
    turn: int | None = None,
    wait_s: float | None = None,
) -> StepAnswer:
    """Step the episode with *message*.

    *usage* is the number of tokens of the message, and *tokens* are the tokens, if the trainer knows them. *turn* is
    the number of earlier steps. If the latest step had the same turn and message, return its stored answer.
    With *wait_s*, the step is executed in the background, and StepRunning is raised after this many seconds.

    Raises RolloutError, RolloutConflict, EnvironmentFailed and RolloutFailed; the stored episode is then unchanged.
    """
    message = validate_message(message)
    request = _Request(act=partial(_step, message=message), digest=digest({"message": message}), turn=turn)
    answer = _repeated(session, request)
    if answer is None:
        changes: dict[str, object] = {"usage": [*session.usage, asdict(usage) if usage else None]}
        if tokens is not None:
            changes["tokens"] = append_tokens(session.tokens, session.revision, tokens)
        answer = _answer_request(session, replace(request, changes=changes), wait_s)
    return answer


def finish_rollout(
    *, session: EpisodeSession, reason: FinishReason, turn: int | None = None, wait_s: float | None = None
) -> StepAnswer:
    """End the episode because the trainer reached a limit, and score it as truncated.

    If the latest request was the same finish, return its stored answer. *wait_s* is as in `step_rollout`.

    Raises RolloutError, RolloutConflict, EnvironmentFailed and RolloutFailed; the stored episode is then unchanged.
    """
    request = _Request(act=partial(_stop, reason=reason), digest=digest({"finish": reason}), turn=turn)
    if turn is None and session.done and session.last_answer and session.last_answer["request"] == request.digest:
        return StepAnswer(**session.last_answer)
    return _repeated(session, request) or _answer_request(session, request, wait_s)


def wait_for_answer(*, session: EpisodeSession, turn: int, wait_s: float) -> StepAnswer:
    """Return the stored answer to *turn*, the latest one. Wait for its end, for at most *wait_s* seconds.

    Raises StepRunning if it is still executed, StepInterrupted if its process has ended, the error with which it
    failed, and WrongTurn or TurnNotFound if it is not the latest one.
    """
    with limited_wait(wait_s) as seconds:
        deadline = time.monotonic() + seconds
        for pause in pauses():
            answer = session.last_answer
            if answer is not None and answer["turn"] == turn:
                return StepAnswer(**answer)
            if turn < session.revision:
                raise WrongTurn(turn, session.revision)
            pending = session.pending
            if pending is None or pending["turn"] != turn:
                raise TurnNotFound(turn)
            if "error" in pending:
                raise restore_error(pending["error"])
            if not leases.is_held(session):
                owner = session.lease_owner
                _look_again(session)  # the step may have been stored since the row was read
                if session.lease_owner == owner:
                    raise StepInterrupted(turn)
                continue
            if time.monotonic() >= deadline:
                raise StepRunning(turn, 0 if seconds == wait_s else _BUSY_RETRY_S)
            time.sleep(pause)
            _look_again(session)
    raise AssertionError("unreachable code")


def _look_again(session: EpisodeSession) -> None:
    """Read the state of a step again. The answer, which may be large, is read only if the step was stored."""
    revision = session.revision
    read_again(session, _WAITING_FIELDS)
    if session.revision != revision:
        read_again(session, ["revision", "last_answer"])


def _repeated(session: EpisodeSession, request: _Request) -> StepAnswer | None:
    """Return the stored answer if *request* is for the latest turn. Raises DifferentMessage if that was another."""
    if request.turn is None or session.last_answer is None or session.last_answer["turn"] != request.turn:
        return None
    if session.last_answer["request"] != request.digest:
        raise DifferentMessage(f"Turn {request.turn} of this episode was taken with another message or reason.", "turn")
    return StepAnswer(**session.last_answer)


def _answer_request(session: EpisodeSession, request: _Request, wait_s: float | None) -> StepAnswer:
    """Claim the next step and execute *request*; if a concurrent request has executed the same step, return its answer.

    Raises StepRunning if it is executed for longer than *wait_s* seconds.
    """
    if session.done:
        raise EpisodeEnded("The episode is over. Start a new one.")
    if request.turn is not None and request.turn != session.revision:
        raise WrongTurn(request.turn, session.revision)
    pending = PendingStep(turn=session.revision, request=request.digest)
    if wait_s is None:
        with claim_step(session, wait=request.turn is not None, pending=pending) as claimed:
            if claimed:
                _check_expiry(session)
                return _execute(session, request)
        return _stored_by_other(session, request)
    with ExitStack() as claim:
        try:
            claimed = claim.enter_context(claim_step(session, wait=False, pending=pending))
        except RolloutConflict:
            if request.turn is None:
                raise
            if session.pending != pending:
                raise RolloutConflict(_OTHER_REQUEST.format(turn=request.turn)) from None
            return wait_for_answer(session=session, turn=request.turn, wait_s=wait_s)
        if claimed:
            _check_expiry(session)
            job = partial(_execute_in_background, claim.pop_all(), session, request, pending)
            return _answer_within(wait_s, get_step_threads().submit(job), pending["turn"])
    return _stored_by_other(session, request)


def _check_expiry(session: EpisodeSession) -> None:
    """Raise EpisodeExpired. Called with the lease, because an episode whose step is executed is not idle."""
    if session.expires_at < timezone.now():
        raise EpisodeExpired("The episode has expired. Start a new one.")


def _stored_by_other(session: EpisodeSession | None, request: _Request) -> StepAnswer:
    """Return the answer that another request has stored meanwhile. Raises RolloutConflict if it is not the same one."""
    answer = _repeated(session, request) if session is not None else None
    if answer is None:
        raise RolloutConflict(_CONFLICT)
    return answer


def _answer_within(wait_s: float, future: Future[StepAnswer], turn: int) -> StepAnswer:
    with limited_wait(wait_s) as seconds:
        futures.wait([future], seconds)
        if not future.done():
            raise StepRunning(turn, 0 if seconds == wait_s else _BUSY_RETRY_S)
    return future.result()


def _execute_in_background(
    claim: ExitStack, session: EpisodeSession, request: _Request, pending: PendingStep
) -> StepAnswer:
    """Execute *request*, end the *claim*, and store an error for the requests that ask for the answer."""
    try:
        with claim:
            try:
                return _execute(session, request)
            except RolloutConflict:
                raise
            except Exception as error:
                stored = error_json(error)
                if stored["kind"] == CRASHED:
                    logger.exception("a step of episode %s failed", session.pk)
                leases.release(session, session.lease_owner, pending=storable({**pending, "error": stored}))
                raise
    finally:
        connection.close()


def _execute(session: EpisodeSession, request: _Request) -> StepAnswer:
    """Execute *request*, and store the step with its answer. The lease of *session* ends in the same update."""
    revision = session.revision
    tools = session.state.get("tools", [])
    step = advance(session, request.act)
    answer = StepAnswer(
        turn=revision,
        request=request.digest,
        messages=step.observation.messages,
        tools=step.observation.tools,
        tools_changed=session.state["tools"] != tools,
        reward=step.reward,
        done=step.done,
        truncated=step.truncated,
        stop=session.state.get("stop"),
        score=score_json(step),
        info=step.info,
        step_reward=step.step_reward,
        parameters=dict(step.observation.parameters),
    )
    changes = {
        **request.changes,
        "state": session.state,
        "calls": session.calls,
        "last_answer": storable(asdict(answer)),
        "pending": None,
        "done": answer.done,
        "truncated": answer.truncated,
        "reward": answer.reward,
        "score": answer.score,
        "revision": revision + 1,
        "expires_at": next_expiry(),
        "lease_owner": "",
        "lease_until": None,
    }
    if not update_row(session, EpisodeSession.objects.filter(revision=revision), changes):
        return _stored_by_other(EpisodeSession.objects.filter(pk=session.pk).first(), request)
    for name, value in changes.items():
        setattr(session, name, value)
    if answer.done:
        remove_rollout_snapshots(session)
    return answer


def score_json(step: Step) -> dict[str, JSON] | None:
    """Return the score of *step* as it is stored; None if the episode is not done."""
    if step.score is None:
        return None
    rules: list[JSON] = []
    for rule in step.score.rules:
        trust: dict[str, JSON] = {"trust": "in_process"} if rule.detail.get("trust") == "in_process" else {}
        kept = {"rule": rule.rule, "type": rule.type, "value": rule.value, "weight": rule.weight, "reason": rule.reason}
        rules.append({**kept, **trust})
    return {"status": step.score.status, "value": step.score.value, "rules": rules}


async def _step(episode: Episode, message: Message) -> Step:
    return await episode.step(message)


async def _stop(episode: Episode, reason: FinishReason) -> Step:
    return await episode.stop(reason)
