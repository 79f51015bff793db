"""Runs of one environment that start with one click: a pilot of a few cases, then all cases."""

from collections.abc import Sequence
from dataclasses import dataclass

from django import forms
from django.contrib.auth.models import AnonymousUser, User
from pydantic import ValidationError

from hub.models import EnvironmentVersion
from hub.web.team_field import add_team_field
from runs.config.endpoints import endpoint_spec
from runs.config.parsed import ConfigError
from runs.config.registered import resolve_registered
from runs.config.resolve import ResolvedConfig
from runs.models import ModelEndpoint, Run, RunModel
from runs.providers.registry import PROVIDERS
from runs.results.forecast import RunEstimate, estimate_from_responses
from runs.selectors import list_usable_models, visible_models, visible_runs
from runs.services import DEMO_MODELS
from runs.web.new_run.form import manifest_roles

PILOT = 10  # cases
CASES = [("pilot", f"a pilot of {PILOT} cases"), ("all", "all cases")]


class StartForm(forms.Form):
    """Model and cases of a run of one environment, with defaults. `resolved` is its config if the form is valid.

    model: the model that is used if the form names none. `no_model` is the reason if it is empty.
    """

    model = forms.ChoiceField(required=False)
    cases = forms.ChoiceField(required=False, choices=CASES)

    resolved: ResolvedConfig

    def __init__(self, data: dict[str, str] | None, *, user: User, version: EnvironmentVersion, model: str) -> None:
        super().__init__(data, initial={"model": model})
        self._user = user
        self._version = version
        self._model = model
        endpoints = list(list_usable_models(user))
        self.no_model = "" if model else _why_no_model(endpoints, version.environment.slug)
        names = [(endpoint.name, describe_model(endpoint)) for endpoint in endpoints]
        self.fields["model"].choices = names  # type: ignore[attr-defined]
        add_team_field(self, user)
        self.roles = sorted(manifest_roles(version.manifest))
        for role in self.roles:
            self.fields[f"role_{role}"] = forms.ChoiceField(
                required=False, choices=names, label=f"Model for the role {role}", initial=model
            )

    def clean(self) -> dict[str, object]:
        data = self.cleaned_data
        if not data.get("model") and not self._model and not self.errors:
            self.add_error("model", self.no_model)
        if not self.errors:
            try:
                self.resolved = resolve_registered(self._config(), user=self._user)
            except ConfigError as error:
                for problem in error.problems:
                    self.add_error(self._field_at(problem.path), problem.message)
        return data

    def _field_at(self, path: str) -> str | None:
        """Return the field whose value is at *path* of the config; None if there is none."""
        if path.startswith("models"):
            return "model"
        return "team" if path == "team" and "team" in self.fields else None

    def _config(self) -> dict[str, object]:
        data = self.cleaned_data
        model, slug = data.get("model") or self._model, self._version.environment.slug
        pilot = data.get("cases") != "all" and self._version.case_count > PILOT
        config: dict[str, object] = {
            "name": f"{slug}{' pilot' if pilot else ''}, {model}"[:120],
            "environments": [
                {"environment": f"{slug}@{self._version.version}", **({"sample": PILOT} if pilot else {})}
            ],
            "models": [model],
            **({"team": data["team"]} if data.get("team") else {}),
        }
        roles = {role: data.get(f"role_{role}") or model for role in self.roles}
        return {**config, "roles": roles} if roles else config


def describe_model(endpoint: ModelEndpoint) -> str:
    """Return the name of a registered model for a choice; models that replay recordings are labelled."""
    return f"{endpoint.name} (recorded answers)" if endpoint.provider == "demo" else endpoint.name


def why_unanswered(endpoint: ModelEndpoint, slug: str) -> str:
    """Return why the registered model cannot answer the environment *slug*; "" if it can."""
    problem = PROVIDERS[endpoint.provider].unanswered(slug) if endpoint.provider in PROVIDERS else ""
    return f"{endpoint.name} {problem}." if problem else ""


def _why_no_model(endpoints: Sequence[ModelEndpoint], slug: str) -> str:
    if not endpoints:
        return "No model is registered yet."
    return f"No registered model can answer this environment: {why_unanswered(endpoints[0], slug)}"


def default_model(user: User, slug: str) -> str:
    """Return the name of the registered model that *user* evaluated last, or else the demo model, or else the first.

    Only models that can answer the environment *slug* count. Returns "" if there is none.
    """
    usable = [endpoint.name for endpoint in list_usable_models(user) if not why_unanswered(endpoint, slug)]
    own = RunModel.objects.filter(role="", label__in=usable, run__in=visible_runs(user).filter(created_by=user))
    last = own.order_by("-run_id", "position").values_list("label", flat=True).first()
    return last or next((name for name in (*DEMO_MODELS, *usable) if name in usable), "")


@dataclass(frozen=True, slots=True)
class StartChoice:
    """One of the buttons that start a run: its value of `cases`, the number of cases, and what they need."""

    value: str
    cases: int
    estimate: RunEstimate | None


def start_choices(user: User, version: EnvironmentVersion, model: str) -> list[StartChoice]:
    """Return the buttons for *version* and the registered *model*: a pilot unless there are few cases, and all."""
    endpoint = visible_models(user).filter(name=model, enabled=True).first()
    if endpoint is not None and why_unanswered(endpoint, version.environment.slug):
        endpoint = None  # there is nothing to estimate, because the run is refused
    found = []
    for value, cases in (("pilot", PILOT), ("all", version.case_count)):
        if value == "all" or cases < version.case_count:
            found.append(StartChoice(value, cases, _estimate(user, version, endpoint, cases)))
    return found


def _estimate(
    user: User, version: EnvironmentVersion, endpoint: ModelEndpoint | None, cases: int
) -> RunEstimate | None:
    if endpoint is None:
        return None
    try:
        return estimate_from_responses(version, endpoint_spec(endpoint), runs=visible_runs(user), cases=cases)
    except ValidationError:  # the registration is invalid, which the form reports
        return None


@dataclass(frozen=True, slots=True)
class Continuation:
    """Run that follows a pilot: the same model on all cases of the environment version."""

    slug: str
    model: str
    cases: int


def find_continuation(user: User | AnonymousUser, run: Run) -> Continuation | None:
    """Return how to continue a pilot with all cases; None if *run* is no pilot of one environment and one model."""
    environments = list(run.environments.select_related("version__environment")[:2])
    models = list(run.models.filter(role="").values_list("label", flat=True)[:2])
    if len(environments) != 1 or len(models) != 1 or "sample" not in environments[0].selection:
        return None
    version = environments[0].version
    latest = version.environment.latest_id == version.pk
    usable = visible_models(user).filter(name=models[0], enabled=True).exists()
    return Continuation(version.environment.slug, models[0], version.case_count) if latest and usable else None
