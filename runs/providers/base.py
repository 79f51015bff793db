"""What a provider is: a way to reach a model. It knows its wire and nothing of runs, caches or prices."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from hub.common import digests
from hub.common.problems import Problem
from hub.protocols.calls import CallKey, Reply, Usage
from hub.protocols.messages import JSON, Message, Tool
from runs.config_source import ConfigSource


class Price(BaseModel):
    """USD per million tokens. `cached_input` defaults to `input`. Reasoning tokens are output tokens."""

    model_config = ConfigDict(extra="forbid")
    input: Annotated[float, Field(ge=0)] = 0.0
    cached_input: Annotated[float, Field(ge=0)] | None = None
    output: Annotated[float, Field(ge=0)] = 0.0

    @property
    def free(self) -> bool:
        """Whether every token costs nothing, so that the cost is known without counting them."""
        return not (self.input or self.cached_input or self.output)

    def cost(self, usage: Usage) -> float:
        """The price of *usage*, in USD."""
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = usage.input - usage.cached_input
        return (fresh * self.input + usage.cached_input * cached + usage.output * self.output) / 1_000_000


def one_line(value: str) -> str:
    """*value*, a label, as it is. Raises ValueError where a report could not show it."""
    if not value.strip() or not value.isprintable():
        raise ValueError("must be visible text on one line")
    return value


def _without_hash(value: str) -> str:
    if "#" in value:  # `label#attempt` names a response
        raise ValueError("must not hold a `#`")
    return value


class ModelSpec(BaseModel):
    """A model as a config names it: the keys every provider shares; the rest are the provider's own Options."""

    model_config = ConfigDict(extra="allow")
    name: Annotated[str, Field(min_length=1, max_length=120), AfterValidator(one_line), AfterValidator(_without_hash)]
    provider: str
    family: str = ""  # models of one family judging each other are marked (self-preference)
    parameters: dict[str, JSON] = Field(default_factory=dict)
    price: Price | None = None

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.__pydantic_extra__ or {})


class ProviderOptions(BaseModel):
    """A provider's own keys of a model; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid")


# An alias, because `type` is an attribute of the classes below.
OptionsClass = type[ProviderOptions]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call. `parameters` are the model's own, with the caller's over them. `seed` is the attempt's, 63 bits.

    `timeout_s` bounds each try, where the caller waits for less time than the provider's own options say.
    """

    key: CallKey
    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    parameters: Mapping[str, JSON]
    seed: int = 0
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderContext:
    """What a run tells its providers: how often to retry, how many calls at once, the secret where one is named."""

    retries: int = 5
    concurrency: int = 16
    api_key: str | None = None
    only_environment: str = ""  # the run's only environment, which recordings may leave out


class Provider(ABC):
    """A connection to one model. Made in the event loop that uses it; `aclose` when done."""

    type: ClassVar[str]
    summary: ClassVar[str]
    Options: ClassVar[OptionsClass]
    reserved: ClassVar[Mapping[str, str]] = {}  # parameters that are not the config's to send -> what to do instead
    live: ClassVar[bool] = True  # asks a model now; False for recordings, whose answers cost and mean no latency

    def __init__(self, spec: ModelSpec, options: Any, context: ProviderContext) -> None:
        self.spec = spec
        self.options = options
        self.context = context

    @classmethod
    def problems(cls, options: Any, source: ConfigSource) -> Iterable[Problem]:
        """What is wrong with *options* beyond their types, such as missing files and unset variables.

        Keys of a wrong type are left out of *options*; `model_fields_set` tells which are there.
        """
        return ()

    @classmethod
    def resolved(cls, options: Any, source: ConfigSource) -> dict[str, JSON]:
        """Options that depend on where the config stands (paths), made absolute; only where `problems` found none."""
        return {}

    @classmethod
    @abstractmethod
    def identity(cls, options: Any) -> dict[str, JSON]:
        """All of *options* that decides an answer; without credentials and time-outs."""

    @classmethod
    def fingerprint(cls, spec: ModelSpec, options: Any) -> str:
        """SHA-256 of all that decides this model's answers, its label aside."""
        return digests.digest({"provider": cls.type, "identity": cls.identity(options), "parameters": spec.parameters})

    @abstractmethod
    async def complete(self, request: ModelRequest) -> Reply:
        """Ask once, retries included. Raises ModelError. `cost_usd` and `cached` are the caller's business."""

    async def aclose(self) -> None:  # noqa: B027 - most providers hold nothing
        """Give connections back."""
