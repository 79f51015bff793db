"""What a scorer is: a rule's options and a submission in, a verdict with its reason out."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from hub.harnesses.base import Services
from hub.protocols.calls import JSON, CallKey, Message
from hub.protocols.cases import CaseData
from sandbox.results import Outcome


class ScorerOptions(BaseModel):
    """The keys of a rule beside type, name, weight, when and required; unknown ones are refused.

    Values may be templates: they are rendered for a case first and validated after, so types are those of the result.
    """

    model_config = ConfigDict(extra="forbid")


# An alias, because `type` is an attribute of the classes below.
OptionsClass = type[ScorerOptions]


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What is scored: the case, the last answer's text, and how it came about.

    `text` is the content of the last assistant message ("" where it had none). `messages` is the whole transcript,
    prompts included. `state` is the harness's final JSON state and `reward` its own reward. `stop` says why the episode
    ended: `done`, or a limit's name (`turns`, `time`, `tokens`). `files` are the bundle's code files by path.
    `turns` counts the model's own assistant messages: earlier ones are examples that stood in the prompt.
    """

    case: CaseData
    key: CallKey
    rule: str
    text: str
    messages: list[Message]
    state: JSON = None
    reward: float | None = None
    stop: str = "done"
    files: Mapping[str, bytes] = field(default_factory=dict)
    turns: int = 1

    @property
    def played(self) -> list[Message]:
        """The transcript from the model's first own message on."""
        spoken = [i for i, message in enumerate(self.messages) if message["role"] == "assistant"]
        own = spoken[max(len(spoken) - self.turns, 0) :] if self.turns else []
        return self.messages[own[0] :] if own else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A rule's judgement: `value` from 0 to 1, or None where the scorer could not decide (the response is unscored).

    `reason` is a sentence for a person. `detail` is JSON for machines. `outcome` is the sandbox's, where code ran.
    """

    value: float | None
    reason: str
    detail: dict[str, JSON] = field(default_factory=dict)
    outcome: Outcome | None = None

    @classmethod
    def of(cls, passed: bool, reason: str, **detail: JSON) -> "Verdict":
        return cls(value=1.0 if passed else 0.0, reason=reason, detail=detail)


class ScoringFailed(Exception):
    """The world failed while scoring (sandbox, judge's endpoint): the response is errored and asked again on resume."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Scorer(ABC):
    """A kind of rule. Stateless; one instance serves every rule of its type."""

    type: ClassVar[str]
    summary: ClassVar[str]
    Options: ClassVar[OptionsClass]
    needs: ClassVar[Literal["", "sandbox", "ask"]] = ""

    @abstractmethod
    async def score(self, options: Any, submission: Submission, services: Services) -> Verdict:
        """Judge *submission* by *options* (this class's Options, rendered).

        Raises ScoringFailed, and ModelError where a model that judges cannot be reached.
        """

    def code_paths(self, options: Mapping[str, Any]) -> list[str]:
        """The bundle files that the raw *options* name as code; their content is part of a case's scoring digest."""
        return []

    def problems(self, options: Mapping[str, Any], files: Mapping[str, bytes]) -> list[str]:
        """What is wrong with the code that the raw *options* name, told without running it.

        Only asked where every one of `code_paths` is in *files*.
        """
        return []

    def roles(self, options: Mapping[str, Any]) -> list[str]:
        """The roles of models (`rubric`) that scoring needs."""
        return []
