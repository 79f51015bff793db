"""A run's config: YAML to RunConfig, and the digest of all in it that can change a result. No database, no network.

Problems are collected, each with its key path, line and remedy, and raised together as ConfigError.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from hub import yamltext
from hub.bundles.schema import SLUG, VERSION
from runs.providers.base import ModelSpec
from runs.providers.registry import PROVIDERS
from runs.stages import stage, stages

_REFERENCE = re.compile(rf"^({SLUG})(?:@({VERSION}))?$")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
# Keys of a config whose stage is not part of this installation: refused with the reason rather than ignored.
_KNOWN_STAGES = {
    "judge": "pre-review by a judge model",
    "review": "pairs for human review",
    "tracking": "tracking in MLflow",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: its key path (`models[0].price`), the line in the file where there is one, and a sentence."""

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.path}: {self.message}" if self.path else f"{where}{self.message}"


class ConfigError(ValueError):
    """A config that cannot be run. `problems` holds every mistake found, in the order of the file."""

    def __init__(self, problems: list[Problem], source: str = "config") -> None:
        self.problems = sorted(problems, key=lambda p: (p.line is None, p.line or 0))
        self.source = source
        super().__init__("\n".join(str(problem) for problem in self.problems))


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class EnvironmentRef(_Strict):
    """An environment of the hub (slug or slug@version) or a bundle's path, and which of its cases to play."""

    environment: str | None = None
    path: str | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    sample: Annotated[int, Field(ge=1)] | None = None
    cases: Annotated[list[str], Field(min_length=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"environment": value} if isinstance(value, str) else value

    @field_validator("cases", mode="before")
    @classmethod
    def _case_ids(cls, value: Any) -> Any:
        return [str(item) for item in value] if isinstance(value, list) else value

    @model_validator(mode="after")
    def _one_of(self) -> "EnvironmentRef":
        if (self.environment is None) == (self.path is None):
            raise ValueError("give either `environment` (slug or slug@version) or `path` (a bundle)")
        if self.environment is not None and not _REFERENCE.match(self.environment):
            raise ValueError(f"{self.environment!r} is not slug or slug@version, such as python-functions@1.0.0")
        if sum(item is not None for item in (self.limit, self.sample, self.cases)) > 1:
            raise ValueError("choose cases by one of `limit`, `sample` and `cases`")
        return self

    @property
    def slug(self) -> str:
        return (self.environment or "").partition("@")[0]

    @property
    def version(self) -> str | None:
        return (self.environment or "").partition("@")[2] or None

    @property
    def selection(self) -> dict[str, Any]:
        """{} for all cases, else the one key that chooses."""
        return self.model_dump(include={"limit", "sample", "cases"}, exclude_none=True)


class Limits(_Strict):
    """`case_seconds`: wall time of one episode; `turns`: assistant messages in it; `retries`: of one failed call."""

    case_seconds: Annotated[float, Field(ge=1)] = 300.0
    turns: Annotated[int, Field(ge=1)] = 30
    budget_usd: Annotated[float, Field(gt=0)] | None = None
    retries: Annotated[int, Field(ge=0, le=20)] = 5


class SandboxConfig(_Strict):
    """Which backend runs code, and which isolation tiers the run accepts (docs/sandbox.md)."""

    backend: Literal["auto", "local", "docker", "socket"] = "auto"
    accept: Annotated[list[Literal["A", "B", "C"]], Field(min_length=1)] = ["A", "B"]


class RunConfig(_Strict):
    """A whole config, validated. `stage_configs` holds the parsed part of each stage, by key."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    environments: Annotated[list[EnvironmentRef], Field(min_length=1)]
    models: Annotated[list[ModelSpec], Field(min_length=1)]
    attempts: Annotated[int, Field(ge=1, le=1000)] = 1
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 16
    limits: Limits = Field(default_factory=Limits)
    roles: dict[str, list[ModelSpec]] = Field(default_factory=dict)
    sandbox: SandboxConfig = Field(default_factory=SandboxConfig)
    seed: int = 0
    stage_configs: dict[str, Any] = Field(default_factory=dict, exclude=True)
    base_dir: Path | None = Field(default=None, exclude=True)

    @field_validator("roles", mode="before")
    @classmethod
    def _role_lists(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: item if isinstance(item, list) else [item] for key, item in value.items()}
        return value

    def stored(self) -> dict[str, Any]:
        """The config as JSON, for Run.config; `parse` reads it back."""
        data = self.model_dump(mode="json", exclude_none=True)
        data.update({key: part.model_dump(mode="json", exclude_none=True) for key, part in self.stage_configs.items()})
        return data

    def role_specs(self) -> dict[str, list[ModelSpec]]:
        """Every model that fills a role, those of the stages included, by role and in seat order."""
        specs = dict(self.roles)
        for part in self.stage_configs.values():
            specs.update(part.role_models())
        return specs


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a config came from, and what it may therefore name.

    `lookup(name)` gives an allowed variable's value or None; None as `lookup` forbids `${}` altogether (web and REST).
    """

    name: str = "config"
    base_dir: Path | None = None
    lookup: Callable[[str], str | None] | None = None
    variables: frozenset[str] = field(default_factory=frozenset)
    key_variables: frozenset[str] = field(default_factory=frozenset)


def parse_text(text: str, source: Source, overrides: list[str] | None = None) -> RunConfig:
    """Read YAML *text*. *overrides* are `path.to.key=value` from the command line. Raises ConfigError."""
    try:
        document = yamltext.parse(text)
    except yamltext.YamlError as error:
        raise ConfigError([Problem("", error.message, error.line)], source.name) from None
    if not isinstance(document.value, dict):
        raise ConfigError([Problem("", "a config is a mapping with name, environments and models", 1)], source.name)
    problems: list[Problem] = []
    value = document.value
    for override in overrides or []:
        problem = _override(value, override)
        if problem:
            problems.append(problem)
    try:
        return parse(value, source, document, problems)
    except ConfigError as error:
        error.source = source.name
        raise


def parse(
    value: Mapping[str, Any],
    source: Source,
    document: yamltext.YamlText | None = None,
    problems: list[Problem] | None = None,
) -> RunConfig:
    """Validate a mapping. Raises ConfigError with every problem, those in *problems* included."""
    problems = list(problems or [])

    def note(path: yamltext.Path, message: str) -> None:
        problems.append(Problem(yamltext.dotted(path), message, document.line(path) if document else None))

    filled = _fill(dict(value), (), source, note)
    stage_parts = _stage_parts(filled, note)
    core = {key: item for key, item in filled.items() if key in RunConfig.model_fields}
    for key in filled:
        if key in _KNOWN_STAGES and stage(key) is None:
            note((key,), f"{_KNOWN_STAGES[key]} is not part of this installation; remove the key")
        elif key in ("stage_configs", "base_dir") or (key not in core and stage(key) is None):
            known = [k for k in RunConfig.model_fields if k not in ("stage_configs", "base_dir")]
            note((key,), f"unknown key; known are {', '.join([*known, *(s.key for s in stages())])}")
    config: RunConfig | None = None
    try:
        config = RunConfig.model_validate(core)
    except ValidationError as error:
        for item in error.errors():
            note(_tidy(item["loc"]), _sentence(item))
    if config is not None:
        config.stage_configs = stage_parts
        config.base_dir = source.base_dir
        _check_models(config, source, note)
    if problems or config is None:
        raise ConfigError(problems, source.name)
    return config


def _stage_parts(filled: Mapping[str, Any], note: Callable[[yamltext.Path, str], None]) -> dict[str, Any]:
    parts = {}
    for item in stages():
        if item.key not in filled and not item.implicit:
            continue
        try:
            parts[item.key] = item.Config.model_validate(filled.get(item.key) or {})
        except ValidationError as error:
            for problem in error.errors():
                note((item.key, *_tidy(problem["loc"])), _sentence(problem))
    return parts


def _check_models(config: RunConfig, source: Source, note: Callable[[yamltext.Path, str], None]) -> None:
    """What concerns several models, files beside the config and variables: labels, recordings, keys."""
    seen: dict[str, int] = {}
    for i, spec in enumerate(config.models):
        if spec.name in seen:
            note(
                ("models", i, "name"),
                f"{spec.name!r} is also the name of models[{seen[spec.name]}]; names are labels",
            )
        seen.setdefault(spec.name, i)
    placed: list[tuple[yamltext.Path, ModelSpec]] = [(("models", i), spec) for i, spec in enumerate(config.models)]
    for role, specs in config.roles.items():
        names = [spec.name for spec in specs]
        for i, spec in enumerate(specs):
            placed.append((("roles", role, i), spec))
            if names.index(spec.name) != i:
                note(("roles", role, i, "name"), f"{spec.name!r} fills this role twice")
    for key, part in config.stage_configs.items():
        for specs in part.role_models().values():
            placed.extend(((key, "model"), spec) for spec in specs)
    for path, spec in placed:
        provider = PROVIDERS.get(spec.provider)
        if provider is None:
            note(
                (*path, "provider"),
                f"unknown provider {spec.provider!r}; known are {', '.join(sorted(PROVIDERS))}",
            )
            continue
        try:
            options = provider.Options.model_validate(spec.options)
        except ValidationError as error:
            for item in error.errors():
                note((*path, *_tidy(item["loc"])), _sentence(item))
            continue
        found = list(provider.problems(options, source))
        for key, message in found:
            note((*path, key), message)
        if not found and spec.__pydantic_extra__ is not None:
            spec.__pydantic_extra__.update(provider.resolved(options, source))


def _fill(value: Any, path: yamltext.Path, source: Source, note: Callable[[yamltext.Path, str], None]) -> Any:
    """`${NAME}` and `${NAME:-default}` replaced, at any depth."""
    if isinstance(value, dict):
        return {key: _fill(item, (*path, key), source, note) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, (*path, i), source, note) for i, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    lookup = source.lookup
    if lookup is None:
        note(path, "variables (`${...}`) may be used on the command line only")
        return value

    def one(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if name not in source.variables:
            allowed = ", ".join(sorted(source.variables)) or "none"
            note(path, f"${{{name}}} may not be used; allowed are {allowed} (LLMEVAL_CONFIG_VARIABLES)")
            return ""
        found = lookup(name) or default
        if found is None:
            note(path, f"the variable {name} is not set; export it, or write ${{{name}:-default}}")
            return ""
        return found

    return _VARIABLE.sub(one, value)


def _override(value: dict[str, Any], text: str) -> Problem | None:
    """Apply one `path.to.key=value`, its value read as YAML; list items by number (`models.0.name`)."""
    path, equals, raw = text.partition("=")
    if not equals or not path.strip():
        return Problem(f"--set {text}", "expected path.to.key=value")
    try:
        new = yamltext.parse(raw).value if raw.strip() else ""
    except yamltext.YamlError as error:
        return Problem(f"--set {text}", error.message)
    here: Any = value
    parts = path.strip().split(".")
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        if isinstance(here, list):
            if not part.isdigit() or int(part) >= len(here):
                return Problem(
                    f"--set {text}", f"{'.'.join(parts[:i])} is a list of {len(here)}; {part!r} is not in it"
                )
            if last:
                here[int(part)] = new
            here = here[int(part)]
        elif isinstance(here, dict):
            if last:
                here[part] = new
            else:
                here = here.setdefault(part, {})
        else:
            return Problem(f"--set {text}", f"{'.'.join(parts[:i])} is a single value and has no keys")
    return None


def _tidy(loc: tuple[int | str, ...]) -> yamltext.Path:
    """pydantic's location without the names of validators and union members."""
    return tuple(part for part in loc if isinstance(part, int) or "[" not in part)


def _sentence(error: Any) -> str:
    """pydantic's message in the words of a config's writer."""
    kind = error["type"]
    if kind == "missing":
        return "missing; this key is required"
    if kind == "extra_forbidden":
        return "unknown key; remove it or mend its spelling"
    given = error.get("input")
    shown = f" (found {given!r})" if isinstance(given, str | int | float | bool) else ""
    return str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ").strip() + shown


def models_from_names(value: Any) -> list[str] | None:
    """The names, where a config's `models` is a list of registered names (`models: [small]`); None otherwise."""
    try:
        return TypeAdapter(Annotated[list[str], Field(min_length=1)]).validate_python(value, strict=True)
    except ValidationError:
        return None
