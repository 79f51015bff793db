"""Filters of lists and exports from query parameters. Unknown parameters and values are errors."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import QueryDict

from hub.common.errors import UserError
from hub.common.problems import Problem

PAGING = frozenset({"after", "before", "sort", "cursor", "page_size"})


class FilterError(UserError):
    """Invalid filters. The path of each problem is the name of a parameter."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(" ".join(map(str, problems)))
        self.problems = problems

    def headline(self) -> str:
        return "A filter is invalid, so no rows are shown."

    def errors(self) -> list[dict[str, object]]:
        return [{"path": problem.path, "message": problem.message} for problem in self.problems]


def known_choices(field: forms.ChoiceField) -> list[str]:
    """Return the values of *field* that are not empty."""
    return [str(value) for value, _ in field.choices if value]  # type: ignore[misc, union-attr]


def list_choices_in_error(field: forms.ChoiceField) -> None:
    """Let the error about an unknown choice list the known ones."""
    known = ", ".join(known_choices(field))
    field.error_messages["invalid_choice"] = f"%(value)s is not known. Choose one of {known}."


class FilterForm(forms.Form):
    """Filters of a list.

    A query parameter that is neither a field nor used for paging is an error, and so is one with several values.

    `ignored` names parameters that the view reads itself.
    """

    ignored: ClassVar[frozenset[str]] = PAGING

    def __init__(self, data: Mapping[str, object] | None = None) -> None:
        super().__init__(data)
        for field in self.fields.values():
            if isinstance(field, forms.ChoiceField):
                list_choices_in_error(field)

    def clean(self) -> dict[str, object]:
        unknown = sorted(set(self.data) - set(self.fields) - self.ignored)
        known = f"Known are {', '.join(self.fields)}." if self.fields else "It has no filters."
        for name in unknown:
            self.add_error(None, forms.ValidationError(f"{name} is not a parameter of this list. {known}", code=name))
        for name in self.fields:
            if len(self._given(name)) > 1:
                self.add_error(name, f"{name} is given several times; give one value.")
        return self.cleaned_data

    def _given(self, name: str) -> set[str]:
        """Return the different values of a parameter."""
        return {value for value in self.data.getlist(name) if value} if isinstance(self.data, QueryDict) else set()

    @property
    def problems(self) -> list[Problem]:
        """Return a problem for each invalid parameter."""
        return [
            Problem(item.messages[0], str(item.code) if field == NON_FIELD_ERRORS else field)
            for field, errors in self.errors.as_data().items()
            for item in errors
        ]

    @property
    def chosen(self) -> dict[str, str]:
        """The given values, for the page to show them again."""
        return {name: self.data.get(name, "") for name in self.fields}

    def query_string(self, *, without: Collection[str] = ()) -> str:
        """Return the given values as the query of an address, except those of the fields *without*."""
        return urlencode({name: value for name, value in self.chosen.items() if value and name not in without})

    def values(self) -> dict[str, Any]:
        """Return the value of every field. Raises FilterError."""
        if not self.is_valid():
            raise FilterError(self.problems)
        return {name: self.cleaned_data.get(name, "") for name in self.fields}
