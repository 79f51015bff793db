"""Parses a run's config: YAML and `--set` to RunConfig. Uses neither the database nor the network.

All problems are collected, each with its key path, line and remedy, and raised together as ConfigError.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hub.common import wording
from hub.common.documents import validation, yaml_source
from hub.common.problems import Problem
from runs.config.model_checks import check_models, schema_path
from runs.config.overrides import apply_override
from runs.config.parsed import AddProblem, ConfigError, ParsedConfig
from runs.config.schema import (
    ENVIRONMENT_FORMS,
    MAX_ITEMS,
    MAX_ROLE_MODELS,
    EnvironmentRef,
    Limits,
    RunConfig,
    SandboxConfig,
)
from runs.config.variables import fill_variables
from runs.config_source import ConfigSource
from runs.providers.registry import PROVIDERS
from runs.stages import StageConfig, stage, stages

# Keys of stages that may be missing from an installation. A config with such a key gets an error with the reason.
_KNOWN_STAGES = {
    "judge": "pre-review by a judge model",
    "review": "pairs for human review",
    "tracking": "tracking in MLflow",
}


def parse_config(value: Mapping[str, object], source: ConfigSource) -> RunConfig:
    """Return the config in a mapping. Raises ConfigError with every problem."""
    return read_config(value, ParsedConfig(source)).require_valid()


def read_config_text(
    text: str,
    source: ConfigSource,
    overrides: list[str] | None = None,
    *,
    prepare: Callable[[Mapping[str, object], AddProblem], Mapping[str, object]] = lambda value, add_problem: value,
) -> ParsedConfig:
    """Parse the YAML *text* as far as possible. Raises ConfigError if it is not YAML, or not a mapping.

    prepare: replaces values before the config is validated, such as the names of registered models.
    """
    document, value = parse_document(text, source)
    parsed = ParsedConfig(source, document)
    for override in overrides or []:
        apply_override(value, override, parsed)
    return read_config(prepare(value, parsed.add_problem), parsed)


def parse_document(text: str, source: ConfigSource) -> tuple[yaml_source.YamlText, dict[str, object]]:
    """Return the YAML document and its mapping. Raises ConfigError."""
    try:
        document = yaml_source.parse(text)
    except yaml_source.YamlError as error:
        raise ConfigError([Problem(error.message, line=error.line)], source.name) from None
    if not isinstance(document.value, dict):
        raise ConfigError([Problem("a config is a mapping with name, environments and models", line=1)], source.name)
    return document, document.value


def read_config(value: Mapping[str, object], parsed: ParsedConfig) -> ParsedConfig:
    """Validate the mapping *value*. Stores the result and all problems in *parsed*, and returns it."""
    add_problem = parsed.add_problem
    oversized = list(_oversized(value))
    for path, count, limit in oversized:
        add_problem(path, f"{count:,} items; a config has at most {limit:,} here. Split it into several runs")
    if oversized:
        return parsed
    filled = {key: fill_variables(item, (key,), parsed) for key, item in value.items()}
    stage_configs = _stage_configs(filled, add_problem)
    core = {key: item for key, item in filled.items() if key in RunConfig.model_fields}
    known = [key for key, item in RunConfig.model_fields.items() if not item.exclude]
    for key in filled:
        if key in _KNOWN_STAGES and stage(key) is None:
            add_problem((key,), f"{_KNOWN_STAGES[key]} is not part of this installation; remove the key")
        elif key not in known and stage(key) is None:
            add_problem((key,), _unknown_section(key, known))
    config: RunConfig | None = None
    try:
        config = RunConfig.model_validate(core)
    except ValidationError as error:
        for item in error.errors():
            add_problem(schema_path(item["loc"]), _sentence(item))
    check_models(filled, parsed)
    _keep_valid_parts(filled, parsed)
    if config is not None:
        config.stage_configs = stage_configs
        config.base_dir = parsed.source.base_dir
        if not parsed.problems:
            _make_paths_absolute(config, parsed.source)
    parsed.config = config
    return parsed


def _oversized(value: Mapping[str, object]) -> Iterator[tuple[yaml_source.Path, int, int]]:
    """Yield (path, items, limit) of each list that is too long to be checked."""
    lists: list[tuple[yaml_source.Path, object, int]] = [((key,), value.get(key), MAX_ITEMS[key]) for key in MAX_ITEMS]
    roles = value.get("roles")
    for role, models in roles.items() if isinstance(roles, dict) else ():
        lists.append((("roles", role), models, MAX_ROLE_MODELS))
    for path, items, limit in lists:
        if isinstance(items, list) and len(items) > limit:
            yield path, len(items), limit


def _unknown_section(key: str, known: list[str]) -> str:
    """Return the message for an unknown top-level *key*: the section it belongs to, or similar keys."""
    sections: dict[str, type[BaseModel]] = {"limits": Limits, "sandbox": SandboxConfig}
    sections |= {item.key: item.Config for item in stages()}
    section = next((name for name, model in sections.items() if key in model.model_fields), None)
    if section:
        return f"unknown key; it belongs under `{section}`"
    return wording.unknown_key(key, [*known, *(item.key for item in stages())])


def _sentence(item: ErrorDetails) -> str:
    message = validation.describe_error(item, RunConfig)
    if item["type"] == "missing" and item["loc"][-1] == "provider":
        return f"{message}, one of {', '.join(PROVIDERS)}"
    if item["loc"][0] == "environments":
        *path, key = item["loc"]
        known = validation.keys_at(RunConfig, path)
        if item["type"] == "extra_forbidden" and not wording.find_similar(str(key), known):
            return f"unknown key; {ENVIRONMENT_FORMS}"
        if item["type"] == "list_type":
            return f"{message}; {ENVIRONMENT_FORMS}"
    return message


def _stage_configs(filled: Mapping[str, object], add_problem: AddProblem) -> dict[str, StageConfig]:
    configs = {}
    for item in stages():
        if item.key not in filled and not item.implicit:
            continue
        given = filled.get(item.key)
        try:
            configs[item.key] = item.Config.model_validate({} if given is None else given)
        except ValidationError as error:
            for detail in error.errors():
                add_problem((item.key, *schema_path(detail["loc"])), validation.describe_error(detail, item.Config))
    return configs


def _keep_valid_parts(filled: Mapping[str, object], parsed: ParsedConfig) -> None:
    """Store the environments that are valid, and what is needed to look them up, even if other parts are invalid."""
    environments = filled.get("environments")
    for i, item in enumerate(environments if isinstance(environments, list) else []):
        with suppress(ValidationError):
            parsed.environments[i] = EnvironmentRef.model_validate(item)
    roles, seed = filled.get("roles"), filled.get("seed")
    parsed.roles = frozenset(roles) if isinstance(roles, dict) else frozenset()
    parsed.seed = seed if isinstance(seed, int) else 0


def _make_paths_absolute(config: RunConfig, source: ConfigSource) -> None:
    for spec in config.all_specs():
        provider = PROVIDERS[spec.provider]
        if spec.__pydantic_extra__ is not None:
            spec.__pydantic_extra__.update(provider.resolved(provider.Options.model_validate(spec.options), source))
