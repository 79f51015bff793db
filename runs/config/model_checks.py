"""Checks of the models in a config that its schema cannot express: labels, options of providers, prices."""

from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hub.common import wording
from hub.common.documents import validation, yaml_source
from runs.config.parsed import AddProblem, ParsedConfig
from runs.providers.base import ModelSpec, Provider, ProviderOptions
from runs.providers.registry import PROVIDERS
from runs.stages import stages

# Parameters of requests that users write beside `parameters` by mistake.
_PARAMETERS = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "reasoning_effort", "stop", "send_seed")


def check_models(config: Mapping[str, object], parsed: ParsedConfig) -> None:
    """Check every model of *config*, also if other parts of the config are invalid."""
    first_places: dict[tuple[yaml_source.Path, str], yaml_source.Path] = {}
    for path, model in _described_models(config):
        name = model.get("name")
        first = first_places.setdefault((path[:-1], name), path) if isinstance(name, str) else path
        if first != path and path[0] == "models":
            place = yaml_source.dotted(first)
            parsed.add_problem((*path, "name"), f"{name!r} is also the name of {place}; names are labels")
        elif first != path:
            parsed.add_problem((*path, "name"), f"{name!r} fills this role twice")
        _check_model(path, model, parsed)


def _described_models(config: Mapping[str, object]) -> Iterator[tuple[yaml_source.Path, dict[str, object]]]:
    """Yield every mapping that describes a model, with its place: in `models`, in `roles` and in stages."""
    places: list[tuple[yaml_source.Path, object]] = [(("models",), config.get("models"))]
    roles = config.get("roles")
    for role, given in roles.items() if isinstance(roles, dict) else ():
        places.append((("roles", role), given if isinstance(given, list) else [given]))
    for path, items in places:
        for i, item in enumerate(items if isinstance(items, list) else []):
            if isinstance(item, dict):
                yield (*path, i), item
    for stage in stages():
        part = config.get(stage.key)
        if isinstance(part, dict) and isinstance(part.get("model"), dict) and "model" in stage.Config.model_fields:
            yield (stage.key, "model"), part["model"]


def _check_model(path: yaml_source.Path, model: Mapping[str, object], parsed: ParsedConfig) -> None:
    """Check the keys of *model* that belong to its provider. The schema has checked the others."""
    name = model.get("provider")
    if not isinstance(name, str):
        known = list(ModelSpec.model_fields)  # other keys belong to the provider, which is unknown
        for key in model:
            if key not in known and wording.find_similar(key, known):
                parsed.add_problem((*path, key), wording.unknown_key(key, known))
        return
    provider = PROVIDERS.get(name)
    if provider is None:
        parsed.add_problem((*path, "provider"), PROVIDERS.describe_unknown(name))
        return
    if provider.live and model.get("price") is None:
        parsed.unpriced.append(path)
    options = {key: value for key, value in model.items() if key not in ModelSpec.model_fields}
    invalid: set[int | str] = set()
    try:
        provider.Options.model_validate(options)
    except ValidationError as error:
        for item in error.errors():
            place = schema_path(item["loc"])
            invalid.add(place[0])
            parsed.add_problem((*path, *place), _option_sentence(item, provider.Options))
    _check_parameters(path, model, provider, parsed.add_problem)
    # The valid options are checked further: a file may be missing, a variable may not be set.
    valid = {key: value for key, value in options.items() if key not in invalid}
    for problem in provider.problems(provider.Options.model_construct(**valid), parsed.source):  # type: ignore[arg-type]
        parsed.add_problem((*path, problem.path), problem.message)


def _check_parameters(
    path: yaml_source.Path,
    model: Mapping[str, object],
    provider: type[Provider[ProviderOptions]],
    add_problem: AddProblem,
) -> None:
    parameters, price = model.get("parameters"), model.get("price")
    for key in parameters if isinstance(parameters, dict) else ():
        if key in provider.reserved:
            add_problem((*path, "parameters", key), f"must not be sent; {provider.reserved[key]}")
    for key in ("input", "output"):
        if isinstance(price, dict) and key not in price:
            message = f"`{key}` is missing; its tokens would count as free (write {key}: 0 if they are)"
            add_problem((*path, "price"), message)


def _option_sentence(item: ErrorDetails, options: type[BaseModel]) -> str:
    key = str(item["loc"][0])
    if item["type"] != "extra_forbidden" or len(item["loc"]) > 1:
        return validation.describe_error(item, options)
    if key in _PARAMETERS:
        return f"unknown key; it is sent with each request: write `parameters: {{{key}: ...}}`"
    known = [*ModelSpec.model_fields, *options.model_fields]
    message = wording.unknown_key(key, known)
    if wording.find_similar(key, known):
        return message
    return f"{message}; parameters of requests belong under `parameters`"


def schema_path(location: tuple[int | str, ...]) -> yaml_source.Path:
    """Return a location of pydantic without the names of validators and union members."""
    return tuple(part for part in location if isinstance(part, int) or "[" not in part)
