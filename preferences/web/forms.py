"""Forms for filters and exports of preferences, used by pages and the REST API."""

from typing import Any

from django import forms

from hub.common.web.filters import FilterForm
from preferences.exporters import FORMATS
from preferences.models import Preference

_ALL = ("", "all")


class PreferencesFilter(FilterForm):
    """Filters of preferences."""

    source = forms.ChoiceField(required=False, choices=[_ALL, *Preference.Source.choices])
    verdict = forms.ChoiceField(required=False, choices=[_ALL, *Preference.Verdict.choices])
    environment = forms.SlugField(required=False, max_length=64)
    run = forms.IntegerField(required=False, min_value=1, max_value=2**53)
    reviewer = forms.CharField(required=False, max_length=150)
    since = forms.DateField(required=False, widget=forms.DateInput(attrs={"type": "date"}))

    def values(self) -> dict[str, Any]:
        """Return the given filters. Raises FilterError."""
        return {name: value for name, value in super().values().items() if value}


class ExportForm(PreferencesFilter):
    """Filters and format of an export."""

    ignored = frozenset()

    format = forms.ChoiceField(choices=[(name, exporter.summary) for name, exporter in FORMATS.items()])
