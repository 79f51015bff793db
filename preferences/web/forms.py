"""Filters of the pages and the REST of preferences, and what an export is of."""

from typing import Any

from django import forms

from preferences.exporters import FORMATS
from preferences.models import Preference

_ALL = ("", "all")


class PreferencesFilter(forms.Form):
    """A filter bar: values that make no sense are taken as none, and the bar says so."""

    source = forms.ChoiceField(required=False, choices=[_ALL, *Preference.Source.choices])
    verdict = forms.ChoiceField(required=False, choices=[_ALL, *Preference.Verdict.choices])
    environment = forms.SlugField(required=False, max_length=64)
    run = forms.IntegerField(required=False, min_value=1, max_value=2**53)
    reviewer = forms.CharField(required=False, max_length=150)
    since = forms.DateField(required=False, widget=forms.DateInput(attrs={"type": "date"}))

    def values(self) -> dict[str, Any]:
        """What was given and is sound."""
        self.is_valid()
        return {name: value for name in self.fields if (value := self.cleaned_data.get(name))}


class ExportForm(PreferencesFilter):
    """An export: the filters, and a format."""

    format = forms.ChoiceField(choices=[(name, exporter.summary) for name, exporter in FORMATS.items()])
