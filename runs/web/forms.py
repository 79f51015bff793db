"""Forms of the pages of runs: filters, a new run, a comparison."""

from collections.abc import Mapping, Sequence

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import NON_FIELD_ERRORS

from hub.common.errors import UserError
from hub.common.web.filters import PAGING, FilterForm
from hub.web.queries import filter_environments
from runs.config.parsed import ConfigError
from runs.config.registered import MAX_CONFIG, resolve_registered, resolve_registered_text
from runs.config.resolve import ResolvedConfig
from runs.description import read_tags
from runs.exports import COMPLETIONS
from runs.models import NOTE_LENGTH, ModelEndpoint, Response, Run
from runs.reports.files import REPORT_FILES
from runs.results.comparison.flips import Change

_ALL = ("", "all")
SOLVED = [_ALL, ("none", "by no model"), ("some", "by some"), ("all", "by all")]


class RunsFilter(FilterForm):
    q = forms.CharField(required=False, max_length=120, label="Name")
    status = forms.ChoiceField(required=False, choices=[_ALL, *((value, value) for value in Run.Status.values)])
    environment = forms.SlugField(required=False)
    model = forms.CharField(required=False, max_length=120)
    tag = forms.CharField(required=False, max_length=40)


class ResponsesFilter(FilterForm):
    q = forms.CharField(required=False, max_length=200, label="Case or reason")
    status = forms.ChoiceField(required=False, choices=[_ALL, *((value, value) for value in Response.Status.values)])
    environment = forms.CharField(required=False, max_length=64)
    model = forms.CharField(required=False, max_length=120)
    flag = forms.ChoiceField(
        required=False,
        choices=[_ALL, ("truncated", "truncated"), ("refused", "refused"), ("limit", "ended by a limit")],
    )
    reason = forms.CharField(required=False, max_length=250, label="Group of reasons")


class EnvironmentFilter(FilterForm):
    """Choice of one environment of a run; *slugs*: those that it has."""

    environment = forms.CharField(required=False, max_length=64)

    def __init__(self, data: Mapping[str, object], *, slugs: Sequence[str]) -> None:
        super().__init__(data)
        self._slugs = slugs

    def clean_environment(self) -> str:
        slug: str = self.cleaned_data["environment"]
        if slug and slug not in self._slugs:
            raise forms.ValidationError(f"{slug} is not part of this run. Choose one of {', '.join(self._slugs)}.")
        return slug


class GridFilter(EnvironmentFilter):
    """Filters of the grid of cases and models."""

    solved = forms.ChoiceField(required=False, choices=SOLVED)


class SlicesFilter(EnvironmentFilter):
    """Metadata key by whose values the cases are grouped."""

    by = forms.CharField(required=False, max_length=200)


class EpisodesFilter(FilterForm):
    done = forms.ChoiceField(required=False, choices=[_ALL, ("true", "done"), ("false", "not done")])
    group = forms.CharField(required=False, max_length=32)

    def __init__(self, data: Mapping[str, object]) -> None:
        given = {name: data[name] for name in data}  # `**` would copy the lists of a QueryDict
        super().__init__({**given, "done": str(data.get("done", "")).lower()})

    def done_value(self) -> bool | None:
        """Return the value of the filter, or None if it is not set. Raises FilterError."""
        done = self.values()["done"]
        return done == "true" if done else None


class FailuresFilter(ResponsesFilter):
    """Format of an export of failing cases, the filters of the list of responses, and those of slices and the grid."""

    ignored = frozenset()

    by = forms.CharField(required=False, max_length=200)
    value = forms.CharField(required=False, max_length=200)
    solved = forms.ChoiceField(required=False, choices=SOLVED)

    format = forms.CharField(required=False, max_length=32)
    completion = forms.ChoiceField(required=False, choices=[("", ""), *((value, value) for value in COMPLETIONS)])

    def clean_status(self) -> str:
        status: str = self.cleaned_data["status"]
        if status not in ("", Response.Status.FAILED):
            raise forms.ValidationError(f"Only failed responses can be exported, not {status} ones.")
        return status


class ReportFilter(FilterForm):
    """Format of the report of a run."""

    ignored = frozenset()

    format = forms.ChoiceField(required=False, choices=[(key, key) for key in ("", "json", *REPORT_FILES)])


class RolloutsFilter(FilterForm):
    ignored = frozenset()

    format = forms.CharField(required=False, max_length=40)
    environment = forms.CharField(required=False, max_length=160)
    model = forms.CharField(required=False, max_length=120)
    since = forms.DateField(required=False)


class DescriptionForm(forms.Form):
    """Name, tags and note of a run."""

    name = forms.CharField(max_length=120)
    tags = forms.CharField(required=False, max_length=1000, help_text="Words between commas or spaces.")
    note = forms.CharField(required=False, max_length=NOTE_LENGTH, widget=forms.Textarea(attrs={"rows": 3}))

    def clean_tags(self) -> list[str]:
        try:
            return read_tags(self.cleaned_data["tags"])
        except UserError as error:
            raise forms.ValidationError(str(error)) from None


class RunForm(forms.Form):
    """New run of registered models on environments of the hub. `resolved` is its config if the form is valid."""

    name = forms.CharField(max_length=120, help_text="Name in the list of runs.")
    environments = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple)
    models = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple)
    cases = forms.ChoiceField(
        choices=[("all", "all cases"), ("sample", "a random sample"), ("limit", "the first cases")],
        initial="all",
        help_text="Cases of each environment. The same seed always draws the same sample.",
    )
    count = forms.IntegerField(
        min_value=1, required=False, label="Number of cases", help_text="Size of the sample, or number of first cases."
    )
    attempts = forms.IntegerField(min_value=1, max_value=1000, initial=1, help_text="Responses per case and model.")
    budget = forms.FloatField(
        required=False,
        min_value=0.01,
        label="Budget in USD",
        help_text="The run stops when it is spent. Empty: no limit.",
    )
    seed = forms.IntegerField(initial=0, required=False, help_text="Random seed of samples and of attempts.")

    resolved: ResolvedConfig

    def __init__(
        self,
        data: Mapping[str, object] | None,
        *,
        user: User,
        environments: Sequence[str] = (),
        models: Sequence[str] = (),
    ) -> None:
        super().__init__(data, initial={"environments": environments, "models": models})
        self._user = user
        visible = list(filter_environments(user).order_by("slug"))
        self.fields["environments"].choices = [  # type: ignore[attr-defined]
            (item.slug, f"{item.title} ({item.latest.case_count:,} cases)") for item in visible if item.latest
        ]
        endpoints = ModelEndpoint.objects.filter(enabled=True).values_list("name", "model")
        names = [(name, f"{name} ({model})" if user.is_staff else name) for name, model in endpoints]
        self.fields["models"].choices = names  # type: ignore[attr-defined]
        titles_by_role: dict[str, list[str]] = {}
        for item in visible:
            for role in manifest_roles(item.latest.manifest) if item.latest else ():
                titles_by_role.setdefault(role, []).append(item.title)
        self.roles = sorted(titles_by_role)
        for role in self.roles:
            self.fields[f"role_{role}"] = forms.ChoiceField(
                required=False,
                choices=[("", "none"), *names],
                label=f"Model for the role {role}",
                help_text=f"{_ROLE_DESCRIPTIONS.get(role, '')} Needed by {', '.join(titles_by_role[role])}.".strip(),
            )

    @property
    def role_fields(self) -> list[forms.BoundField]:
        return [self[f"role_{role}"] for role in self.roles]

    def clean(self) -> dict[str, object]:
        data = self.cleaned_data
        if data.get("cases") in ("sample", "limit") and not data.get("count") and "count" not in self.errors:
            self.add_error("count", "Enter the number of cases.")
        if not self.errors:
            try:
                self.resolved = resolve_registered(self._config(), user=self._user)
            except ConfigError as error:
                for problem in error.problems:
                    field = problem.path.partition("[")[0].partition(".")[0]
                    self.add_error(field if field in self.fields else NON_FIELD_ERRORS, str(problem))
        return data

    def _config(self) -> dict[str, object]:
        data = self.cleaned_data
        selection = {} if data["cases"] == "all" else {data["cases"]: data["count"]}
        config: dict[str, object] = {
            "name": data["name"],
            "environments": [{"environment": slug, **selection} for slug in data["environments"]],
            "models": list(data["models"]),
            "attempts": data["attempts"],
            "seed": data["seed"] or 0,
        }
        if data["budget"]:
            config["limits"] = {"budget_usd": data["budget"]}
        roles = {role: data[f"role_{role}"] for role in self.roles if data[f"role_{role}"]}
        return {**config, "roles": roles} if roles else config


_ROLE_DESCRIPTIONS = {
    "rubric": "Judges responses by a rubric.",
    "user": "Writes the messages of the user.",
}


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


class ConfigForm(forms.Form):
    """New run from a config as YAML or JSON. `resolved` is that config if the form is valid."""

    config = forms.CharField(
        max_length=MAX_CONFIG,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "false", "class": "mono"}),
        help_text="Name models as they are registered: models: [small]. Paths and ${...} are not allowed.",
    )

    resolved: ResolvedConfig

    def __init__(self, data: Mapping[str, object] | None, *, user: User) -> None:
        super().__init__(data)
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
    also = forms.RegexField(r"^\s*\d{1,9}(\s*,\s*\d{1,9}){0,9}\s*$", required=False, max_length=200, label="More runs")
    margin = forms.FloatField(required=False, min_value=0, max_value=100, label="Equivalence margin")
    gate = forms.CharField(required=False, max_length=200, label="Gate")


class ComparedCasesFilter(CompareForm):
    """Cells of two runs, and the filters of the list of cases that they answered differently."""

    ignored = PAGING

    environment = forms.CharField(max_length=64)
    change = forms.ChoiceField(required=False, choices=[_ALL, *Change.choices])
    q = forms.CharField(required=False, max_length=200, label="Case")


class ComparedFailuresFilter(ComparedCasesFilter):
    """Side whose failed responses are exported, and the format."""

    ignored = frozenset()

    side = forms.ChoiceField(required=False, choices=[("a", "A"), ("b", "B")])
    format = forms.CharField(required=False, max_length=32)


class ComparedCaseForm(ComparedCasesFilter):
    """One case of this list. `attempt` is by default the first one with different results."""

    ignored = frozenset({"view"})

    case = forms.CharField(max_length=200)
    attempt = forms.IntegerField(required=False, min_value=1, max_value=10_000)
