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
from dataclasses import asdict, dataclass, field
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
    request = digest({"message": message})
    answer = _repeated(session, request, turn)
    if answer is None:
        extra: dict[str, object] = {"usage": [*session.usage, asdict(usage) if usage else None]}
        if tokens is not None:
            extra["tokens"] = append_tokens(session.tokens, session.revision, tokens)
        answer = _execute_turn(session, partial(_step, message=message), request, turn, extra, wait_s)
    return answer


def finish_rollout(
    *, session: EpisodeSession, reason: FinishReason, turn: int | None = None, wait_s: float | None = None
) -> StepAnswer:
    """End the episode because the trainer reached a limit, and score it as truncated.

    If the latest request was the same finish, return its stored answer. *wait_s* is as in `step_rollout`.

    Raises RolloutError, RolloutConflict, EnvironmentFailed and RolloutFailed; the stored episode is then unchanged.
    """
    request = digest({"finish": reason})
    if turn is None and session.done and session.last_answer and session.last_answer["request"] == request:
        return StepAnswer(**session.last_answer)
    answer = _repeated(session, request, turn)
    if answer is None:
        answer = _execute_turn(session, partial(_stop, reason=reason), request, turn, {}, wait_s)
    return answer


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


def _repeated(session: EpisodeSession, request: str, turn: int | None) -> StepAnswer | None:
    """Return the stored answer if *turn* was the latest one. Raises DifferentMessage if its request was another."""
    if turn is None or session.last_answer is None or session.last_answer["turn"] != turn:
        return None
    if session.last_answer["request"] != request:
        raise DifferentMessage(f"Turn {turn} of this episode was taken with another message or reason.", "turn")
    return StepAnswer(**session.last_answer)


def _execute_turn(
    session: EpisodeSession,
    act: Callable[[Episode], Awaitable[Step]],
    request: str,
    turn: int | None,
    extra: Mapping[str, object],
    wait_s: float | None,
) -> StepAnswer:
    if session.done:
        raise EpisodeEnded("The episode is over. Start a new one.")
    if turn is not None and turn != session.revision:
        raise WrongTurn(turn, session.revision)
    pending = PendingStep(turn=session.revision, request=request)
    execute = partial(_execute, session, act, request=request, turn=turn, extra=extra)
    with ExitStack() as claim:
        try:
            wait = turn is not None and wait_s is None
            claimed = claim.enter_context(claim_step(session, wait=wait, pending=pending))
        except RolloutConflict:
            if wait_s is None or turn is None:
                raise
            if session.pending != pending:
                raise RolloutConflict(_OTHER_REQUEST.format(turn=turn)) from None
            return wait_for_answer(session=session, turn=turn, wait_s=wait_s)
        if claimed and session.expires_at < timezone.now():  # an episode whose step is executed is not idle
            raise EpisodeExpired("The episode has expired. Start a new one.")
        if claimed and wait_s is None:
            return execute()
        if claimed:
            job = partial(_execute_in_background, claim.pop_all(), session, pending, execute)
    if claimed:
        assert wait_s is not None
        return _answer_within(wait_s, get_step_threads().submit(job), pending["turn"])
    repeated = _repeated(session, request, turn)
    if repeated is None:
        raise RolloutConflict(_CONFLICT)
    return repeated


def _answer_within(wait_s: float, future: Future[StepAnswer], turn: int) -> StepAnswer:
    with limited_wait(wait_s) as seconds:
        futures.wait([future], seconds)
        if not future.done():
            raise StepRunning(turn, 0 if seconds == wait_s else _BUSY_RETRY_S)
    return future.result()


def _execute_in_background(
    claim: ExitStack, session: EpisodeSession, pending: PendingStep, execute: Callable[[], StepAnswer]
) -> StepAnswer:
    """Call *execute*, end the *claim*, and store an error for the requests that ask for the answer."""
    try:
        with claim:
            try:
                return execute()
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


def _execute(
    session: EpisodeSession,
    act: Callable[[Episode], Awaitable[Step]],
    *,
    request: str,
    turn: int | None,
    extra: Mapping[str, object],
) -> StepAnswer:
    revision = session.revision
    tools = session.state.get("tools", [])
    step = advance(session, act)
    answer = StepAnswer(
        turn=revision,
        request=request,
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
        **extra,
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
        stored = EpisodeSession.objects.filter(pk=session.pk).first()
        repeated = _repeated(stored, request, turn) if stored else None
        if repeated is None:
            raise RolloutConflict(_CONFLICT)
        return repeated
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
