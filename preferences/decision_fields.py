"""Fields that a reviewer fills in besides the verdict: `Preference.DECISION_FIELDS`.

The form, REST, drafts, exports, pages and the admin are derived from the model's fields. Reviewers see the
responses as A and B, and a value may refer to them in two ways. Free text names them by the tokens of
`preferences.sides`. A field with the choices `first` and `second` is side-valued, and its choices are shown as A and B.
Other values are stored as they were entered.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from django.db import models
from django.utils.text import capfirst

from hub.protocols.messages import JSON
from preferences.models import Preference
from preferences.sides import Sides, tokens_to_phrases

MAX_TEXT = 8000  # characters of a text without a limit of its own

ModelField: TypeAlias = "models.Field[object, object]"


def decision_fields() -> list[ModelField]:
    """Return the model's fields in the order of the form."""
    found = [Preference._meta.get_field(name) for name in Preference.DECISION_FIELDS]
    return [field for field in found if isinstance(field, models.Field)]


def is_text(field: ModelField) -> bool:
    """Return whether *field* is free text."""
    return isinstance(field, models.CharField | models.TextField) and not field.choices


def is_side_valued(field: ModelField) -> bool:
    """Return whether the choices of *field* are the two sides."""
    return {"first", "second"} <= {value for value, _ in field.flatchoices}


def letter_choices(choices: Iterable[tuple[object, object]]) -> list[tuple[str, str]]:
    """Return side-valued *choices* as shown to a reviewer: ("first", "first is better") is ("a", "A is better")."""
    letters = {"first": "a", "second": "b"}
    return [(letters.get(str(value), str(value)), _name_sides(str(label))) for value, label in choices]


def stored_values(values: Mapping[str, object], sides: Sides, *, choices: bool) -> dict[str, object]:
    """Return what a reviewer entered, by name, as the model stores it. *choices*: see `Sides.letters_to_tokens`."""
    stored = {field.name: values[field.name] for field in decision_fields() if field.name in values}
    for field in decision_fields():
        value = stored.get(field.name)
        if isinstance(value, str) and is_side_valued(field):
            stored[field.name] = sides.verdict(value)
        elif isinstance(value, str) and is_text(field):
            stored[field.name] = sides.letters_to_tokens(value.strip(), choices=choices)
    return stored


def shown_values(preference: Preference, sides: Sides) -> dict[str, JSON]:
    """Return the values of *preference* as its form shows them."""
    shown = {}
    for field in decision_fields():
        value = getattr(preference, field.name)
        if isinstance(value, str):
            value = sides.letter(value).lower() if is_side_valued(field) else sides.shown(value)
        shown[field.name] = value
    return shown


def exported_values(preference: Preference) -> dict[str, JSON]:
    """Return the values of *preference* for exports: texts name the chosen and the rejected response."""
    return _read_values(preference, preference.tokens_to_phrases)


def labelled_values(preference: Preference, *, without: tuple[str, ...] = ()) -> list[tuple[str, object]]:
    """Return the label and the value of each field that is filled in, for pages. Texts name first and second."""
    values = _read_values(preference, tokens_to_phrases)
    return [
        (capfirst(str(field.verbose_name)), dict(field.flatchoices).get(values[field.name], values[field.name]))
        for field in decision_fields()
        if values[field.name] not in (None, "") and field.name not in without
    ]


def _read_values(preference: Preference, replace_tokens: Callable[[str], str]) -> dict[str, JSON]:
    values = {field.name: getattr(preference, field.name) for field in decision_fields()}
    texts = {field.name for field in decision_fields() if is_text(field)}
    return {name: replace_tokens(value) if name in texts else value for name, value in values.items()}


def _name_sides(label: str) -> str:
    named = re.sub(r"\b(first|second)\b", lambda match: "A" if match[1] == "first" else "B", label)
    return capfirst(named)
