"""Forms of the hub's pages: the catalogue's filters, a bundle to upload, a claim that a case is wrong."""

from typing import Any

from django import forms

from hub.bundles.archive import MAX_UNPACKED
from hub.common.web.filters import FilterForm
from hub.manifest.schema import CATEGORIES
from hub.models import Environment

MAX_UPLOAD = MAX_UNPACKED  # bytes; a bundle that does not shrink is as large packed


class CatalogueForm(FilterForm):
    """`?q=&category=&tag=&state=`"""

    q = forms.CharField(required=False, max_length=200, label="Text")
    category = forms.ChoiceField(required=False, choices=[("", "all"), *((name, name) for name in CATEGORIES)])
    tag = forms.SlugField(required=False)
    state = forms.ChoiceField(
        required=False, choices=[("", "in use"), *((value, value) for value in Environment.Visibility.values)]
    )


class CasesForm(FilterForm):
    """`?q=`: text in a case's id or input."""

    q = forms.CharField(required=False, max_length=200, label="Text")


class UploadForm(forms.Form):
    """A bundle as a .zip."""

    bundle = forms.FileField(
        label="Bundle (.zip)",
        help_text="The folder with environment.yaml, packed. Nothing in it is run; it is checked and stored.",
        widget=forms.ClearableFileInput(attrs={"accept": ".zip,application/zip"}),
    )

    def clean_bundle(self) -> Any:
        bundle = self.cleaned_data["bundle"]
        if bundle.size > MAX_UPLOAD:
            raise forms.ValidationError(f"The file has {bundle.size:,} bytes; at most {MAX_UPLOAD:,} are taken.")
        return bundle


class DefectForm(forms.Form):
    """A claim that a case is wrong."""

    description = forms.CharField(
        label="What is wrong",
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text="Name the part (question, target, tests) and show why: a counterexample, a source, the right answer.",
    )
