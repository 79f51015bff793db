"""JSON columns keep the order of keys on every database, and so does the migration to them."""

import pytest
from django.apps import apps
from django.db import models

from hub.common.fields import OrderedJSONField
from hub.models import Case
from hub.web.queries import list_cases
from tests.factories import stored_version

UNSORTED = {"id": "c0", "input": "Zoë \x00 ☃", "row": {"zz": 1, "a": {"y": None, "b": [True]}, "m": "\ud800"}}


def keys(value: object) -> list[str]:
    """All keys of *value*, at any depth, in their order."""
    if isinstance(value, list):
        return [key for item in value for key in keys(item)]
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in [key, *keys(item)]]
    return []


def test_every_json_column_of_the_product_keeps_the_order_of_keys():
    ours = ("hub", "runs", "preferences", "review", "sandbox", "llmeval_site")
    plain = [
        f"{model.__name__}.{field.name}"
        for label in ours
        for model in apps.get_app_config(label).get_models()
        for field in model._meta.get_fields()
        if isinstance(field, models.JSONField) and not isinstance(field, OrderedJSONField)
    ]
    assert plain == []


@pytest.mark.django_db
def test_ordered_json_field_stores_values_unchanged():
    stored_version("sums", [UNSORTED])
    data = Case.objects.get().data
    assert data == UNSORTED
    assert keys(data) == keys(UNSORTED)


@pytest.mark.django_db
def test_ordered_json_field_supports_key_lookups():
    rows = [{"id": f"c{i}", "input": f"What is {i}?", "metadata": {"cluster": {"n": i}}} for i in range(3)]
    version = stored_version("sums", rows)
    clusters = Case.objects.order_by("position").values_list("data__metadata__cluster", "data__nowhere")
    assert list(clusters) == [({"n": 0}, None), ({"n": 1}, None), ({"n": 2}, None)]
    assert Case.objects.filter(data__metadata__cluster__n=1).get().external_id == "c1"
    assert Case.objects.filter(data__metadata__isnull=False).count() == 3
    assert [case.preview for case in list_cases(version, "is 2")] == ["What is 2?"]
