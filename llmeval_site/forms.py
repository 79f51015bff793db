"""Forms of the pages that belong to no app."""

from datetime import timedelta

from django import forms

from llmeval_site.models import ApiToken

LIFETIMES = [("30", "30 days"), ("90", "90 days"), ("365", "a year"), ("never", "does not expire")]


class TokenForm(forms.Form):
    """A new token for REST."""

    name = forms.CharField(max_length=120, required=False, help_text="What it is for.")
    scopes = forms.MultipleChoiceField(
        choices=ApiToken.Scope.choices, widget=forms.CheckboxSelectMultiple, initial=["read"]
    )
    expires = forms.ChoiceField(choices=LIFETIMES, initial="90")

    def lifetime(self) -> timedelta | None:
        """How long the token is to be valid; None: for good."""
        chosen = self.cleaned_data["expires"]
        return None if chosen == "never" else timedelta(days=int(chosen))
