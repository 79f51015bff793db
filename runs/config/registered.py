"""Configs from the web and REST. They may name only registered models and environments of the hub.

In the places where a config on the command line describes a model, such a config has the name of a registered model: in
`models`, in `roles`, and in the `model` of a stage. Paths, endpoints, providers, `${...}` and names of variables are
rejected.
"""

from collections.abc import Callable, Mapping

from django.conf import settings
from django.contrib.auth.models import User
from pydantic import ValidationError

from hub.common import wording
from hub.common.documents import yaml_source
from hub.selectors import list_visible_environments
from runs.config.endpoints import endpoint_spec
from runs.config.parsed import AddProblem, ParsedConfig
from runs.config.parsing import parse_document, read_config
from runs.config.resolve import ResolvedConfig, resolve_config, with_team
from runs.config_source import ConfigSource
from runs.models import ModelEndpoint
from runs.providers.base import ModelSpec
from runs.providers.registry import PROVIDERS
from runs.selectors import explain_unusable_model, list_usable_models
from runs.stages import stages

MAX_CONFIG = 1024 * 1024  # bytes
_NAME = "a registered model's name, as /models/ lists them"


def resolve_registered_text(text: str, *, user: User) -> ResolvedConfig:
    """Resolve a config in YAML, which includes JSON. Raises ConfigError with every problem."""
    document, value = parse_document(text, ConfigSource())
    return resolve_registered(value, user=user, document=document)


def resolve_registered(
    value: Mapping[str, object], *, user: User, document: yaml_source.YamlText | None = None
) -> ResolvedConfig:
    """Resolve a config as plain data. Raises ConfigError with every problem."""
    parsed = ParsedConfig(ConfigSource(key_variables=frozenset(settings.API_KEY_VARIABLES)), document)
    invalid = _check_environments(value.get("environments"), user, parsed.add_problem)
    sandbox = value.get("sandbox")
    for key in sandbox if isinstance(sandbox, dict) else ():
        if key in ("backend", "accept"):
            message = "for the command line only; the operator's settings decide here, remove it"
            parsed.add_problem(("sandbox", key), message)
    used: list[ModelEndpoint] = []
    read_config(_with_models(value, user, parsed.add_problem, used), parsed)
    for i in invalid:
        parsed.environments.pop(i, None)
    return with_team(resolve_config(parsed), user=user, models=used)


def _placeholder(path: yaml_source.Path) -> dict[str, object]:
    """Return a model in place of an invalid one, so that the rest of the config can be checked."""
    return {"name": yaml_source.dotted(path), "provider": "openai", "model": "-"}


def _check_environments(value: object, user: User, add_problem: AddProblem) -> set[int]:
    """Check that *user* may see every environment, and that none is a path. Return the indexes of those that fail."""
    invalid: set[int] = set()
    if not isinstance(value, list):
        return invalid  # `read_config` reports the problem
    visible = set(list_visible_environments(user).values_list("slug", flat=True))
    for i, ref in enumerate(value):
        if isinstance(ref, dict) and "path" in ref:
            add_problem(
                ("environments", i, "path"),
                "paths of bundles are for the command line only; upload the bundle and give its slug",
            )
            invalid.add(i)
            continue
        named = ref.get("environment") if isinstance(ref, dict) else ref
        if isinstance(named, str) and named.partition("@")[0] not in visible:
            slug = named.partition("@")[0]
            add_problem(
                ("environments", i),
                f"there is no environment {slug!r}; {wording.suggest(slug, sorted(visible)) or 'none is there yet'}",
            )
            invalid.add(i)
    return invalid


def _with_models(
    value: Mapping[str, object], user: User, add_problem: AddProblem, used: list[ModelEndpoint]
) -> dict[str, object]:
    """Return the config with the name of each registered model replaced by its description; add them to *used*."""
    key_variables = frozenset(settings.API_KEY_VARIABLES)
    endpoints = {endpoint.name: endpoint for endpoint in list_usable_models(user)}

    def describe(named: object, path: yaml_source.Path) -> object:
        if not isinstance(named, str):
            add_problem(path, f"give {_NAME}; endpoints and keys are part of its registration")
            return _placeholder(path)
        endpoint = endpoints.get(named)
        if endpoint is None:
            add_problem(path, explain_unusable_model(user, named))
            return _placeholder(path)
        if endpoint.api_key_env and settings.ENV.lookup(endpoint.api_key_env) is None:
            variable = endpoint.api_key_env if user.is_staff else "its variable"
            add_problem(path, f"the key of {named!r} is not set on this server; an operator sets {variable}")
        spec = _valid_spec(endpoint, key_variables)
        if spec is None:
            add_problem(path, f"the registration of {named!r} is invalid; staff can fix it at /models/")
            return _placeholder(path)
        used.append(endpoint)
        return spec.model_dump(mode="json", exclude_none=True)

    if value.get("models") is not None and not isinstance(value["models"], list):
        add_problem(("models",), f"a list, each {_NAME}: [small]")
        value = {**value, "models": [_placeholder(("models",))]}
    return _describe_models(value, describe)


def describe_registered_models(value: Mapping[str, object], add_problem: AddProblem) -> dict[str, object]:
    """Return a config of the command line with the names of registered models replaced by their descriptions.

    Models that the config describes itself are kept.
    """
    endpoints: dict[str, ModelEndpoint] | None = None

    def describe(named: object, path: yaml_source.Path) -> object:
        nonlocal endpoints
        if not isinstance(named, str) or "${" in named:
            return named
        if endpoints is None:
            endpoints = {endpoint.name: endpoint for endpoint in list_usable_models(None)}
        try:
            if named in endpoints:
                return endpoint_spec(endpoints[named]).model_dump(mode="json", exclude_none=True)
            unknown = wording.end_sentence(explain_unusable_model(None, named))
            add_problem(path, f"{unknown} Or describe it: name, provider, model")
        except ValidationError:
            add_problem(path, f"the registration of {named!r} is invalid; correct it at /models/")
        return _placeholder(path)

    return _describe_models(value, describe)


def _describe_models(
    value: Mapping[str, object], describe: Callable[[object, yaml_source.Path], object]
) -> dict[str, object]:
    """Return *value* with *describe* applied to each model: in `models`, in `roles` and in stages."""
    filled = dict(value)
    models, roles = value.get("models"), value.get("roles")
    if isinstance(models, list):
        filled["models"] = [describe(named, ("models", i)) for i, named in enumerate(models)]
    if isinstance(roles, dict):
        filled["roles"] = {
            role: [describe(item, ("roles", role, i)) for i, item in enumerate(named)]
            if isinstance(named, list)
            else [describe(named, ("roles", role))]
            for role, named in roles.items()
        }
    for stage in stages():
        part = value.get(stage.key)
        if isinstance(part, dict) and "model" in part and "model" in stage.Config.model_fields:
            filled[stage.key] = {**part, "model": describe(part["model"], (stage.key, "model"))}
    return filled


def _valid_spec(endpoint: ModelEndpoint, key_variables: frozenset[str]) -> ModelSpec | None:
    """Return the spec of *endpoint*, or None if no run could use it.

    The problem itself is not reported: it may contain the address of the endpoint, which only staff may see.
    """
    try:
        spec = endpoint_spec(endpoint)
        provider = PROVIDERS[spec.provider]
        options = provider.Options.model_validate(spec.options)
    except (ValidationError, KeyError):
        return None
    return None if list(provider.problems(options, ConfigSource(key_variables=key_variables))) else spec
