"""Forms of the hub: filters of the catalogue and of cases, upload and draft of a bundle, report of a wrong case."""

from django import forms
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from hub.bundles.archive import MAX_PATH, MAX_UNPACKED
from hub.common.web.filters import FilterForm
from hub.harnesses.registry import HARNESSES
from hub.manifest.schema import CATEGORIES
from hub.models import Environment
from hub.web.team_field import OwnedFilter, add_team_field

MAX_UPLOAD = MAX_UNPACKED  # bytes; the archive of a bundle that cannot be compressed is as large as its content


class CatalogueForm(OwnedFilter):
    """Filters of the catalogue: `?q=&category=&harness=&tag=&state=&team=`."""

    q = forms.CharField(required=False, max_length=200, label="Text")
    category = forms.ChoiceField(required=False, choices=[("", "all"), *((name, name) for name in CATEGORIES)])
    harness = forms.ChoiceField(required=False, choices=[("", "all"), *((name, name) for name in sorted(HARNESSES))])
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
        help_text="The folder with environment.yaml as a .zip. It is checked and stored; its code is not run yet.",
        widget=forms.ClearableFileInput(attrs={"accept": ".zip,application/zip"}),
    )

    def __init__(
        self,
        data: QueryDict | None = None,
        files: "MultiValueDict[str, UploadedFile[bytes]] | None" = None,
        *,
        user: User,
    ) -> None:
        super().__init__(data, files)
        add_team_field(self, user)
        if "team" in self.fields:
            self.fields["team"].help_text = "Of a new environment. A new version stays with its environment."

    def clean_bundle(self) -> "UploadedFile[bytes]":
        bundle: UploadedFile[bytes] = self.cleaned_data["bundle"]
        if (bundle.size or 0) > MAX_UPLOAD:
            raise forms.ValidationError(f"The file has {bundle.size:,} bytes; at most {MAX_UPLOAD:,} are allowed.")
        return bundle


class DraftForm(forms.Form):
    """An edited file of a draft: its path, its text, and the digest of the text that was edited.

    *upload* is the content of a file, and *other* its path; without *upload*, *other* is a file to open.
    """

    path = forms.CharField(max_length=MAX_PATH)
    text = forms.CharField(required=False, strip=False)
    seen = forms.CharField(required=False, max_length=64)
    upload = forms.FileField(required=False, allow_empty_file=True, label="Upload a file")
    other = forms.CharField(required=False, max_length=MAX_PATH, label="Name in the bundle")


class DefectForm(forms.Form):
    """Report of a wrong case."""

    description = forms.CharField(
        label="What is wrong",
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text="Name the part (question, target, tests) and explain: a counterexample, a source, the right answer.",
    )
