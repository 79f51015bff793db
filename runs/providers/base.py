"""Interface of providers: a provider obtains replies of one model. It knows nothing of runs, caches or prices."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Generic, TypeVar

from pydantic import AfterValidator, ConfigDict, Field

from hub.common import digests
from hub.common.documents.validation import StrictNumbers
from hub.common.problems import Problem
from hub.protocols.calls import CallKey, Reply, Usage
from hub.protocols.messages import JSON, Message, Tool
from runs.config_source import ConfigSource


class Price(StrictNumbers):
    """Price in USD per million tokens. `cached_input` defaults to `input`. Reasoning tokens are output tokens."""

    model_config = ConfigDict(extra="forbid")
    input: Annotated[float, Field(ge=0)] = 0.0
    cached_input: Annotated[float, Field(ge=0)] | None = None
    output: Annotated[float, Field(ge=0)] = 0.0

    @property
    def free(self) -> bool:
        """Return whether every token is free, so that the cost is known without token counts."""
        return not (self.input or self.cached_input or self.output)

    def cost(self, usage: Usage) -> float:
        """Return the cost of *usage* in USD."""
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = usage.input - usage.cached_input
        return (fresh * self.input + usage.cached_input * cached + usage.output * self.output) / 1_000_000


def one_line(value: str) -> str:
    """Return the label *value*. Raises ValueError if it is not visible text on one line."""
    if not value.strip() or not value.isprintable():
        raise ValueError("must be visible text on one line")
    return value


def _without_hash(value: str) -> str:
    if "#" in value:  # `label#attempt` names a response
        raise ValueError("must not contain a `#`")
    return value


class ModelSpec(StrictNumbers):
    """Model as described in a config: the keys that all providers share. Other keys are options of its provider."""

    model_config = ConfigDict(extra="allow")
    name: Annotated[str, Field(min_length=1, max_length=120), AfterValidator(one_line), AfterValidator(_without_hash)]
    provider: str
    family: str = ""  # verdicts of a judge model on models of its own family are marked (self-preference)
    parameters: dict[str, JSON] = Field(default_factory=dict)
    price: Price | None = None
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    tokens_per_minute: Annotated[int, Field(ge=1)] | None = None

    @property
    def options(self) -> dict[str, JSON]:
        return dict(self.__pydantic_extra__ or {})


class ProviderOptions(StrictNumbers):
    """Keys of a model that belong to its provider. Unknown keys are rejected.

    If the provider needs a key, the option `api_key_env` is the name of the variable that holds it.
    """

    model_config = ConfigDict(extra="forbid")


DEFAULT_RETRIES = 5  # of one failed call
OptionsT = TypeVar("OptionsT", bound=ProviderOptions)
OptionsClass = type[ProviderOptions]  # an alias, because `type` is an attribute of Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call of a model.

    parameters: those of the model, overridden by those of the caller. seed: of the attempt, 63 bits. timeout_s: time
    limit of each try, if it is shorter than the one in the options of the provider.
    """

    key: CallKey
    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    parameters: Mapping[str, JSON]
    seed: int = 0
    timeout_s: float | None = None


ObserveResponse = Callable[[int, Mapping[str, str]], None]  # status, headers
WaitForRetry = Callable[[], Awaitable[None]]


def _ignore_response(status: int, headers: Mapping[str, str]) -> None:
    """Do nothing."""


async def _retry_at_once() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderContext:
    """Settings of a run for its providers.

    retries: of one failed call. only_environment: the environment of the run if it has only one; recordings may leave
    its name out. observe: to be called with the status and the headers of each response, retried ones included.
    wait_for_retry: to be awaited before a failed request is sent again.
    """

    retries: int = DEFAULT_RETRIES
    api_key: str | None = None
    only_environment: str = ""
    observe: ObserveResponse = _ignore_response
    wait_for_retry: WaitForRetry = _retry_at_once


class Provider(ABC, Generic[OptionsT]):
    """Connection to one model. Created in the event loop that uses it; call `aclose` when done."""

    type: ClassVar[str]
    summary: ClassVar[str]
    Options: ClassVar[OptionsClass]
    reserved: ClassVar[Mapping[str, str]] = {}  # parameters that a config must not send -> what to do instead
    live: ClassVar[bool] = True  # False for recordings, whose replies have neither cost nor latency

    def __init__(self, spec: ModelSpec, options: OptionsT, context: ProviderContext) -> None:
        self.spec = spec
        self.options = options
        self.context = context

    @classmethod
    def problems(cls, options: OptionsT, source: ConfigSource) -> Iterable[Problem]:
        """Yield what is wrong with *options* besides their types, such as a missing file.

        *options* lacks the keys whose type is wrong; `model_fields_set` has the others.
        """
        return ()

    @classmethod
    def unanswered(cls, slug: str) -> str:
        """Return why models of this provider cannot answer the environment *slug*, as a clause; "" if they can."""
        return ""

    @classmethod
    def describe_unused(
        cls, options: OptionsT, slug: str, case_ids: Callable[[], Iterable[str]], *, alone: bool
    ) -> str:
        """Return a sentence about recorded replies to cases that the environment *slug* does not have; "" without any.

        case_ids: returns the ids of all cases of the environment. alone: the run has no other environment.
        """
        return ""

    @classmethod
    def resolved(cls, options: OptionsT, source: ConfigSource) -> dict[str, JSON]:
        """Return the options that are relative to the folder of the config as absolute paths."""
        return {}

    @classmethod
    @abstractmethod
    def identity(cls, options: OptionsT) -> dict[str, JSON]:
        """Return all *options* that determine a reply, without credentials and time limits."""

    @classmethod
    def fingerprint(cls, spec: ModelSpec, options: OptionsT) -> str:
        """Return the SHA-256 of everything that determines the replies of this model. Its label does not."""
        return digests.digest({"provider": cls.type, "identity": cls.identity(options), "parameters": spec.parameters})

    @abstractmethod
    async def complete(self, request: ModelRequest) -> Reply:
        """Return the reply, after retries if needed. Raises ModelError. The caller sets `cost_usd` and `cached`."""

    async def aclose(self) -> None:
        """Close all connections."""
