"""A new run as YAML, and the form filled from YAML or from an earlier run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml
from django.contrib.auth.models import User
from pydantic import ValidationError

from hub.common import wording
from hub.common.documents import yaml_source
from hub.common.problems import Problem
from runs.config.parsed import ConfigError
from runs.config.parsing import parse_document
from runs.config.registered import resolve_registered
from runs.config.schema import Limits, RunConfig
from runs.config_source import ConfigSource
from runs.models import Run, RunEnvironment
from runs.stages import stages
from runs.web.new_run.draft import DEFAULTS, NUMBER_DEFAULTS, SELECTIONS, Draft, EnvironmentChoice
from runs.web.new_run.form import NewRunForm

_OWN_FIELDS = ("name", "team", "attempts", "concurrency", "seed")
_START_IT = "Start the YAML as it is instead"


@dataclass(slots=True)
class Filled:
    """State of the page made from a config.

    kept: key paths that are kept under "Other settings". inexpressible: (path, reason) of what the form lacks.
    """

    draft: Draft = field(default_factory=Draft)
    kept: list[str] = field(default_factory=list)
    inexpressible: list[tuple[yaml_source.Path, str]] = field(default_factory=list)


def run_yaml(form: NewRunForm) -> str:
    """Return the run of a form without errors as YAML, which REST and `manage.py eval --config` accept as well."""
    return _dump(form.config())


def fill_from_text(text: str, user: User) -> Filled:
    """Return the form's state for a config in YAML. Raises ConfigError with the line of every problem.

    What the form cannot express is a problem, too.
    """
    document, value = parse_document(text, ConfigSource(name="YAML"))
    problems: list[Problem] = []
    try:
        resolve_registered(value, user=user, document=document)
    except ConfigError as error:
        raise ConfigError(error.problems, "YAML") from None
    filled = _fill(value)
    for path, reason in filled.inexpressible:
        problems.append(Problem(f"{reason}. {_START_IT}.", yaml_source.dotted(path), line=document.line(path)))
    if problems:
        raise ConfigError(problems, "YAML")
    return filled


def fill_from_run(run: Run) -> tuple[Filled, str]:
    """Return the form's state for a run like *run*, and the config of *run* as YAML with the names of its models."""
    config = _config_of(run)
    return _fill(config), _dump(config)


def _fill(value: Mapping[str, object]) -> Filled:
    """Return the form's state for a valid config, whose models are names."""
    filled = Filled()
    fields = filled.draft.fields
    for key in _OWN_FIELDS:
        if key in value:
            fields[key] = str(value[key])
    _fill_environments(value.get("environments"), filled)
    models = value.get("models")
    filled.draft.models = list(dict.fromkeys(map(str, models if isinstance(models, list) else [])))
    roles = value.get("roles")
    for role, named in roles.items() if isinstance(roles, dict) else ():
        names = named if isinstance(named, list) else [named]
        if len(names) > 1:
            filled.inexpressible.append((("roles", role), f"{len(names)} models for one role; the form has one"))
        fields[f"role_{role}"] = str(names[0]) if names else ""
    other = {key: item for key, item in value.items() if key not in (*_OWN_FIELDS, "environments", "models", "roles")}
    limits = other.get("limits")
    if isinstance(limits, dict):
        limits = dict(limits)
        budget = limits.pop("budget_usd", None)
        fields["budget"] = DEFAULTS["budget"] if budget is None else f"{budget:g}"
        other["limits"] = limits
    other = {key: item for key, item in other.items() if item not in ({}, None)}
    for key, item in other.items():
        filled.kept += [f"{key}.{inner}" for inner in item] if isinstance(item, dict) else [key]
    fields["other"] = _dump(other) if other else ""
    return filled


def _fill_environments(value: object, filled: Filled) -> None:
    """Choose the environments. If all have the same selection of cases, it becomes the one of the form."""
    found: list[tuple[str, dict[str, int]]] = []
    for i, item in enumerate(value if isinstance(value, list) else []):
        ref = {"environment": item} if isinstance(item, str) else dict(item)
        selection = {key: int(ref[key]) for key in SELECTIONS if ref.get(key) is not None}
        if ref.get("cases"):
            reason = f"{wording.counted(len(ref['cases']), 'case')} of {ref['environment']} selected by id"
            filled.inexpressible.append((("environments", i, "cases"), f"{reason}; the form cannot select cases by id"))
        found.append((str(ref["environment"]), selection))
    shared = found[0][1] if found and all(selection == found[0][1] for _, selection in found) else {}
    for key, count in shared.items():
        filled.draft.fields |= {"cases": key, "count": str(count)}
    for reference, selection in found:
        slug, _, version = reference.partition("@")
        filled.draft.environments.append(str(EnvironmentChoice(slug, version, {} if shared else selection)))


def _config_of(run: Run) -> dict[str, object]:
    """Return the stored config of *run* with references to its environments and models, and without defaults."""
    stored = {key: item for key, item in run.config.items() if key in RunConfig.model_fields}
    config: dict[str, object] = {
        "name": run.name,
        **({"team": run.team.slug} if run.team else {}),
        "environments": [_reference(row) for row in run.environments.select_related("version__environment")],
        "models": [_name(item) for item in stored.get("models", [])],
    }
    for key, default in NUMBER_DEFAULTS.items():
        if stored.get(key, default) != default:
            config[key] = stored[key]
    usual = Limits().model_dump(mode="json", exclude_none=True)
    limits = {key: item for key, item in stored.get("limits", {}).items() if usual.get(key) != item}
    if limits:
        config["limits"] = limits
    roles = {role: [_name(item) for item in named] for role, named in stored.get("roles", {}).items()}
    if roles:
        config["roles"] = {role: names[0] if len(names) == 1 else names for role, names in roles.items()}
    for stage in stages():
        part = run.config.get(stage.key)
        if isinstance(part, dict) and part != _defaults(stage.Config):
            config[stage.key] = {**part, "model": _name(part["model"])} if "model" in part else part
    return config


def _reference(row: RunEnvironment) -> object:
    environment = row.version.environment
    reference = (
        environment.slug if environment.latest_id == row.version_id else f"{environment.slug}@{row.version.version}"
    )
    selection = dict(row.selection)
    first = selection.pop("first", None)  # of the option --limit
    if first is not None and not selection.keys() - {"limit"}:
        selection = {"limit": first}
    elif first is not None:
        cases = row.version.cases.filter(position__in=row.case_positions or []).order_by("position")
        selection = {"cases": list(cases.values_list("external_id", flat=True))}
    return {"environment": reference, **selection} if selection else reference


def _name(model: object) -> object:
    """Return the name of a model that is described in a stored config."""
    return model.get("name", "") if isinstance(model, dict) else model


def _defaults(config: type) -> object:
    try:
        return config().model_dump(mode="json", exclude_none=True)
    except ValidationError:  # it has keys that must be given
        return None


def _dump(value: Mapping[str, object]) -> str:
    return yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=True, width=100)
