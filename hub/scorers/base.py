"""Base classes of scorers: a scorer applies a rule's options to a submission and returns a verdict with a reason."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Literal, TypeVar

from pydantic import ConfigDict

from hub.common.documents.validation import StrictNumbers
from hub.common.problems import Problem
from hub.harnesses.base import Services
from hub.protocols.calls import CallKey
from hub.protocols.cases import CaseData
from hub.protocols.messages import JSON, Message
from sandbox.verdicts.jobs import CallJob, FunctionJob, ProgramJob
from sandbox.verdicts.results import Outcome, Status


class ScorerOptions(StrictNumbers):
    """Keys of a rule besides type, name, weight, when and required; unknown keys are errors.

    Values may be templates. They are rendered for a case before validation, so the types are those of the result.
    """

    model_config = ConfigDict(extra="forbid")


# An alias, because `type` is an attribute of the classes below.
OptionsClass = type[ScorerOptions]
OptionsT = TypeVar("OptionsT", bound=ScorerOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What is scored: the case, the text of the last answer, and the episode that led to it.

    `text` is the content of the last assistant message, "" if it had none. `messages` is the whole transcript,
    prompts included. `state` is the harness's final JSON state and `reward` its own reward. `stop` says why the episode
    ended: `done`, or a limit's name (`turns`, `time`, `tokens`). `files` are the bundle's code files by path.
    `turns` counts the assistant messages of the model itself; earlier ones are examples in the prompt.
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
    def response_messages(self) -> list[Message]:
        """The transcript from the model's first message on."""
        spoken = [i for i, message in enumerate(self.messages) if message["role"] == "assistant"]
        own = spoken[max(len(spoken) - self.turns, 0) :] if self.turns else []
        return self.messages[own[0] :] if own else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict of a rule: `value` from 0 to 1, or None if the scorer could not decide (the response is unscored).

    `reason` is a sentence for a person. `detail` is JSON for programs. `outcome` is that of the sandbox, if code ran.
    """

    value: float | None
    reason: str
    detail: dict[str, JSON] = field(default_factory=dict)
    outcome: Outcome | None = None

    def __post_init__(self) -> None:
        if self.value is not None and rounded_score(self.value) is None:
            raise ValueError(f"The value of a verdict must be from 0 to 1, or None if undecided, not {self.value!r}.")

    @classmethod
    def of(cls, passed: bool, reason: str, **detail: JSON) -> "Verdict":
        return cls(value=1.0 if passed else 0.0, reason=reason, detail=detail)


ROUNDING = 1e-9  # a sum of parts, such as nine times 1/9, may miss 0 or 1 by less


def rounded_score(score: float) -> float | None:
    """Return *score* if it is from 0 to 1, else None. What differs from 0 or 1 by rounding only becomes 0 or 1."""
    if not -ROUNDING <= score <= 1 + ROUNDING:  # also NaN
        return None
    if score <= ROUNDING:
        return 0.0
    return float(score) if score < 1 - ROUNDING else 1.0


class ScoringFailed(Exception):
    """Failure of the sandbox or of a judge's endpoint during scoring: the response is errored and retried on resume.

    kind: `environment` for failures of the bundle's own code or files. temporary: as for HarnessError.
    """

    def __init__(self, kind: str, message: str, *, temporary: bool = True) -> None:
        super().__init__(message)
        self.kind = kind
        self.temporary = temporary


async def run_job(services: Services, job: FunctionJob | ProgramJob | CallJob) -> Outcome:
    """Run *job* in the sandbox. Raises ScoringFailed (kind `sandbox`) if the sandbox itself failed."""
    if services.pool is None:
        raise ScoringFailed("sandbox", "This environment runs code, and no sandbox is open.")
    outcome = await services.pool.arun(job)
    if outcome.status == Status.INFRA_ERROR:
        raise ScoringFailed("sandbox", outcome.message)
    return outcome


class Scorer(ABC, Generic[OptionsT]):
    """Base class of scorers. Stateless; one instance serves all rules of its type."""

    type: ClassVar[str]
    summary: ClassVar[str]
    Options: ClassVar[OptionsClass]
    needs: ClassVar[Literal["", "sandbox", "model"]] = ""
    harness: ClassVar[str] = ""  # the only harness whose episodes it can score; "" for all

    @abstractmethod
    async def score(self, options: OptionsT, submission: Submission, services: Services) -> Verdict:
        """Score *submission* by *options* (this class's Options, rendered).

        Raises ScoringFailed, and ModelError if a judge model cannot be reached.
        """

    def code_paths(self, options: Mapping[str, object]) -> list[str]:
        """Return the bundle files that the raw *options* name as code; they are part of a case's scoring digest.

        A path that ends in a slash is a folder: all its files are code.
        """
        return []

    def problems(self, options: Mapping[str, object], files: Mapping[str, bytes]) -> list[Problem]:
        """Return mistakes in the code that the raw *options* name, found without running it.

        Their paths are below the rule. Called only if all `code_paths` are in *files*.
        """
        return []

    def case_problems(self, options: OptionsT, files: Mapping[str, bytes]) -> list[Problem]:
        """Return mistakes in the *options* of one case that their types do not show, with paths below the rule."""
        return []

    def shares_process(self, options: Mapping[str, object], files: Mapping[str, bytes]) -> bool:
        """Return whether tests of a rule with the raw *options* run in a process with what the model wrote.

        It can forge their result then (`trust: in_process`). *files* are the bundle's code files by path.
        """
        return False

    def roles(self, options: Mapping[str, object]) -> list[str]:
        """Return the roles of models (`rubric`) that scoring needs."""
        return []
