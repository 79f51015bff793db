"""Forms for filters and exports of preferences, used by pages and the REST API."""

from typing import cast

from django import forms

from hub.common.web.filters import FilterForm
from preferences.exporters import FORMATS
from preferences.models import Preference
from preferences.selectors import PreferenceFilters

_ALL = ("", "all")


class PreferencesFilter(FilterForm):
    """Filters of preferences."""

    source = forms.ChoiceField(required=False, choices=[_ALL, *Preference.Source.choices])
    verdict = forms.ChoiceField(required=False, choices=[_ALL, *Preference.Verdict.choices])
    environment = forms.SlugField(required=False, max_length=64)
    run = forms.IntegerField(required=False, min_value=1, max_value=2**53)
    reviewer = forms.CharField(required=False, max_length=150)
    since = forms.DateField(required=False, widget=forms.DateInput(attrs={"type": "date"}))

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
