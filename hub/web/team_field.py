"""Fields of forms for a team: the one that will own something new, and the one by which a list is filtered."""

from collections.abc import Mapping
from typing import cast

from django import forms
from django.contrib.auth.models import AnonymousUser, User

from hub.common.web.filters import FilterForm, list_choices_in_error
from hub.teams.choice import SHARED_CHOICE, initial_choice, list_choices


class TeamField(forms.ChoiceField):
    """Choice of one of the user's teams, or of none."""

    def __init__(self, user: User, *, initial: str | None = None) -> None:
        initial = initial_choice(user) if initial is None else initial
        choices = list_choices(user)
        if not initial:
            choices = [("", "choose one"), *choices]
        help_text = "Only its members will see it."
        super().__init__(choices=choices, initial=initial, label="Team", help_text=help_text)


class OwnedFilter(FilterForm):
    """Filters of a list of what teams own. `team` is one of the user's teams, or `shared`."""

    team = forms.ChoiceField(required=False)

    def __init__(self, data: Mapping[str, object] | None = None, *, user: User | AnonymousUser) -> None:
        super().__init__(data)
        field = cast(forms.ChoiceField, self.fields["team"])
        choices = list_choices(user)
        self.has_teams = bool(choices)
        field.choices = [("", "all"), *(choices or [SHARED_CHOICE])]
        list_choices_in_error(field)


def add_team_field(form: forms.BaseForm, user: User) -> None:
    """Add the field `team` to *form* if *user* has a choice."""
    if list_choices(user):
        form.fields["team"] = TeamField(user)
