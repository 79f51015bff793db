"""Fields of forms for a team: the one that will own something new, and the one by which a list is filtered."""

from collections.abc import Mapping
from functools import cached_property
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
        self.user = user
        field = cast(forms.ChoiceField, self.fields["team"])
        field.choices = self._list_choices  # reads the teams when they are needed
        if self.data.get("team"):
            list_choices_in_error(field)

    @property
    def has_teams(self) -> bool:
        return bool(self._own_choices)

    def _list_choices(self) -> list[tuple[str, str]]:
        return [("", "all"), *(self._own_choices or [SHARED_CHOICE])]

    @cached_property
    def _own_choices(self) -> list[tuple[str, str]]:
        return list_choices(self.user)


def add_team_field(form: forms.BaseForm, user: User) -> None:
    """Add the field `team` to *form* if *user* has a choice."""
    if list_choices(user):
        form.fields["team"] = TeamField(user)
