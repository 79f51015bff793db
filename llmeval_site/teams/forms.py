"""Forms of teams: a new member, and filters of the lists in REST."""

from django import forms

from hub.common.web.filters import FilterForm
from hub.teams.members import WHO_CREATES_ACCOUNTS

ROLES = [("manager", "manager"), ("member", "member")]


class MemberForm(forms.Form):
    """Form that adds a member."""

    user = forms.CharField(
        label="User name",
        max_length=150,
        help_text=f"Exactly as the account is written. {WHO_CREATES_ACCOUNTS}",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )


class TeamsFilter(FilterForm):
    """Filter of the list of teams: a part of the slug or the name."""

    q = forms.CharField(required=False, max_length=150)


class MembersFilter(FilterForm):
    """Filters of the list of members: a part of the user name, and the role."""

    q = forms.CharField(required=False, max_length=150)
    role = forms.ChoiceField(required=False, choices=[("", "all"), *ROLES])
