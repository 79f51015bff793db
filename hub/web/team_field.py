"""Field of a form for the team that will own something new."""

from django import forms
from django.contrib.auth.models import User

from hub.teams.choice import initial_choice, list_choices


class TeamField(forms.ChoiceField):
    """Choice of one of the user's teams, or of none."""

    def __init__(self, user: User, *, initial: str | None = None) -> None:
        initial = initial_choice(user) if initial is None else initial
        choices = list_choices(user)
        if not initial:
            choices = [("", "choose one"), *choices]
        help_text = "Only its members will see it."
        super().__init__(choices=choices, initial=initial, label="Team", help_text=help_text)


def add_team_field(form: forms.BaseForm, user: User) -> None:
    """Add the field `team` to *form* if *user* has a choice."""
    if list_choices(user):
        form.fields["team"] = TeamField(user)
