"""Schema of a run's config: its keys and their values. runs/config/parsing.py parses a config."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator

from hub.common.documents import validation
from hub.manifest.schema import SLUG, VERSION
from hub.protocols.messages import JSON
from runs.providers.base import ModelSpec, one_line
from runs.stages import StageConfig
from sandbox.connections.backends import BackendChoice

_REFERENCE = re.compile(rf"^({SLUG})(?:@({VERSION}))?$")

ENVIRONMENT_FORMS = (
    "an item is a slug (word-problems, word-problems@1.0.0), or a mapping with `environment` (a slug) or `path` "
    "(a bundle), and with `limit`, `sample` or `cases` to select cases"
)

# Limits of the lists of a config, checked before their items.
MAX_ITEMS = {"environments": 500, "models": 200}
MAX_ROLE_MODELS = 50  # models that fill one role
DEFAULT_CONCURRENCY = 16


class _Strict(validation.StrictNumbers):
    model_config = ConfigDict(extra="forbid")


class EnvironmentRef(_Strict):
    """Environment of the hub (slug or slug@version) or path of a bundle, and the cases of it to evaluate."""

    environment: str | None = None
    path: str | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    sample: Annotated[int, Field(ge=1)] | None = None
    cases: Annotated[list[str], Field(min_length=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if not isinstance(value, str | dict):
            raise ValueError(f"{ENVIRONMENT_FORMS} (found {validation.format_value(value)})")
        return {"environment": value} if isinstance(value, str) else value

    @field_validator("cases", mode="before")
    @classmethod
    def _case_ids(cls, value: object) -> object:
        return [str(item) for item in value] if isinstance(value, list) else value

    @model_validator(mode="after")
    def _one_of(self) -> "EnvironmentRef":
        if (self.environment is None) == (self.path is None):
            raise ValueError("give either `environment` (slug or slug@version) or `path` (a bundle)")
        if self.environment is not None and not _REFERENCE.match(self.environment):
            plain = re.sub(r"[\s_]+", "-", self.slug.strip().lower())
            near = f"; did you mean {plain!r}?" if re.fullmatch(SLUG, plain) else ""
            raise ValueError(f"{self.environment!r} is not slug or slug@version, such as word-problems@1.0.0{near}")
        if sum(item is not None for item in (self.limit, self.sample, self.cases)) > 1:
            raise ValueError("select cases with only one of `limit`, `sample` and `cases`")
        return self

    @property
    def slug(self) -> str:
        return (self.environment or "").partition("@")[0]

    @property
    def version(self) -> str | None:
        return (self.environment or "").partition("@")[2] or None

    @property
    def selection(self) -> dict[str, JSON]:
        """Return the key that selects cases, with its value; {} for all cases."""
        return self.model_dump(include={"limit", "sample", "cases"}, exclude_none=True)


class Limits(_Strict):
    """Limits of a run.

    case_seconds: time of one episode, without waiting and retries. turns: assistant messages in an episode. retries: of
    one failed call. identical_errors: a model is stopped after this many errors of the same kind and text in a row (0:
    never).
    """

    case_seconds: Annotated[float, Field(ge=1)] = 300.0
    turns: Annotated[int, Field(ge=1)] = 30
    budget_usd: Annotated[float, Field(gt=0)] | None = None
    retries: Annotated[int, Field(ge=0, le=20)] = 5
    identical_errors: Annotated[int, Field(ge=0)] = 20


class SandboxConfig(_Strict):
    """Backend that runs code, and the isolation tiers that the run accepts (docs/sandbox.md)."""

    backend: BackendChoice = "auto"
    accept: Annotated[list[Literal["A", "B", "C"]], Field(min_length=1)] = ["A", "B"]


class RunConfig(_Strict):
    """Validated config of a run. `stage_configs` holds the validated config of each stage, by key."""

    name: Annotated[str, Field(min_length=1, max_length=120), AfterValidator(one_line)]
    environments: Annotated[list[EnvironmentRef], Field(min_length=1)]
    models: Annotated[list[ModelSpec], Field(min_length=1)]
    attempts: Annotated[int, Field(ge=1, le=1000)] = 1
    concurrency: Annotated[int, Field(ge=1, le=1024)] = DEFAULT_CONCURRENCY
    limits: Limits = Field(default_factory=Limits)
    roles: dict[str, Annotated[list[ModelSpec], Field(min_length=1)]] = Field(default_factory=dict)
    sandbox: SandboxConfig = Field(default_factory=SandboxConfig)
    seed: int = 0
    team: Annotated[str, Field(max_length=64)] = ""  # of a new run; afterwards Run.team, so it is not stored
    stage_configs: dict[str, StageConfig] = Field(default_factory=dict, exclude=True)
    base_dir: Path | None = Field(default=None, exclude=True)

    @field_validator("roles", mode="before")
    @classmethod
    def _role_lists(cls, value: object) -> object:
        if isinstance(value, dict):
            return {key: item if isinstance(item, list) else [item] for key, item in value.items()}
        return value

    def stored(self) -> dict[str, JSON]:
        """Return the config as JSON, for Run.config; `parse_config` reads it back."""
        data = self.model_dump(mode="json", exclude_none=True, exclude={"team"})
        data.update({key: part.model_dump(mode="json", exclude_none=True) for key, part in self.stage_configs.items()})
        return data

    def role_specs(self) -> dict[str, list[ModelSpec]]:
        """Return the models that fill a role, those of stages included, by role and in the order of the config."""
        specs = dict(self.roles)
        for part in self.stage_configs.values():
            specs.update(part.role_models())
        return specs

    def all_specs(self) -> list[ModelSpec]:
        """Return the models under test, and then those that fill a role."""
        return [*self.models, *(spec for specs in self.role_specs().values() for spec in specs)]
