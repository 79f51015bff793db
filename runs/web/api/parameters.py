"""Query parameters in the description of the REST API."""

from collections.abc import Collection

from django import forms
from drf_spectacular.utils import OpenApiParameter

from hub.common.web.filters import FilterForm, known_choices


def text_parameters(*names: str) -> list[OpenApiParameter]:
    """Return the description of optional text parameters."""
    return [OpenApiParameter(name, str) for name in names]


def filter_parameters(form: type[FilterForm], *, but: Collection[str] = ()) -> list[OpenApiParameter]:
    """Return the description of the parameters that *form* reads: texts, some of them with choices."""
    return [
        OpenApiParameter(name, str, enum=_choices(form.base_fields[name]))
        for name in form.base_fields
        if name not in but
    ]


def _choices(field: forms.Field) -> list[str] | None:
    return known_choices(field) if isinstance(field, forms.ChoiceField) else None
