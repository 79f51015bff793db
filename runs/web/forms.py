"""Forms of the pages of runs: filters, the description of a run, a comparison."""

from collections.abc import Mapping, Sequence

from django import forms

from hub.common.errors import UserError
from hub.common.web.filters import PAGING, FilterForm
from hub.web.case_metadata import split_filter
from hub.web.forms import CasesForm
from hub.web.queries import check_environment
from hub.web.team_field import OwnedFilter
from runs.description import read_tags
from runs.exports import COMPLETIONS, FORMATS, ROLLOUT_FORMATS, FailureFilters
from runs.models import NOTE_LENGTH, Response, Run
from runs.reports.files import REPORT_FILES
from runs.results.comparison.flips import Change
from runs.results.comparison.gate import GateError, parse_gate
from runs.selectors import COUNTED, FLAGS, ResponseFilters
from runs.web.queries import check_model

_ALL = ("", "all")
_FAILURE_FORMATS = [("", ""), *((name, name) for name in FORMATS)]
_ROLLOUT_FORMATS = [("", ""), *((name, name) for name in ROLLOUT_FORMATS)]
SOLVED = [_ALL, ("none", "by no model"), ("some", "by some"), ("all", "by all")]


class RunsFilter(OwnedFilter):
    q = forms.CharField(required=False, max_length=120, label="Name")
    status = forms.ChoiceField(required=False, choices=[_ALL, *((value, value) for value in Run.Status.values)])
    environment = forms.SlugField(required=False)
    model = forms.CharField(required=False, max_length=120)
    tag = forms.CharField(required=False, max_length=40)

    def clean_environment(self) -> str:
        return check_environment(self.user, self.cleaned_data["environment"])

    def clean_model(self) -> str:
        return check_model(self.user, self.cleaned_data["model"])


class ModelsFilter(OwnedFilter):
    """Filter of the registered models."""


class ResponsesFilter(FilterForm):
    q = forms.CharField(required=False, max_length=200, label="Case or reason")
    status = forms.ChoiceField(required=False, choices=[_ALL, *((value, value) for value in Response.Status.values)])
    environment = forms.CharField(required=False, max_length=64)
    model = forms.CharField(required=False, max_length=120)
    flag = forms.ChoiceField(
        required=False,
        choices=[
            _ALL,
            *((flag, "ended by a limit" if flag == "limit" else flag) for flag in FLAGS),
            (COUNTED, "without quarantined cases"),
        ],
    )
    reason = forms.CharField(required=False, max_length=250, label="Group of reasons")

    def filters(self) -> ResponseFilters:
        """Return the given filters, apart from the status. Raises FilterError."""
        return ResponseFilters(**{name: value for name, value in self.values().items() if name != "status"})


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


class CasesFilter(CasesForm):
    """Filters of the cases of an environment. `meta` is a key and a value of their metadata: `level:hard`."""

    meta = forms.CharField(required=False, max_length=200)
    solved = forms.ChoiceField(
        required=False,
        choices=[
            _ALL,
            ("none", "by no response"),
            ("some", "by some"),
            ("all", "by all"),
            ("unknown", "no scored response"),
        ],
    )

    def clean_meta(self) -> str:
        meta: str = self.cleaned_data["meta"]
        if meta and not split_filter(meta)[0]:
            raise forms.ValidationError("Name a key of the metadata and a value, with a colon: level:hard.")
        return meta


class ResultsFilter(FilterForm):
    """Filter of the results on an environment."""

    model = forms.CharField(required=False, max_length=120)


class SlicesFilter(EnvironmentFilter):
    """Metadata key by whose values the cases are grouped."""

    by = forms.CharField(required=False, max_length=200)


class _AnyCaseChoiceField(forms.ChoiceField):
    """Choice whose values are lower case, and may be given in any case, such as `True` by Python clients."""

    def to_python(self, value: object) -> str:
        return str(super().to_python(value)).lower()


class EpisodesFilter(FilterForm):
    done = _AnyCaseChoiceField(required=False, choices=[_ALL, ("true", "done"), ("false", "not done")])
    group = forms.CharField(required=False, max_length=32)

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

    format = forms.ChoiceField(required=False, choices=_FAILURE_FORMATS)
    completion = forms.ChoiceField(required=False, choices=[("", ""), *((value, value) for value in COMPLETIONS)])

    def clean_status(self) -> str:
        status: str = self.cleaned_data["status"]
        if status not in ("", Response.Status.FAILED):
            raise forms.ValidationError(f"Only failed responses can be exported, not {status} ones.")
        return status

    def filters(self) -> FailureFilters:
        """Return the given filters. Raises FilterError."""
        given = self.values()
        return FailureFilters(**{name: given[name] for name in given if name not in ("status", "format")})

    @property
    def format_name(self) -> str:
        """The chosen format of a valid form; empty for the default."""
        return str(self.cleaned_data["format"])


class ReportFilter(FilterForm):
    """Format of the report of a run."""

    ignored = frozenset()

    format = forms.ChoiceField(required=False, choices=[(key, key) for key in ("", "json", *REPORT_FILES)])


class RunRolloutsFilter(FilterForm):
    """Format and filters of the rollouts of a run."""

    ignored = frozenset()

    format = forms.ChoiceField(required=False, choices=_ROLLOUT_FORMATS)
    environment = forms.CharField(required=False, max_length=160)
    model = forms.CharField(required=False, max_length=120)


class RolloutsFilter(RunRolloutsFilter):
    """Format and filters of exported episodes."""

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


class ResumeForm(forms.Form):
    """How a run is resumed.

    budget_usd: its new budget; without one it keeps its budget. retry_too_long: request responses again whose
    conversation was too long for the model.
    """

    budget_usd = forms.FloatField(required=False, min_value=0, label="New budget, US dollars")
    retry_too_long = forms.BooleanField(required=False)


class CompareForm(FilterForm):
    """Runs and models that are compared, and how the comparison is decided."""

    ignored = frozenset()

    a = forms.IntegerField(min_value=1, max_value=2**31, label="Run A")
    b = forms.IntegerField(min_value=1, max_value=2**31, required=False, label="Run B")
    model_a = forms.CharField(required=False, max_length=120, label="Model of A")
    model_b = forms.CharField(required=False, max_length=120, label="Model of B")
    also = forms.RegexField(
        r"^\s*\d{1,9}(\s*,\s*\d{1,9}){0,9}\s*$",
        required=False,
        max_length=200,
        label="More runs",
        error_messages={"invalid": "Enter the numbers of at most ten runs, separated by commas, such as 12,14."},
    )
    margin = forms.FloatField(required=False, min_value=0, max_value=100, label="Equivalence margin")
    gate = forms.CharField(required=False, max_length=200, label="Gate")

    def clean_gate(self) -> str:
        gate: str = self.cleaned_data["gate"]
        if gate:
            try:
                parse_gate(gate)
            except GateError as error:
                raise forms.ValidationError(str(error)) from None
        return gate

    @property
    def named_runs(self) -> list[int]:
        """Return the valid ones of the numbers of runs A and B; other fields of the form may be invalid."""
        return [self.cleaned_data[name] for name in ("a", "b") if self.is_bound and self.cleaned_data.get(name)]

    @property
    def more_runs(self) -> list[int]:
        """Return the numbers of the runs that are compared besides A and B."""
        return [int(number) for number in self.cleaned_data["also"].split(",") if number]

    @property
    def margin_share(self) -> float | None:
        """Return the equivalence margin as a share of cases; None without one."""
        margin: float | None = self.cleaned_data["margin"]
        return margin / 100 if margin else None


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
    format = forms.ChoiceField(required=False, choices=_FAILURE_FORMATS)


class ComparedCaseForm(ComparedCasesFilter):
    """One case of this list, by default the first. `attempt` is by default the first one with different results."""

    ignored = frozenset({"view"})

    case = forms.CharField(required=False, max_length=200)
    attempt = forms.IntegerField(required=False, min_value=1, max_value=10_000)
