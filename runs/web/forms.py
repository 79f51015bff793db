"""Forms of the pages of runs: filters, a new run, what to compare."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import NON_FIELD_ERRORS

from hub.common.web.filters import FilterForm
from hub.web.queries import filter_environments
from runs.config.parsed import ConfigError
from runs.config.registered import MAX_CONFIG, resolve_registered, resolve_registered_text
from runs.config.resolve import ResolvedConfig
from runs.models import ModelEndpoint, Response, Run

_ALL = ("", "all")


class RunsFilter(FilterForm):
    q = forms.CharField(required=False, max_length=120, label="Name")
    status = forms.ChoiceField(required=False, choices=[_ALL, *((value, value) for value in Run.Status.values)])
    environment = forms.SlugField(required=False)
    model = forms.CharField(required=False, max_length=120)


class ResponsesFilter(FilterForm):
    q = forms.CharField(required=False, max_length=200, label="Case or reason")
    status = forms.ChoiceField(required=False, choices=[_ALL, *((value, value) for value in Response.Status.values)])
    environment = forms.CharField(required=False, max_length=64)
    model = forms.CharField(required=False, max_length=120)
    flag = forms.ChoiceField(
        required=False,
        choices=[_ALL, ("truncated", "truncated"), ("refused", "refused"), ("limit", "ended by a limit")],
    )


class DoneFilter(FilterForm):
    done = forms.ChoiceField(required=False, choices=[_ALL, ("true", "over"), ("false", "going on")])

    def __init__(self, data: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__({**data, "done": str(data.get("done", "")).lower()}, **kwargs)

    def choice(self) -> bool | None:
        """Whether episodes are to be over; None for all of them."""
        chosen = self.values()["done"]
        return chosen == "true" if chosen else None


class FailuresFilter(ResponsesFilter):
    """An export of failing cases: its format, and the filters of the list of responses."""

    ignored = frozenset()

    format = forms.CharField(required=False, max_length=32)

    def clean_status(self) -> str:
        status: str = self.cleaned_data["status"]
        if status not in ("", Response.Status.FAILED):
            raise forms.ValidationError(f"Only failed responses are exported; {status} ones are not.")
        return status


class RolloutsFilter(FilterForm):
    ignored = frozenset()

    environment = forms.CharField(required=False, max_length=160)
    model = forms.CharField(required=False, max_length=120)
    since = forms.DateField(required=False)


class RunForm(forms.Form):
    """A new run of registered models on environments of the hub. `resolved` is its config, once the form is valid."""

    name = forms.CharField(max_length=120, help_text="What you will look for in the list of runs.")
    environments = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple)
    models = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple)
    cases = forms.ChoiceField(
        choices=[("all", "all cases"), ("sample", "a random sample"), ("limit", "the first cases")],
        initial="all",
        help_text="Of each environment. A sample is drawn by the seed, so that the same seed draws the same cases.",
    )
    count = forms.IntegerField(min_value=1, required=False, label="How many", help_text="Of a sample or the first.")
    attempts = forms.IntegerField(min_value=1, max_value=1000, initial=1, help_text="Responses per case and model.")
    budget = forms.FloatField(
        required=False, min_value=0.01, label="Budget in USD", help_text="The run stops once it is spent. Empty: none."
    )
    seed = forms.IntegerField(initial=0, required=False, help_text="Draws samples, and seeds every attempt.")

    resolved: ResolvedConfig

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user
        found = list(filter_environments(user).order_by("slug"))
        self.fields["environments"].choices = [  # type: ignore[attr-defined]
            (item.slug, f"{item.title} ({item.latest.case_count:,} cases)") for item in found if item.latest
        ]
        endpoints = ModelEndpoint.objects.filter(enabled=True).values_list("name", "model")
        names = [(name, f"{name} ({model})" if user.is_staff else name) for name, model in endpoints]
        self.fields["models"].choices = names  # type: ignore[attr-defined]
        needed: dict[str, list[str]] = {}
        for item in found:
            for role in _roles(item.latest.manifest) if item.latest else ():
                needed.setdefault(role, []).append(item.title)
        self.roles = sorted(needed)
        for role in self.roles:
            self.fields[f"role_{role}"] = forms.ChoiceField(
                required=False,
                choices=[("", "none"), *names],
                label=f"Model for the role {role}",
                help_text=f"{_ROLES.get(role, '')} Needed by {', '.join(needed[role])}.".strip(),
            )

    @property
    def role_fields(self) -> list[Any]:
        return [self[f"role_{role}"] for role in self.roles]

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        if data.get("cases") in ("sample", "limit") and not data.get("count") and "count" not in self.errors:
            self.add_error("count", "Say how many.")
        if not self.errors:
            try:
                self.resolved = resolve_registered(self._config(data), user=self._user)
            except ConfigError as error:
                for problem in error.problems:
                    field = problem.path.partition("[")[0].partition(".")[0]
                    self.add_error(field if field in self.fields else NON_FIELD_ERRORS, str(problem))
        return data

    def _config(self, data: dict[str, Any]) -> dict[str, Any]:
        chosen = {} if data["cases"] == "all" else {data["cases"]: data["count"]}
        config: dict[str, Any] = {
            "name": data["name"],
            "environments": [{"environment": slug, **chosen} for slug in data["environments"]],
            "models": list(data["models"]),
            "attempts": data["attempts"],
            "seed": data["seed"] or 0,
        }
        if data["budget"]:
            config["limits"] = {"budget_usd": data["budget"]}
        roles = {role: data[f"role_{role}"] for role in self.roles if data[f"role_{role}"]}
        return {**config, "roles": roles} if roles else config


_ROLES = {
    "rubric": "Judges answers by a rubric.",
    "user": "Plays the user.",
}


def _roles(manifest: dict[str, Any]) -> set[str]:
    """The roles that a manifest names, told from its text: compiling every environment is too slow for a form."""
    roles = set()
    user = (manifest.get("harness") or {}).get("user")
    if isinstance(user, dict) and "prompt" in user:
        roles.add(str(user.get("role", "user")))
    for rule in (manifest.get("scoring") or {}).get("rules") or []:
        if rule.get("type") == "judge":
            roles.add(str(rule.get("role", "rubric")))
    return roles


class ConfigForm(forms.Form):
    """A new run from a whole config, as YAML or JSON. `resolved` is that config, once the form is valid."""

    config = forms.CharField(
        max_length=MAX_CONFIG,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "false", "class": "mono"}),
        help_text="Models are registered names: models: [small]. No paths, no ${...}.",
    )

    resolved: ResolvedConfig

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user

    def clean_config(self) -> str:
        text: str = self.cleaned_data["config"]
        try:
            self.resolved = resolve_registered_text(text, user=self._user)
        except ConfigError as error:
            raise forms.ValidationError([str(problem) for problem in error.problems]) from None
        return text


class CompareForm(FilterForm):
    ignored = frozenset()

    a = forms.IntegerField(min_value=1, max_value=2**31, label="Run A")
    b = forms.IntegerField(min_value=1, max_value=2**31, required=False, label="Run B")
    model_a = forms.CharField(required=False, max_length=120, label="Model of A")
    model_b = forms.CharField(required=False, max_length=120, label="Model of B")
