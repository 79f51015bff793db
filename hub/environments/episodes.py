"""Episodes: reset once and stepped until done, by evaluations and by trainers.

The state of an episode is JSON, so any worker can execute the next step and a transcript can be
replayed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypedDict, cast

from hub.common.storable import storable
from hub.environments.compiled import CompiledEnvironment
from hub.environments.scoring import EpisodeScore, combine, rule_score
from hub.harnesses.base import MAX_STATE_BYTES, EpisodeContext, HarnessError, HarnessOptions, Services, Turn
from hub.protocols.calls import CallKey, Reply
from hub.protocols.cases import CaseData
from hub.protocols.messages import JSON, Message, Tool, text_of
from hub.scorers.base import Submission


class EpisodeState(TypedDict, total=False):
    """JSON state of an episode. `harness` is the state of its harness; empty before the reset."""

    harness: JSON
    messages: list[Message]
    tools: list[Tool]
    parameters: dict[str, JSON]  # of the next request; absent if the harness asks for none
    turns: int
    done: bool
    reward: float | None
    rewards: list[float | None]  # of each step; absent if the harness gave none
    stop: str
    conversation: int  # number of the message that the current conversation begins with
    prompt: int  # number of messages before the model's first; absent in episodes of earlier versions


class EpisodeError(Exception):
    """Wrong use of an episode: a step before its reset, after its end, or without an assistant message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Next input of the model: the *new* messages only, and the tools that it may call from now on.

    `parameters`: what an agent program asks for besides, such as `temperature`.
    """

    messages: list[Message] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)
    parameters: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Result of one assistant message. `reward` is 0.0 and `score` is None until `done`.

    `step_reward`: what a harness of the bundle returned as the reward of this step; None if it returned none.
    `truncated`: a limit ended the episode, not the model. `info` never affects a score.
    """

    observation: Observation
    reward: float = 0.0
    done: bool = False
    truncated: bool = False
    score: EpisodeScore | None = None
    step_reward: float | None = None
    info: dict[str, JSON] = field(default_factory=dict)


class Episode:
    """Episode of one case. Not safe for concurrent tasks. Only `state` needs to be stored between calls."""

    def __init__(
        self,
        environment: CompiledEnvironment,
        case: CaseData,
        *,
        key: CallKey,
        seed: int = 0,
        services: Services,
        max_turns: int | None = None,
    ) -> None:
        """key: key of the answer. max_turns: limit of the run, besides that of the harness. Raises CaseError."""
        self.environment = environment
        self.case = case
        self.services = services
        self.max_turns = max_turns
        self._context = EpisodeContext(
            case=case,
            key=key,
            seed=seed,
            options=environment.harness_options(case),
            files=environment.files,
            services=services,
            packages=environment.manifest.packages,
        )
        self.state: EpisodeState = {}

    def restore(self, state: Mapping[str, object]) -> None:
        """Continue from *state*, the stored JSON state of an episode of the same case. It is empty before the reset."""
        self.state = cast(EpisodeState, dict(state))

    @property
    def messages(self) -> list[Message]:
        """Return the transcript so far, prompts included."""
        return list(self.state.get("messages", []))

    @property
    def conversation(self) -> list[Message]:
        """Return the messages that the model reads next: the transcript, or the part since a new conversation began."""
        return self.messages[self.state.get("conversation", 0) :]

    @property
    def prompt_messages(self) -> int | None:
        """Return the number of messages before the model's first; None if it was not recorded."""
        return self.state.get("prompt")

    @property
    def tools(self) -> list[Tool]:
        return list(self.state.get("tools", []))

    @property
    def parameters(self) -> Mapping[str, JSON]:
        """Return what the harness asks for in the next request, such as `temperature`."""
        return self.state.get("parameters", {})

    @property
    def turns(self) -> int:
        """Return the number of assistant messages so far."""
        return int(self.state.get("turns", 0))

    @property
    def step_rewards(self) -> list[float | None]:
        """Return the reward that the harness gave for each step, None where it gave none; empty if it never did."""
        rewards = self.state.get("rewards", [])
        return [*rewards, *[None] * (self.turns - len(rewards))] if rewards else []

    @property
    def done(self) -> bool:
        return bool(self.state.get("done"))

    async def reset(self) -> Observation:
        """Start the episode. Raises HarnessError."""
        turn = await self.environment.harness.reset(self._context)
        self.state = {
            "harness": None,
            "messages": [],
            "tools": [],
            "turns": 0,
            "done": turn.done,
            "reward": None,
        }
        observation = self._apply_turn(turn)
        self.state["prompt"] = len(self.state["messages"])
        return observation

    async def step(self, message: Message, reply: Reply | None = None) -> Step:
        """Continue with the assistant's *message*. Raises EpisodeError, HarnessError, ScoringFailed.

        reply: the model's reply with the message, if one was requested for this step.
        """
        if not self.state:
            raise EpisodeError("The episode has not been reset.")
        if self.done:
            raise EpisodeError("The episode is over; reset it, or start another.")
        if message.get("role") != "assistant":
            raise EpisodeError(f"A step takes an assistant message; the role was {message.get('role')!r}.")
        harness_state = self.state["harness"]
        context = replace(self._context, messages=self.state["messages"], reply=reply)
        turn = await self.environment.harness.step(context, harness_state, message)
        self.state["messages"].append(message)
        self.state["turns"] += 1
        observation = self._apply_turn(turn)
        info = storable({**turn.info, "limit": turn.limit} if turn.limit else turn.info)
        if turn.reward is not None:
            earlier = self.state.get("rewards", [])
            self.state["rewards"] = [*earlier, *[None] * (self.turns - 1 - len(earlier)), turn.reward]
        if turn.done:
            stop = (turn.limit or "max_turns").removeprefix("max_") if turn.truncated else "done"
        elif self.max_turns is not None and self.turns >= self.max_turns:
            stop = "turns"
        else:
            return Step(observation=observation, step_reward=turn.reward, info=info)
        return replace(await self._finish(observation, stop, info), step_reward=turn.reward)

    async def stop(self, reason: str) -> Step:
        """End the episode for *reason* (`time`, `tokens`) and score it. Raises the same errors as `step`."""
        if not self.state:
            raise EpisodeError("The episode has not been reset.")
        if self.done:
            raise EpisodeError("The episode is already over.")
        return await self._finish(Observation(), reason, {})

    @property
    def can_reopen(self) -> bool:
        """Return whether the episode can be continued from its stored state after its process has ended."""
        return self.environment.harness.can_reopen(self._context.options)

    async def save(self) -> None:
        """Have the harness store what it has opened, if it can, so that another process can continue from the state."""
        if not self.done:
            self.state["harness"] = await self.environment.harness.save(self._current_context, self.state["harness"])

    async def reopen(self) -> None:
        """Continue an episode whose process has ended. Raises HarnessError, SandboxUnavailable."""
        self.state["harness"] = await self.environment.harness.reopen(self._current_context, self.state["harness"])

    @property
    def _current_context(self) -> EpisodeContext[HarnessOptions]:
        return replace(self._context, messages=self.state["messages"])

    async def close(self) -> None:
        """Free what the harness has opened for this episode. The end of an episode does so, too."""
        await self.environment.harness.close(self.state.get("harness"))

    def _apply_turn(self, turn: Turn) -> Observation:
        try:
            size = len(json.dumps(turn.state, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise HarnessError(f"The environment's state is not JSON: {error}.") from None
        if size > MAX_STATE_BYTES:
            after = f"turn {self.turns}" if self.turns else "the reset"
            raise HarnessError(
                f"The state of the harness {self.environment.harness.type} after {after} is {size:,} bytes as JSON; at "
                f"most {MAX_STATE_BYTES:,} are allowed. Keep less in it, for example files in `reads` instead."
            )
        self.state["harness"] = turn.state
        if turn.new_conversation:
            self.state["conversation"] = len(self.state["messages"])
        messages = storable(turn.messages)  # the model reads what the transcript has
        self.state["messages"].extend(messages)
        if turn.tools is not None or turn.new_conversation:
            self.state["tools"] = storable(turn.tools or [])
        self.state.pop("parameters", None)
        parameters = storable(dict(turn.parameters))
        if parameters:
            self.state["parameters"] = parameters
        if turn.reward is not None:
            self.state["reward"] = turn.reward
        return Observation(messages=messages, tools=self.state["tools"], parameters=parameters)

    async def _finish(self, observation: Observation, stop: str, info: dict[str, JSON]) -> Step:
        before = self.state["harness"]
        settled = await self.environment.harness.settle(self._current_context, before)
        self.state["harness"] = settled
        try:
            score = await self._score(stop)
        except BaseException:
            if settled is not before:  # the caller does not know what was opened
                await self.close()
            raise
        self.state["done"] = True
        self.state["stop"] = stop
        await self.close()
        return Step(
            observation=observation,
            reward=score.value or 0.0,
            done=True,
            truncated=stop != "done",
            score=score,
            info=info,
        )

    async def _score(self, stop: str) -> EpisodeScore:
        rules = []
        harness = self.environment.harness
        messages = harness.transcript(self._context.options, self.state["messages"])
        for rendered in self.environment.rendered_rules(self.case):
            spec = rendered.rule.spec
            submission = Submission(
                case=self.case,
                key=self._context.key,
                rule=spec.name,
                text=_last_text(messages) if self.turns else "",
                messages=messages,
                state=harness.scored_state(self.state["harness"]),
                reward=self.state["reward"],
                stop=stop,
                files=self.environment.files,
                turns=self.turns,
            )
            verdict = await rendered.rule.scorer.score(rendered.options, submission, self.services)
            rules.append(rule_score(spec, verdict))
        return combine(rules, self.environment.manifest.scoring.pass_mark)


def _last_text(messages: list[Message]) -> str:
    for message in reversed(messages):
        if message["role"] == "assistant":
            return text_of(message)
    return ""
