"""Base classes of harnesses: a harness turns a case into messages and tools and answers the model's messages."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Literal, TypeVar

from pydantic import ConfigDict

from hub.common.documents.validation import StrictNumbers
from hub.common.problems import Problem
from hub.protocols.calls import CallKey, CallModel, Reply
from hub.protocols.cases import CaseData
from hub.protocols.messages import JSON, Message, Tool
from sandbox.client.pool import Pool

MAX_STATE_BYTES = 16 * 1024 * 1024  # of the state of a harness, as JSON


class HarnessOptions(StrictNumbers):
    """Keys of `harness:` in environment.yaml besides `type`; unknown keys are errors.

    Values may be templates. They are rendered for a case before validation, so the types are those of the result.
    """

    model_config = ConfigDict(extra="forbid")


# An alias, because `type` is an attribute of the classes below.
OptionsClass = type[HarnessOptions]
OptionsT = TypeVar("OptionsT", bound=HarnessOptions)
OptionsT_co = TypeVar("OptionsT_co", bound=HarnessOptions, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Resources of an episode. `pool` and `call_model` are None if nothing in the environment needs them.

    `models_per_role` is the number of models for each role, so that a rubric can ask every judge model.

    With `isolated`, `trust: auto` of a rule means `isolated`. Training rewards and certificates require it, because a
    hostile answer could otherwise make its tests run in its own process.

    `process_bound`: the episode ends with this process, and so may what it has opened. Other processes continue the
    episodes of trainers, so these are not process-bound.

    `snapshots`: the folder in which the harness may store snapshots of this episode; "" if it may store none. Whoever
    sets it removes the folder.

    `record_call_ms` is called with the milliseconds of each call of the environment's own code, waiting time excluded.
    """

    call_model: CallModel | None = None
    pool: Pool | None = None
    models_per_role: Mapping[str, int] = field(default_factory=dict)
    isolated: bool = True
    process_bound: bool = True
    snapshots: str = ""
    record_call_ms: Callable[[float], None] = field(default=lambda milliseconds: None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeContext(Generic[OptionsT_co]):
    """Everything a harness may read in one episode. `files` are the bundle's code files by path.

    `messages` is the transcript so far, prompts included. `reply`: the reply with the message of this step; None at a
    reset, and if a trainer sent the message. `packages` are those that the manifest names.
    """

    case: CaseData
    key: CallKey
    seed: int
    options: OptionsT_co  # rendered for the case
    files: Mapping[str, bytes]
    services: Services
    messages: Sequence[Message] = ()
    reply: Reply | None = None
    packages: Sequence[str] = ()


Limit = Literal["max_turns", "max_calls", "tool_seconds", "episode_s", "transcript", "invalid_requests"]
"""What can end an episode: an option of the harness, or a limit of all programs as agents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Result of `reset` or `step`: the new JSON state and only the *new* messages.

    `tools` are what the model may call from now on; None if that does not change. `reward` is read by the rule
    `reward`; None if the harness gives none. `truncated` marks an episode that a limit of the harness ended;
    `limit` is its name, which is added to `info`. With `new_conversation` the messages do not continue those
    before; the model reads only them. `parameters` are what the request for the next message asks for besides
    tools, such as `temperature`, as chat completions name it; the run's config has precedence. `info` is shown with
    the transcript and never affects a score.
    """

    state: JSON = None
    messages: list[Message] = field(default_factory=list)
    tools: list[Tool] | None = None
    done: bool = False
    reward: float | None = None
    truncated: bool = False
    limit: Limit | None = None
    new_conversation: bool = False
    parameters: Mapping[str, JSON] = field(default_factory=dict)
    info: dict[str, JSON] = field(default_factory=dict)


class HarnessError(Exception):
    """Failure of the environment's own code or files. The response is errored (kind `environment`), not wrong.

    temporary: the same call may succeed later, for example because a time limit was reached.
    """

    def __init__(self, message: str, *, temporary: bool = False) -> None:
        super().__init__(message)
        self.temporary = temporary


class Harness(ABC, Generic[OptionsT]):
    """Base class of harnesses. Stateless: the JSON state that it returns is all that is kept between turns."""

    type: ClassVar[str]
    summary: ClassVar[str]
    Options: ClassVar[OptionsClass]
    needs_sandbox: ClassVar[bool] = False
    offers_tools: ClassVar[bool] = False

    @abstractmethod
    async def reset(self, context: EpisodeContext[OptionsT]) -> Turn:
        """Return the first messages, tools and state. Raises HarnessError; ModelError if a role's model fails."""

    @abstractmethod
    async def step(self, context: EpisodeContext[OptionsT], state: JSON, message: Message) -> Turn:
        """Return what follows the assistant's *message*. Raises as `reset` does, never for a mistake of the model."""

    async def close(self, state: JSON) -> None:
        """Free what the episode with *state* has opened. Called once it has ended or failed; may be called twice."""
        return

    async def settle(self, context: EpisodeContext[OptionsT], state: JSON) -> JSON:
        """Return the state that is scored: *state*, or a new one if a box that it names was lost."""
        return state

    async def save(self, context: EpisodeContext[OptionsT], state: JSON) -> JSON:
        """Store what *state* names, such as the files of a box. Return a state that another process can continue."""
        return state

    async def reopen(self, context: EpisodeContext[OptionsT], state: JSON) -> JSON:
        """Return the state of an episode whose process has ended, with all that it had opened opened again.

        Raises HarnessError, SandboxUnavailable.
        """
        return state

    def can_reopen(self, options: OptionsT) -> bool:
        """Return whether a run stores the state of its episodes after each turn, and continues from it."""
        return False

    def check_available(
        self, options: Mapping[str, object], files: Mapping[str, bytes], packages: Sequence[str] = ()
    ) -> None:
        """Raise SandboxUnavailable if what episodes with the raw *options* need is missing on this machine.

        *files* are the bundle's code files by path, and *packages* those that its manifest names.
        """
        return

    def code_paths(self, options: Mapping[str, object]) -> list[str]:
        """Return the bundle files that the raw *options* name as code; they are part of a case's input digest.

        A path that ends in a slash is a folder: all its files are code.
        """
        return []

    def problems(
        self, options: Mapping[str, object], files: Mapping[str, bytes], packages: Sequence[str] = ()
    ) -> list[Problem]:
        """Return mistakes in the code that the raw *options* name, found without running it.

        Their paths are below `harness`. Called only if all `code_paths` are in *files*. *packages*: see
        `check_available`.
        """
        return []

    def case_problems(self, options: OptionsT, files: Mapping[str, bytes]) -> list[Problem]:
        """Return mistakes in the *options* of one case that their types do not show, with paths below `harness`."""
        return []

    def uses_sandbox(self, options: Mapping[str, object]) -> bool:
        """Return whether an episode with the raw *options* runs code."""
        return self.needs_sandbox

    def scored_state(self, state: JSON) -> JSON:
        """Return the state that scorers read: the environment's own, without the harness's bookkeeping."""
        return state

    def transcript(self, options: OptionsT, messages: list[Message]) -> list[Message]:
        """Return the transcript for scorers: calls in the API's format, tools under the names that the bundle gave."""
        return messages

    def dialogue(self, options: OptionsT, messages: list[Message]) -> list[Message]:
        """Return *messages*, a transcript or its end, without user messages that the harness itself wrote."""
        return messages

    def static_tools(self, context: EpisodeContext[OptionsT]) -> list[Tool] | None:
        """Return the tools that every request of an episode offers, without running any code. Raises HarnessError.

        None if the tools are known only during an episode.
        """
        return []

    def roles(self, options: Mapping[str, object]) -> list[str]:
        """Return the roles of models (`user`) that an episode needs."""
        return []
