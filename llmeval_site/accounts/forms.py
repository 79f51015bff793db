"""Forms of the account page."""

from datetime import timedelta

from django import forms

from llmeval_site.models import ApiToken

LIFETIMES = [("30", "30 days"), ("90", "90 days"), ("365", "a year"), ("never", "does not expire")]


class TokenForm(forms.Form):
    """Form that creates a REST token."""

    name = forms.CharField(max_length=120, required=False, help_text="What you will use the token for.")
    scopes = forms.MultipleChoiceField(
        choices=ApiToken.Scope.choices, widget=forms.CheckboxSelectMultiple, initial=["read"]
    )
    expires = forms.ChoiceField(choices=LIFETIMES, initial="90")

    def lifetime(self) -> timedelta | None:
        """Return how long the token is valid, or None if it does not expire."""
        chosen = self.cleaned_data["expires"]
        return None if chosen == "never" else timedelta(days=int(chosen))
