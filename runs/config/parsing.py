"""Reading a run's config: YAML and `--set` to RunConfig. No database, no network.

Problems are collected, each with its key path, line and remedy, and raised together as ConfigError.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ValidationError

from hub.common import wording
from hub.common.documents import validation, yaml_source
from hub.common.errors import UserError
from hub.common.problems import Problem
from runs.config.schema import MAX_ITEMS, MAX_SEATS, EnvironmentRef, Limits, RunConfig, SandboxConfig
from runs.config_source import ConfigSource
from runs.providers.base import ModelSpec, Provider
from runs.providers.registry import PROVIDERS
from runs.stages import stage, stages

_MAX_ALIKE = 3  # problems shown of those that say the same
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SENT = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "reasoning_effort", "stop", "send_seed")
# Keys of a config whose stage is not part of this installation: refused with the reason rather than ignored.
_KNOWN_STAGES = {
    "judge": "pre-review by a judge model",
    "review": "pairs for human review",
    "tracking": "tracking in MLflow",
}


Note = Callable[[yaml_source.Path, str], None]


class ConfigError(UserError):
    """A config that cannot be run. `problems` holds every mistake found, in the order of the file."""

    def __init__(self, problems: list[Problem], source: str = "config") -> None:
        self.problems = sorted(problems, key=lambda p: (bool(p.option), p.line is None, p.line or 0))
        self.source = source
        super().__init__("\n".join(self.lines()))

    def headline(self) -> str:
        return f"{self.source}: {wording.counted(len(self.problems), 'problem')}; nothing was stored."

    def errors(self) -> list[dict[str, Any]]:
        return [
            {"path": item.path, "message": item.message, "line": item.line, "option": item.option}
            for item in self.problems
        ]

    def lines(self) -> list[str]:
        """A line for each problem; of the same message at many places a few, and how many more there are."""
        alike = Counter(problem.message for problem in self.problems)
        seen: Counter[str] = Counter()
        shown = []
        for problem in self.problems:
            seen[problem.message] += 1
            if seen[problem.message] <= _MAX_ALIKE:
                shown.append(str(problem))
            if seen[problem.message] == _MAX_ALIKE < alike[problem.message]:
                shown.append(f"  and {alike[problem.message] - _MAX_ALIKE:,} more like it")
        return shown


class ParsedConfig:
    """A config as far as it could be read, with the problems found up to now.

    `config` is None where something in it is wrong; `environments` and `roles` hold what of it is sound, so that the
    rest can be looked up and everything be reported together. `unpriced` are the models that are asked for money, or
    so it seems, and have no price.
    """

    def __init__(
        self,
        source: ConfigSource,
        document: yaml_source.YamlText | None = None,
        problems: list[Problem] | None = None,
    ) -> None:
        self.source = source
        self.document = document
        self.problems = list(problems or [])
        self.overridden: dict[yaml_source.Path, str] = {}
        self.unfilled: set[yaml_source.Path] = set()
        self.config: RunConfig | None = None
        self.environments: dict[int, EnvironmentRef] = {}
        self.roles: frozenset[str] = frozenset()
        self.seed = 0
        self.unpriced: list[yaml_source.Path] = []

    def note(self, path: yaml_source.Path, message: str) -> None:
        """Add a problem at *path*. What an unset variable left behind is no second one."""
        if path in self.unfilled:
            return
        option = self._option(path)
        line = self.document.line(path) if self.document and not option else None
        self.problems.append(Problem(message, yaml_source.dotted(path), line=line, option=option))

    def _option(self, path: yaml_source.Path) -> str:
        """The `--set` that gave what stands at *path*, or that alone made the mapping there; the last one wins."""
        there = self.document.lines if self.document else {}
        for given, option in reversed(self.overridden.items()):
            if path[: len(given)] == given or (given[: len(path)] == path and path not in there):
                return option
        return ""

    def require_valid(self) -> RunConfig:
        """The config. Raises ConfigError with every problem."""
        if self.problems or self.config is None:
            raise ConfigError(self.problems, self.source.name)
        return self.config


def parse_config_text(text: str, source: ConfigSource, overrides: list[str] | None = None) -> RunConfig:
    """Read YAML *text*. *overrides* are `path.to.key=value` from the command line. Raises ConfigError."""
    return read_config_text(text, source, overrides).require_valid()


def parse_config(value: Mapping[str, Any], source: ConfigSource) -> RunConfig:
    """Validate a mapping. Raises ConfigError with every problem."""
    return read_config(value, ParsedConfig(source)).require_valid()


def read_config_text(text: str, source: ConfigSource, overrides: list[str] | None = None) -> ParsedConfig:
    """Read YAML *text* as far as it goes. Raises ConfigError where it is no YAML, or no mapping."""
    try:
        document = yaml_source.parse(text)
    except yaml_source.YamlError as error:
        raise ConfigError([Problem(error.message, line=error.line)], source.name) from None
    if not isinstance(document.value, dict):
        raise ConfigError([Problem("a config is a mapping with name, environments and models", line=1)], source.name)
    parsed = ParsedConfig(source, document)
    for override in overrides or []:
        _override(document.value, override, parsed)
    return read_config(document.value, parsed)


def read_config(value: Mapping[str, Any], parsed: ParsedConfig) -> ParsedConfig:
    """Validate a mapping; everything found goes into *reading*, which is given back."""
    note = parsed.note
    oversized = list(_oversized(value))
    for path, count, limit in oversized:
        note(path, f"{count:,} items; a config has at most {limit:,} here. Split it into several runs")
    if oversized:
        return parsed
    filled = _fill(dict(value), (), parsed)
    stage_parts = _stage_parts(filled, note)
    core = {key: item for key, item in filled.items() if key in RunConfig.model_fields}
    known = [key for key, item in RunConfig.model_fields.items() if not item.exclude]
    for key in filled:
        if key in _KNOWN_STAGES and stage(key) is None:
            note((key,), f"{_KNOWN_STAGES[key]} is not part of this installation; remove the key")
        elif key not in known and stage(key) is None:
            note((key,), _unknown_section(key, known))
    config: RunConfig | None = None
    try:
        config = RunConfig.model_validate(core)
    except ValidationError as error:
        for item in error.errors():
            note(_tidy(item["loc"]), _sentence(item))
    _check_models(filled, parsed)
    _keep_what_is_sound(filled, parsed)
    if config is not None:
        config.stage_configs = stage_parts
        config.base_dir = parsed.source.base_dir
        if not parsed.problems:
            _resolve(config, parsed.source)
    parsed.config = config
    return parsed


def _oversized(value: Mapping[str, Any]) -> Iterator[tuple[yaml_source.Path, int, int]]:
    """(path, items, limit) of each list that is too long to be looked through."""
    lists: list[tuple[yaml_source.Path, Any, int]] = [((key,), value.get(key), MAX_ITEMS[key]) for key in MAX_ITEMS]
    roles = value.get("roles")
    lists += [(("roles", role), given, MAX_SEATS) for role, given in (roles if isinstance(roles, dict) else {}).items()]
    for path, given, limit in lists:
        if isinstance(given, list) and len(given) > limit:
            yield path, len(given), limit


def _unknown_section(key: str, known: list[str]) -> str:
    """What to say of a top-level *key* that is none: where it belongs, if it is the key of a section."""
    sections: dict[str, type[BaseModel]] = {"limits": Limits, "sandbox": SandboxConfig}
    sections |= {item.key: item.Config for item in stages()}
    belongs = next((section for section, model in sections.items() if key in model.model_fields), None)
    if belongs:
        return f"unknown key; it stands under `{belongs}`"
    return wording.unknown_key(key, [*known, *(item.key for item in stages())])


def _sentence(item: Any) -> str:
    said = validation.describe_error(item, RunConfig)
    if item["type"] == "missing" and item["loc"][-1] == "provider":
        return f"{said}, one of {', '.join(PROVIDERS)}"
    return said


def _stage_parts(filled: Mapping[str, Any], note: Note) -> dict[str, Any]:
    parts = {}
    for item in stages():
        if item.key not in filled and not item.implicit:
            continue
        given = filled.get(item.key)
        try:
            parts[item.key] = item.Config.model_validate({} if given is None else given)
        except ValidationError as error:
            for problem in error.errors():
                note((item.key, *_tidy(problem["loc"])), validation.describe_error(problem, item.Config))
    return parts


def _keep_what_is_sound(filled: Mapping[str, Any], parsed: ParsedConfig) -> None:
    """The environments and the rest that they are looked up with, each for itself."""
    environments = filled.get("environments")
    for i, item in enumerate(environments if isinstance(environments, list) else []):
        with suppress(ValidationError):
            parsed.environments[i] = EnvironmentRef.model_validate(item)
    roles = filled.get("roles")
    parsed.roles = frozenset(roles) if isinstance(roles, dict) else frozenset()
    parsed.seed = filled["seed"] if isinstance(filled.get("seed"), int) else 0


def _described_models(filled: Mapping[str, Any]) -> Iterator[tuple[yaml_source.Path, dict[str, Any]]]:
    """Every mapping that describes a model, with its place: those of `models`, of `roles` and of the stages."""
    places: list[tuple[yaml_source.Path, Any]] = [(("models",), filled.get("models"))]
    roles = filled.get("roles")
    for role, given in roles.items() if isinstance(roles, dict) else ():
        places.append((("roles", role), given if isinstance(given, list) else [given]))
    for path, given in places:
        for i, item in enumerate(given if isinstance(given, list) else []):
            if isinstance(item, dict):
                yield (*path, i), item
    for item in stages():
        part = filled.get(item.key)
        if isinstance(part, dict) and isinstance(part.get("model"), dict) and "model" in item.Config.model_fields:
            yield (item.key, "model"), part["model"]


def _check_models(filled: Mapping[str, Any], parsed: ParsedConfig) -> None:
    """What concerns several models, files beside the config and variables: labels, recordings, keys."""
    seen: dict[tuple[yaml_source.Path, Any], yaml_source.Path] = {}
    for path, model in _described_models(filled):
        name = model.get("name")
        first = seen.setdefault((path[:-1], name), path) if isinstance(name, str) else path
        if first != path and path[0] == "models":
            parsed.note((*path, "name"), f"{name!r} is also the name of {yaml_source.dotted(first)}; names are labels")
        elif first != path:
            parsed.note((*path, "name"), f"{name!r} fills this role twice")
        _check_model(path, model, parsed)


def _check_model(path: yaml_source.Path, model: Mapping[str, Any], parsed: ParsedConfig) -> None:
    """The keys that are the provider's own. The others were checked with the config."""
    named = model.get("provider")
    if not isinstance(named, str):
        return
    provider = PROVIDERS.get(named)
    if provider and provider.live and model.get("price") is None:
        parsed.unpriced.append(path)
    if provider is None:
        parsed.note((*path, "provider"), PROVIDERS.describe_unknown(named))
        return
    given = {key: value for key, value in model.items() if key not in ModelSpec.model_fields}
    wrong: set[int | str] = set()
    try:
        provider.Options.model_validate(given)
    except ValidationError as error:
        for item in error.errors():
            place = _tidy(item["loc"])
            wrong.add(place[0])
            parsed.note((*path, *place), _model_sentence(item, provider.Options))
    _check_parameters(path, model, provider, parsed.note)
    # What is sound is looked at all the same: a file that is missing, a variable that is not set.
    require_valid = {key: value for key, value in given.items() if key not in wrong}
    for problem in provider.problems(provider.Options.model_construct(**require_valid), parsed.source):
        parsed.note((*path, problem.path), problem.message)


def _check_parameters(path: yaml_source.Path, model: Mapping[str, Any], provider: type[Provider], note: Note) -> None:
    """What is sent with each request, and what it costs, as far as their types do not say it."""
    parameters, price = model.get("parameters"), model.get("price")
    for key in parameters if isinstance(parameters, dict) else ():
        if key in provider.reserved:
            note((*path, "parameters", key), f"not to be sent; {provider.reserved[key]}")
    for key in ("input", "output"):
        if isinstance(price, dict) and key not in price:
            note((*path, "price"), f"`{key}` is missing; its tokens would count as free (write {key}: 0 if they are)")


def _model_sentence(item: Any, options: type[BaseModel]) -> str:
    key = str(item["loc"][0])
    if item["type"] != "extra_forbidden" or len(item["loc"]) > 1:
        return validation.describe_error(item, options)
    if key in _SENT:
        return f"unknown key; it is sent with each request: write `parameters: {{{key}: ...}}`"
    said = wording.unknown_key(key, [*ModelSpec.model_fields, *options.model_fields])
    return said if "did you mean" in said else f"{said}; what is sent with each request stands under `parameters`"


def _resolve(config: RunConfig, source: ConfigSource) -> None:
    """Make absolute what depends on where the config stands."""
    specs = [*config.models, *(spec for role in config.role_specs().values() for spec in role)]
    for spec in specs:
        provider = PROVIDERS[spec.provider]
        if spec.__pydantic_extra__ is not None:
            spec.__pydantic_extra__.update(provider.resolved(provider.Options.model_validate(spec.options), source))


def _fill(value: Any, path: yaml_source.Path, parsed: ParsedConfig) -> Any:
    """`${NAME}` and `${NAME:-default}` replaced, at any depth."""
    if isinstance(value, dict):
        return {key: _fill(item, (*path, key), parsed) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, (*path, i), parsed) for i, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    source, wrong = parsed.source, []
    lookup = source.lookup

    def one(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if name in source.key_variables:
            wrong.append(f"a key is never filled in; write `api_key_env: {name}`")
            return ""
        if name not in source.variables:
            allowed = ", ".join(sorted(source.variables)) or "none"
            wrong.append(f"${{{name}}} may not be used; allowed are {allowed} (LLMEVAL_CONFIG_VARIABLES)")
            return ""
        found = lookup(name) if lookup else None
        if not found and default is None:
            wrong.append(f"the variable {name} is not set; export it, or write ${{{name}:-default}}")
        return found or default or ""

    if lookup is None:
        wrong.append("variables (`${...}`) may be used on the command line only")
    else:
        value = _VARIABLE.sub(one, value)
    for message in wrong:
        parsed.note(path, message)
    if wrong:
        parsed.unfilled.add(path)
    return value


def _override(value: dict[str, Any], text: str, parsed: ParsedConfig) -> None:
    """Apply one `path.to.key=value`, its value read as YAML; list items by number (`models.0.name`); null takes out."""
    option = f"--set {text}"

    def refuse(message: str) -> None:
        parsed.problems.append(Problem(message, option=option))

    written, equals, raw = text.partition("=")
    parts = re.sub(r"\[(\d+)\]", r".\1", written.strip()).split(".")  # models[0], as problems have it, or models.0
    if not equals or not all(parts):
        return refuse("expected path.to.key=value")
    try:
        new = yaml_source.parse(raw).value if raw.strip() else ""
    except yaml_source.YamlError as error:
        return refuse(error.message)
    here: Any = value
    path: list[str | int] = []
    for i, part in enumerate(parts):
        place = ".".join(parts[:i])
        if isinstance(here, list) and not (part.isdigit() and int(part) < len(here)):
            return refuse(f"{place} is a list of {len(here)}; {part!r} is not in it{_by_number(place, part, here)}")
        if not isinstance(here, list | dict):
            return refuse(f"{place} is a single value and has no keys")
        key: Any = int(part) if isinstance(here, list) else part
        path.append(key)
        if i == len(parts) - 1 and new is None and isinstance(here, dict):
            if part not in here:
                return refuse(f"there is no {'.'.join(parts)} to take out")
            del here[part]
            return None
        if i == len(parts) - 1:
            here[key] = new
        elif isinstance(here, dict) and here.get(part) is None:
            here[part] = {}
        here = here[key]
    parsed.overridden[tuple(path)] = option
    return None


def _by_number(place: str, part: str, items: list[Any]) -> str:
    """How to name an item: by the number of the one whose name was given, else by any."""
    if not items:
        return ""
    named = next((i for i, item in enumerate(items) if isinstance(item, dict) and item.get("name") == part), None)
    if named is not None:
        return f"; write {place}.{named}"
    return f"; write {place}.0" + (f" to {place}.{len(items) - 1}" if len(items) > 1 else "")


def _tidy(loc: tuple[int | str, ...]) -> yaml_source.Path:
    """pydantic's location without the names of validators and union members."""
    return tuple(part for part in loc if isinstance(part, int) or "[" not in part)
