"""Configs from the web and REST: they name registered models and environments of the hub, and nothing else.

A registered name stands wherever a config on the command line describes a model: in `models`, `roles`, and in the
`model` of a stage. Paths, endpoints, providers, `${...}` and the names of variables are refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from pydantic import ValidationError

from hub.common import wording
from hub.common.documents import yaml_source
from hub.common.problems import Problem
from hub.selectors import visible_environments
from runs.config.parsing import ConfigError, Note, ParsedConfig, read_config
from runs.config.resolve import SelectedEnvironment, resolve_config
from runs.config.schema import RunConfig
from runs.config_source import ConfigSource
from runs.models import ModelEndpoint
from runs.providers.base import ModelSpec
from runs.providers.registry import PROVIDERS
from runs.stages import stages

MAX_CONFIG = 1024 * 1024  # bytes
_WHERE = "a registered model's name, as /models/ lists them"


@dataclass(frozen=True, slots=True)
class ResolvedConfig:
    """A config that can be run, with what it names."""

    config: RunConfig
    environments: list[SelectedEnvironment]


def resolve_registered_text(text: str, *, user: User) -> ResolvedConfig:
    """Read a config as YAML, of which JSON is a part. Raises ConfigError with every problem."""
    try:
        document = yaml_source.parse(text)
    except yaml_source.YamlError as error:
        raise ConfigError([Problem(error.message, line=error.line)]) from None
    if not isinstance(document.value, dict):
        raise ConfigError([Problem("a config is a mapping with name, environments and models", line=1)])
    return resolve_registered(document.value, user=user, document=document)


def resolve_registered(
    value: Mapping[str, Any], *, user: User, document: yaml_source.YamlText | None = None
) -> ResolvedConfig:
    """Check a config as plain data. Raises ConfigError with every problem."""
    parsed = ParsedConfig(ConfigSource(key_variables=frozenset(settings.API_KEY_VARIABLES)), document)
    refused = _check_environments(value.get("environments"), user, parsed.note)
    sandbox = value.get("sandbox")
    for key in sandbox if isinstance(sandbox, dict) else ():
        if key in ("backend", "accept"):
            parsed.note(("sandbox", key), "for the command line; on a site the operator's settings decide, remove it")
    read_config(_with_models(value, user, parsed.note), parsed)
    for i in refused:
        parsed.environments.pop(i, None)
    return ResolvedConfig(*resolve_config(parsed))


def _stand_in(path: yaml_source.Path) -> dict[str, Any]:
    """For a model that is wrong, and reported as such: the rest of the config is still looked through."""
    return {"name": yaml_source.dotted(path), "provider": "openai", "model": "-"}


def _check_environments(value: Any, user: User, note: Note) -> set[int]:
    """Every environment named must be one that *user* may see; paths are for the command line. The places of others."""
    refused: set[int] = set()
    if not isinstance(value, list):
        return refused  # `read` says what is wrong with it
    visible = set(visible_environments(user).values_list("slug", flat=True))
    for i, ref in enumerate(value):
        if isinstance(ref, dict) and "path" in ref:
            note(("environments", i, "path"), "bundles by path are for the command line; upload it, and name its slug")
            refused.add(i)
            continue
        named = ref.get("environment") if isinstance(ref, dict) else ref
        if isinstance(named, str) and named.partition("@")[0] not in visible:
            slug = named.partition("@")[0]
            note(
                ("environments", i),
                f"there is no environment {slug!r}; {wording.suggest(slug, sorted(visible)) or 'none is there yet'}",
            )
            refused.add(i)
    return refused


def _with_models(value: Mapping[str, Any], user: User, note: Note) -> dict[str, Any]:
    """The config with every registered name replaced by the model's description."""
    key_variables = frozenset(settings.API_KEY_VARIABLES)
    endpoints = {endpoint.name: endpoint for endpoint in ModelEndpoint.objects.filter(enabled=True)}

    def described(named: Any, path: yaml_source.Path) -> Any:
        if not isinstance(named, str):
            note(path, f"give {_WHERE}; endpoints and keys are the registry's")
            return _stand_in(path)
        endpoint = endpoints.get(named)
        if endpoint is None:
            known = wording.suggest(named, sorted(endpoints)) or "none is yet; they are registered in the admin"
            note(path, f"no model is registered as {named!r}; {known}")
            return _stand_in(path)
        if endpoint.api_key_env and settings.ENV.lookup(endpoint.api_key_env) is None:
            variable = endpoint.api_key_env if user.is_staff else "its variable"
            note(path, f"the key of {named!r} is not set on this server; an operator sets {variable}")
        spec = endpoint_spec(endpoint)
        if not _sound(spec, key_variables):
            note(path, f"{named!r} is registered wrongly; a member of staff mends it in the admin")
            return _stand_in(path)
        return spec

    filled = dict(value)
    models = value.get("models")
    if isinstance(models, list):
        filled["models"] = [described(named, ("models", i)) for i, named in enumerate(models)]
    elif models is not None:
        note(("models",), f"a list, each {_WHERE}: [small]")
        filled["models"] = [_stand_in(("models",))]
    roles = value.get("roles")
    if isinstance(roles, dict):
        filled["roles"] = {
            role: [described(item, ("roles", role, i)) for i, item in enumerate(named)]
            if isinstance(named, list)
            else [described(named, ("roles", role))]
            for role, named in roles.items()
        }
    for stage in stages():
        part = value.get(stage.key)
        if isinstance(part, dict) and "model" in part and "model" in stage.Config.model_fields:
            filled[stage.key] = {**part, "model": described(part["model"], (stage.key, "model"))}
    return filled


def _sound(spec: dict[str, Any], key_variables: frozenset[str]) -> bool:
    """Whether a run could use it. What exactly is wrong would tell its address, which is not everybody's to know."""
    try:
        model = ModelSpec.model_validate(spec)
        provider = PROVIDERS[model.provider]
        options = provider.Options.model_validate(model.options)
    except (ValidationError, KeyError):
        return False
    return not list(provider.problems(options, ConfigSource(key_variables=key_variables)))


def endpoint_spec(endpoint: ModelEndpoint) -> dict[str, Any]:
    """A registered model as a config describes it."""
    spec: dict[str, Any] = {
        "name": endpoint.name,
        "provider": endpoint.provider,
        "model": endpoint.model,
        "family": endpoint.family,
        "parameters": endpoint.parameters,
    }
    if endpoint.base_url:
        spec["base_url"] = endpoint.base_url
    if endpoint.api_key_env:
        spec["api_key_env"] = endpoint.api_key_env
    if endpoint.price_input is not None or endpoint.price_output is not None:
        price = {"input": endpoint.price_input or 0.0, "output": endpoint.price_output or 0.0}
        if endpoint.price_cached_input is not None:
            price["cached_input"] = endpoint.price_cached_input
        spec["price"] = price
    return spec
