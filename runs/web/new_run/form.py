"""Form of a new run of registered models on environments of the hub."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from django import forms
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import NON_FIELD_ERRORS
from pydantic import ValidationError

from hub.bundles.stored import ArchiveUnavailable
from hub.common import wording
from hub.common.documents import yaml_source
from hub.models import EnvironmentVersion
from hub.selectors import list_visible_environments
from hub.web.team_field import add_team_field
from runs.config.endpoints import endpoint_spec
from runs.config.parsed import ConfigError
from runs.config.registered import resolve_registered
from runs.config.resolve import ResolvedConfig
from runs.config.schema import DEFAULT_CONCURRENCY, MAX_ITEMS
from runs.providers.base import ModelSpec
from runs.providers.registry import PROVIDERS
from runs.results.forecast import RunEstimate, estimate_from_results
from runs.selectors import explain_unusable_model, list_usable_models, visible_runs
from runs.web.new_run.draft import NUMBER_DEFAULTS, Draft, EnvironmentChoice

_FIELDS = {"environments": "environment", "models": "model", "limits.budget_usd": "budget"}  # of keys of a config
_SETTINGS = ("name", "cases", "count", "attempts", "concurrency", "budget", "seed", "other")
_ROLES = {"rubric": "Judges responses by a rubric.", "user": "Writes the messages of the user."}
Value = TypeVar("Value")
_SUGGESTED = 200  # names of models that a field for a role suggests


@dataclass(frozen=True, slots=True)
class ChosenEnvironment:
    """An environment that was chosen, looked up. version: None if it cannot be run, for the reason in `problem`."""

    choice: EnvironmentChoice
    title: str
    version: EnvironmentVersion | None = None
    problem: str = ""

    @property
    def value(self) -> str:
        return str(self.choice)


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A registered model that was chosen, looked up. spec: None if it cannot be used, for the reason in `problem`."""

    name: str
    spec: ModelSpec | None = None
    problem: str = ""

    @property
    def unpriced(self) -> bool:
        """Return whether the cost of its replies is unknown."""
        return self.spec is not None and PROVIDERS[self.spec.provider].live and self.spec.price is None


class _ChosenField(forms.Field):
    """Values that were chosen from a list."""

    widget = forms.MultipleHiddenInput


class NewRunForm(forms.Form):
    """New run. complete: it is to be started, so nothing may be missing; `resolved` is its config if it is valid."""

    environment = _ChosenField(required=False, label="Environments")
    model = _ChosenField(required=False, label="Models")
    name = forms.CharField(
        max_length=120, required=False, help_text="In the list of runs. Empty: its environments and models."
    )
    cases = forms.ChoiceField(
        choices=[("all", "all cases"), ("sample", "a random sample"), ("limit", "the first cases")],
        help_text="Of each environment. The same seed always draws the same sample.",
    )
    count = forms.IntegerField(
        min_value=1,
        max_value=10**9,
        required=False,
        label="Number of cases",
        help_text="Size of the sample, or number of first cases.",
    )
    attempts = forms.IntegerField(min_value=1, max_value=1000, help_text="Responses per case and model.")
    concurrency = forms.IntegerField(
        min_value=1, max_value=1024, label="Concurrent requests", help_text="Episodes in progress at the same time."
    )
    budget = forms.FloatField(
        required=False,
        min_value=0.01,
        label="Budget in USD",
        help_text="The run stops when it is spent. Empty: no limit.",
    )
    seed = forms.IntegerField(
        required=False,
        min_value=-(2**63),
        max_value=2**63 - 1,
        help_text="Of samples and attempts. Empty: 0.",
    )
    other = forms.CharField(
        required=False,
        max_length=20_000,
        strip=False,
        label="Other settings as YAML",
        widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false", "class": "mono"}),
        help_text="For what has no field here: limits, judge, review, tracking.",
    )

    resolved: ResolvedConfig

    def __init__(self, draft: Draft, *, user: User, complete: bool) -> None:
        super().__init__(draft.data())
        self._user = user
        self._complete = complete
        add_team_field(self, user)
        if "team" in self.fields:
            self.fields["team"].required = complete
            self.data = {**self.data, "team": draft.fields["team"] or self.fields["team"].initial}
        self._endpoints = {item.name: item for item in list_usable_models(user)}
        self.environments = list(self._find_environments(draft.environments))
        self.models = [self._find_model(name) for name in draft.models]
        self.roles = self._add_roles(draft.roles)
        self.suggested = list(self._endpoints)[:_SUGGESTED]

    @property
    def settings(self) -> list[forms.BoundField]:
        return [self[name] for name in (*_SETTINGS, "team") if name in self.fields]

    @property
    def role_fields(self) -> list[forms.BoundField]:
        return [self[f"role_{role}"] for role in self.roles]

    @property
    def any_model(self) -> bool:
        return bool(self._endpoints)

    def _find_environments(self, values: list[str]) -> Iterator[ChosenEnvironment]:
        choices = [EnvironmentChoice.parse(value) for value in values]
        visible = list_visible_environments(self._user)
        found = {item.slug: item for item in visible.filter(slug__in=[choice.slug for choice in choices])}
        pinned = {
            (row.environment_id, row.version): row
            for row in EnvironmentVersion.objects.filter(
                environment__in=found.values(), version__in=[choice.version for choice in choices if choice.version]
            )
        }
        slugs: list[str] | None = None
        seen: set[str] = set()
        for choice in choices:
            environment = found.get(choice.slug)
            if environment is None:
                slugs = list(visible.values_list("slug", flat=True)) if slugs is None else slugs
                advice = wording.suggest(choice.slug, slugs)
                near = f" {advice.capitalize()}" if advice.endswith("?") else ""
                problem = f"There is no environment {choice.slug!r} that you may run.{near}"
                yield ChosenEnvironment(choice, choice.slug, problem=problem)
                continue
            title = environment.title
            version = pinned.get((environment.pk, choice.version)) if choice.version else environment.latest
            if choice.slug in seen:
                problem = f"{title} is chosen twice. A run evaluates one version of an environment."
            elif version is None and choice.version:
                problem = f"{title} has no version {choice.version}. Remove it, or choose the latest one."
            elif version is None:
                problem = f"{title} has no version yet, so it cannot be run. Remove it, or upload a version."
            else:
                problem = ""
            seen.add(choice.slug)
            if version is not None:
                version.environment = environment  # `str(version)` needs no query
            yield ChosenEnvironment(choice, title, None if problem else version, problem)

    def _find_model(self, name: str) -> ChosenModel:
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            return ChosenModel(name, problem=wording.sentence(explain_unusable_model(self._user, name)))
        if endpoint.api_key_env and settings.ENV.lookup(endpoint.api_key_env) is None:
            who = f"An operator sets {endpoint.api_key_env}." if self._user.is_staff else "Ask an operator to set it."
            return ChosenModel(name, problem=f"The key of {name!r} is not set on this server. {who}")
        try:
            return ChosenModel(name, endpoint_spec(endpoint))
        except ValidationError:
            return ChosenModel(
                name, problem=f"The registration of {name!r} is invalid. Staff can fix it on its page under Models."
            )

    def _add_roles(self, given: list[str]) -> list[str]:
        titles: dict[str, list[str]] = {role: [] for role in given}
        for item in self.environments:
            for role in manifest_roles(item.version.manifest) if item.version else ():
                titles.setdefault(role, []).append(item.title)
        for role, needing in titles.items():
            needed = f"Needed by {_listed(needing)}." if needing else "None of the environments needs it."
            self.fields[f"role_{role}"] = forms.CharField(
                required=False,
                max_length=120,
                label=f"Model for the role {role}",
                help_text=f"{_ROLES.get(role, '')} {needed}".strip(),
                widget=forms.TextInput(attrs={"list": "registered-models", "autocomplete": "off"}),
            )
        self._needed = {role: needing for role, needing in titles.items() if needing}
        return sorted(titles)

    # ---- validation

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if "${" in name:
            raise forms.ValidationError("Variables (${...}) cannot be used here. Remove them.")
        return name

    def clean_environment(self) -> list[str]:
        problems = [item.problem for item in self.environments if item.problem]
        if self._complete and not self.environments:
            problems.append("Choose at least one environment.")
        if len(self.environments) > MAX_ITEMS["environments"]:
            problems.append(f"A run has at most {MAX_ITEMS['environments']} environments. Split it into several runs.")
        return _valid([item.value for item in self.environments], problems)

    def clean_model(self) -> list[str]:
        problems = [item.problem for item in self.models if item.problem]
        if self._complete and not self.models:
            problems.append("Choose at least one model.")
        if len(self.models) > MAX_ITEMS["models"]:
            problems.append(f"A run has at most {MAX_ITEMS['models']} models. Split it into several runs.")
        return _valid([item.name for item in self.models], problems)

    def clean_other(self) -> dict[str, object]:
        text: str = self.cleaned_data["other"]
        self._other_lines = yaml_source.YamlText(None, {(): 1})
        if not text.strip():
            return {}
        try:
            self._other_lines = yaml_source.parse(text)
        except yaml_source.YamlError as error:
            raise forms.ValidationError(f"Line {error.line}: {error.message}.") from None
        value = self._other_lines.value
        if not isinstance(value, dict):
            raise forms.ValidationError("Line 1: must be keys with values, such as “limits: {turns: 10}”.")
        problems = []
        for key in ("name", "team", "environments", "models", "attempts", "concurrency", "seed", "roles"):
            if key in value:
                problems.append(f"Line {self._other_lines.line((key,))}: {key} has a field of its own. Enter it there.")
        limits = value.get("limits")
        if isinstance(limits, dict) and "budget_usd" in limits:
            line = self._other_lines.line(("limits", "budget_usd"))
            problems.append(f"Line {line}: enter the budget in its own field.")
        return _valid(value, problems)

    def clean(self) -> dict[str, object]:
        data = self.cleaned_data
        if data.get("cases") in ("sample", "limit") and not data.get("count") and "count" not in self.errors:
            self.add_error("count", "Enter the number of cases.")
        used = list(self.models)
        for role in self.roles:
            name = data.get(f"role_{role}")
            if not name:
                if self._complete and role in self._needed:
                    self.add_error(f"role_{role}", f"Choose a model. Needed by {_listed(self._needed[role])}.")
                continue
            used.append(self._find_model(name))
            if used[-1].problem:
                self.add_error(f"role_{role}", used[-1].problem)
        unpriced = list(dict.fromkeys(item.name for item in used if item.unpriced))
        if data.get("budget") and unpriced:
            verb = "has" if len(unpriced) == 1 else "have"
            self.add_error(
                "budget",
                f"The budget cannot be kept: {_listed(unpriced)} {verb} no price. Leave the budget empty, choose other "
                "models, or ask staff to enter the price (0 if it is free).",
            )
        if self._complete and not self.errors:
            self._resolve()
        return data

    def _resolve(self) -> None:
        try:
            self.resolved = resolve_registered(self.config(), user=self._user)
        except ArchiveUnavailable as error:
            self.add_error("environment", error.message)
        except ConfigError as error:
            for problem in error.problems:
                field, message = self._place(problem.path), problem.message
                if field == "other":
                    line = self._other_lines.line(tuple(problem.path.split(".")))
                    message = f"Line {line}, {problem.path}: {message}."
                self.add_error(field, message)

    def _place(self, path: str) -> str:
        """Return the field that a key path of the config is from."""
        key = path.partition("[")[0].partition(".")[0]
        if key == "roles":
            key = f"role_{path.split('.')[1].partition('[')[0]}"
        field = _FIELDS.get(path) or _FIELDS.get(key, key)
        if field in self.fields:
            return field
        other = self.cleaned_data.get("other")
        return "other" if isinstance(other, dict) and key in other else NON_FIELD_ERRORS

    # ---- the run

    def config(self) -> dict[str, object]:
        """Return the config of the run, with the names of registered models. Keys with their defaults are left out."""
        data = self.cleaned_data
        other = dict(data["other"])
        config: dict[str, object] = {
            "name": data["name"] or self.default_name(),
            "environments": [self._reference(item.choice) for item in self.environments],
            "models": [item.name for item in self.models],
            **({"team": data["team"]} if data.get("team") else {}),
        }
        for key, default in NUMBER_DEFAULTS.items():
            if data[key] not in (None, default):
                config[key] = data[key]
        limits = other.pop("limits", None)
        if data["budget"]:
            limits = {"budget_usd": data["budget"], **limits} if isinstance(limits, dict) else limits
            config["limits"] = limits or {"budget_usd": data["budget"]}
        elif limits is not None:
            config["limits"] = limits
        roles = {role: data[f"role_{role}"] for role in self.roles if data[f"role_{role}"]}
        return {**config, **({"roles": roles} if roles else {}), **other}

    def default_name(self) -> str:
        """Return a name made of the environments and models."""
        slugs, models = ([item.choice.slug for item in self.environments], [item.name for item in self.models])
        return f"{_listed(slugs)}; {_listed(models)}"[:120]

    def _reference(self, choice: EnvironmentChoice) -> object:
        selection = choice.selection or self._selection()
        return {"environment": choice.reference, **selection} if selection else choice.reference

    def _selection(self) -> dict[str, int]:
        """Return the selection of cases for environments without one of their own; {} for all cases."""
        kind, count = self.cleaned_data.get("cases"), self.cleaned_data.get("count")
        return {kind: count} if kind in ("sample", "limit") and count else {}

    @cached_property
    def planned(self) -> list[tuple[ChosenEnvironment, int]]:
        """Return the environments that can be run with the number of their cases that the run evaluates."""
        shared = self._selection()
        found = []
        for item in self.environments:
            if item.version is not None:
                total = item.version.case_count
                found.append((item, min([total, *(item.choice.selection or shared).values()])))
        return found

    def estimate(self) -> RunEstimate | None:
        """Return what the run will need; None if there is no environment or no model that can be used."""
        cases = {item.version: count for item, count in self.planned if item.version is not None}
        specs = [item.spec for item in self.models if item.spec is not None]
        if not (cases and specs):
            return None
        return estimate_from_results(
            cases,
            specs,
            runs=visible_runs(self._user),
            attempts=self.cleaned_data.get("attempts") or 1,
            concurrency=self.cleaned_data.get("concurrency") or DEFAULT_CONCURRENCY,
        )


def _valid(value: Value, problems: list[str]) -> Value:
    """Return *value*. Raises ValidationError if there are problems."""
    if problems:
        raise forms.ValidationError(problems)
    return value


def _listed(names: list[str]) -> str:
    """Return the first three names, and the number of the others."""
    return wording.name_some(names, 3)


def manifest_roles(manifest: Mapping[str, object]) -> set[str]:
    """Return the roles of models in a manifest, without compiling it: compiling all environments takes too long."""
    roles = set()
    harness, scoring = manifest.get("harness"), manifest.get("scoring")
    user = harness.get("user") if isinstance(harness, dict) else None
    if isinstance(user, dict) and "prompt" in user:
        roles.add(str(user.get("role", "user")))
    for rule in (scoring.get("rules") if isinstance(scoring, dict) else None) or []:
        if rule.get("type") == "judge":
            roles.add(str(rule.get("role", "rubric")))
    return roles
