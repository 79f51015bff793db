"""Scoring of whole conversations, without the round trips of an episode."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from hub.environments.episodes import Episode, Step
from hub.models import Case, Team
from hub.protocols.messages import JSON, Message, get_comparable_content
from hub.teams.quotas import QuotaExceeded
from runs.rollouts.creation import RolloutOptions, check_case, check_trainable, choose_paying_team, new_session
from runs.rollouts.errors import EnvironmentFailed, RolloutError, RolloutFailed
from runs.rollouts.messages import validate_message
from runs.rollouts.rebuilding import advance
from runs.rollouts.steps import score_json

MAX_ITEMS = 256
_MAX_MESSAGES = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation of one case, with or without the opening messages of its episode.

    Only its assistant messages are used; the environment creates all others again. Those of the opening messages are
    examples in the prompt, and not used either.
    """

    case: str
    messages: object
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationScore:
    """Result of one conversation. With `error`, there is no reward; `code` is a word for programs."""

    case: str
    reward: float | None = None
    done: bool = False
    truncated: bool = False
    stop: str | None = None
    score: dict[str, JSON] | None = None
    code: str = ""
    error: str = ""


def score_conversations(options: RolloutOptions, items: Sequence[Conversation]) -> list[ConversationScore]:
    """Return a result for each of *items*, in their order. Nothing is stored.

    An episode is reset and stepped with each assistant message. If it is not over then, it is scored as truncated.
    Mistakes in one item and failures of the sandbox affect only the result of that item.

    Raises RolloutError if the environment or the roles are wrong, TeamError, and QuotaExceeded if the team that pays
    for the roles may spend nothing. If its quota is used up in between, the items that need it have that error.
    """
    check_trainable(options)
    payer = choose_paying_team(options)
    named = options.version.cases.filter(external_id__in={item.case for item in items})
    cases = {case.external_id: case for case in named}
    return [_score(options, cases.get(item.case), item, payer) for item in items]


def _score(options: RolloutOptions, case: Case | None, item: Conversation, payer: Team | None) -> ConversationScore:
    try:
        if case is None:
            raise RolloutError(f"{options.version} has no case {item.case!r}.")
        check_case(case)
        messages = _validate_messages(item.messages)
        session = new_session(options, case, payer, item.attempt)
        step = advance(session, partial(_run_conversation, messages=messages))
    except RolloutFailed as error:
        return ConversationScore(case=item.case, code="unavailable", error=str(error))
    except (QuotaExceeded, EnvironmentFailed) as error:
        return ConversationScore(case=item.case, code=error.code, error=error.message)
    except RolloutError as error:
        return ConversationScore(case=item.case, code="invalid", error=str(error))
    return ConversationScore(
        case=item.case,
        reward=step.reward,
        done=step.done,
        truncated=step.truncated,
        stop=session.state.get("stop"),
        score=score_json(step),
    )


def _validate_messages(messages: object) -> list[Message]:
    if not isinstance(messages, list) or not messages:
        raise RolloutError("`messages` must be a list of messages with at least one of the assistant.")
    if len(messages) > _MAX_MESSAGES:
        raise RolloutError(f"`messages` has {len(messages):,} messages; at most {_MAX_MESSAGES} are allowed.")
    valid = [
        cast(Message, message)
        if isinstance(message, dict) and message.get("role") != "assistant"
        else validate_message(message)
        for message in messages
    ]
    if not _said(valid):
        raise RolloutError("`messages` has no message with the role assistant.")
    return valid


def _said(messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if message.get("role") == "assistant"]


def _without_opening(messages: Sequence[Message], opening: Sequence[Message]) -> Sequence[Message]:
    """Return *messages* without the *opening* messages of the episode, if they begin with these."""
    begin = [get_comparable_content(message) for message in messages[: len(opening)]]
    repeated = begin == [get_comparable_content(message) for message in opening]
    return messages[len(opening) :] if repeated else messages


async def _run_conversation(episode: Episode, messages: Sequence[Message]) -> Step:
    step: Step | None = None
    try:
        await episode.reset()
        said = _said(_without_opening(messages, episode.messages))
        if not said:
            raise RolloutError("`messages` has no message with the role assistant after the prompt.")
        for number, message in enumerate(said):
            if episode.done:
                raise RolloutError(f"The episode ended after {number} of {len(said)} assistant messages.")
            step = await episode.step(message)
        return step if step is not None and step.done else await episode.stop("other")
    except BaseException:
        await episode.close()
        raise
