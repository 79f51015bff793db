"""What a harness is: it turns a case into messages and tools, and a model's messages into what comes next."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from hub.protocols.calls import JSON, Ask, CallKey, Message, Tool
from hub.protocols.cases import CaseData
from sandbox.pool import Pool


class HarnessOptions(BaseModel):
    """The keys of `harness:` in environment.yaml beside `type`; unknown ones are refused.

    Values may be templates: they are rendered for a case first and validated after, so types are those of the result.
    """

    model_config = ConfigDict(extra="forbid")


# An alias, because `type` is an attribute of the classes below.
OptionsClass = type[HarnessOptions]


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What an episode may use. `pool` and `ask` are None where nothing in the environment needs them.

    `seats` says how many models fill each role, so that a rubric can ask every judge. With `isolated`, `trust: auto` of
    a rule means `isolated`: a hostile answer can bring its fallback about, so nothing that trains or certifies uses it.
    `took` is handed the milliseconds that each call of the environment's own code took, without the wait for a sandbox.
    """

    ask: Ask | None = None
    pool: Pool | None = None
    seats: Mapping[str, int] = field(default_factory=dict)
    isolated: bool = True
    took: Callable[[float], None] = field(default=lambda milliseconds: None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """One case being played once: all that a harness may look at. `files` are the bundle's code files by path."""

    case: CaseData
    key: CallKey
    seed: int
    options: Any  # the harness's own Options, rendered for the case
    files: Mapping[str, bytes]
    services: Services


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a harness answers to reset and step: its new JSON state and the *new* messages only.

    `reward` is the harness's own and feeds the rule `reward`; None where it has none. `truncated` marks an episode
    that a limit of the harness ended. `info` goes to the transcript's reader, never to a score.
    """

    state: JSON = None
    messages: list[Message] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)
    done: bool = False
    reward: float | None = None
    truncated: bool = False
    info: dict[str, JSON] = field(default_factory=dict)


class HarnessError(Exception):
    """The environment's own code or files failed: the response is errored (kind `environment`), not wrong."""


class Harness(ABC):
    """A way to play a case. Stateless: what lasts from turn to turn is the JSON state that it returns."""

    type: ClassVar[str]
    summary: ClassVar[str]
    Options: ClassVar[OptionsClass]
    needs_sandbox: ClassVar[bool] = False
    offers_tools: ClassVar[bool] = False

    @abstractmethod
    async def reset(self, play: Play) -> Turn:
        """The first messages, tools and state. Raises HarnessError; ModelError where a role's model does not answer."""

    @abstractmethod
    async def step(self, play: Play, state: JSON, message: Message) -> Turn:
        """What follows the assistant's *message*. Raises as `reset` does; a mistake of the model never raises."""

    def code_paths(self, options: Mapping[str, Any]) -> list[str]:
        """The bundle files that the raw *options* name as code; their content is part of a case's input digest."""
        return []

    def problems(self, options: Mapping[str, Any], files: Mapping[str, bytes]) -> list[tuple[str, str]]:
        """What can be told to be wrong with the code that the raw *options* name, without running it.

        Pairs of a key path below `harness` and a sentence. Only asked where every one of `code_paths` is in *files*.
        """
        return []

    def uses_sandbox(self, options: Mapping[str, Any]) -> bool:
        """Whether playing with the raw *options* runs code."""
        return self.needs_sandbox

    def world(self, state: JSON) -> JSON:
        """What scorers read as the state: the environment's own, without the harness's bookkeeping."""
        return state

    def transcript(self, options: Any, messages: list[Message]) -> list[Message]:
        """The transcript as scorers read it: calls in the wire's shape, tools under the names that the bundle gave."""
        return messages

    def dialogue(self, options: Any, messages: list[Message]) -> list[Message]:
        """*messages*, from any turn on, without those that the harness itself wrote in the user's name."""
        return messages

    def static_tools(self, play: Play) -> list[Tool] | None:
        """The tools that every request of an episode offers, without running any code; None if only playing tells.

        Raises HarnessError.
        """
        return []

    def roles(self, options: Mapping[str, Any]) -> list[str]:
        """The roles of models (`user`) that playing needs."""
        return []
