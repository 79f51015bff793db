"""Forms for filters and exports of preferences, used by pages and the REST API."""

from collections.abc import Mapping
from typing import cast

from django import forms
from django.contrib.auth.models import AnonymousUser, User

from hub.common.web.filters import FilterForm
from hub.web.queries import check_environment
from preferences.exporters import FORMATS
from preferences.models import Preference
from preferences.selectors import PreferenceFilters
from runs.selectors import visible_runs

_ALL = ("", "all")


class PreferencesFilter(FilterForm):
    """Filters of preferences that *user* may see."""

    source = forms.ChoiceField(required=False, choices=[_ALL, *Preference.Source.choices])
    verdict = forms.ChoiceField(required=False, choices=[_ALL, *Preference.Verdict.choices])
    environment = forms.SlugField(required=False, max_length=64)
    run = forms.IntegerField(required=False, min_value=1, max_value=2**53)
    reviewer = forms.CharField(required=False, max_length=150)
    since = forms.DateField(required=False, widget=forms.DateInput(attrs={"type": "date"}))

    def __init__(self, data: Mapping[str, object] | None = None, *, user: User | AnonymousUser) -> None:
        super().__init__(data)
        self.user = user

    def clean_environment(self) -> str:
        return check_environment(self.user, self.cleaned_data["environment"])

    def clean_run(self) -> int | None:
        """Return the number of a run that the user may see. Preferences outlive the deletion of their run."""
        run: int | None = self.cleaned_data["run"]
        if run is not None and not visible_runs(self.user, deleted=True).filter(pk=run).exists():
            raise forms.ValidationError(f"There is no run {run}.")
        return run

    def filters(self) -> PreferenceFilters:
        """Return the given filters. Raises FilterError."""
        given = {name: value for name, value in self.values().items() if value and name != "format"}
        return cast(PreferenceFilters, given)


class ExportForm(PreferencesFilter):
    """Filters and format of an export."""

    ignored = frozenset()

    format = forms.ChoiceField(choices=[(name, exporter.summary) for name, exporter in FORMATS.items()])

    @property
    def format_name(self) -> str:
        """The chosen format of a valid form."""
        return str(self.cleaned_data["format"])
