"""Fields of a decision are derived from the model: form, REST, drafts, pages, exports, and the sides in values."""

import io
import json
import re
import zipfile

import pyarrow.parquet as pq
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.http import QueryDict
from django.test import Client
from django.utils.text import capfirst

from preferences.decision_fields import decision_fields, letter_choices, shown_values, stored_values
from preferences.models import Preference
from preferences.sides import Sides
from review.models import Assignment
from review.web.api import DecisionIn
from review.web.forms import DecisionForm
from tests.review.pages import waiting_pairs


@pytest.fixture
def more_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """`first_verdict` is side-valued, `confidence` is a number."""
    monkeypatch.setattr(Preference, "DECISION_FIELDS", ("critique", "first_verdict", "confidence"))


@pytest.mark.parametrize(("swapped", "side"), [(False, "first"), (True, "second")])
def test_values_that_name_a_side_are_stored_independently_of_the_order(
    more_fields: None, swapped: bool, side: str
) -> None:
    entered = {"critique": " Response A is short. ", "first_verdict": "a", "confidence": 0.5}
    sides = Sides(swapped)
    stored = stored_values(entered, sides, choices=False)
    assert stored == {"critique": f"Response ⟦{side}⟧ is short.", "first_verdict": side, "confidence": 0.5}
    shown = shown_values(Preference(**stored), sides)
    assert shown == {"critique": "Response A is short.", "first_verdict": "a", "confidence": 0.5}


def test_values_that_name_no_side_are_stored_unchanged(more_fields: None) -> None:
    assert stored_values({"first_verdict": "tie", "confidence": None}, Sides(True), choices=False) == {
        "first_verdict": "tie",
        "confidence": None,
    }


def test_form_has_the_fields_of_the_model_with_sides_named_by_letters(more_fields: None) -> None:
    form = DecisionForm()
    assert [value for value, _ in form.fields["first_verdict"].choices] == ["", "a", "b", "tie", "both_bad"]
    assert not form.fields["confidence"].required and not form.fields["critique"].required
    assert DecisionForm(QueryDict("verdict=a&confidence=high")).errors.keys() == {"confidence"}


def test_choices_name_the_sides_by_letters() -> None:
    assert letter_choices(Preference.Verdict.choices) == [
        ("a", "A is better"),
        ("b", "B is better"),
        ("tie", "Tie"),
        ("both_bad", "Both bad"),
    ]


def test_form_and_rest_accept_the_same_fields_with_the_same_limits() -> None:
    form, serializer = DecisionForm(), DecisionIn()
    for name in Preference.DECISION_FIELDS:
        assert form.fields[name].required == serializer.fields[name].required, name
    for size, valid in ((8000, True), (8001, False)):
        data = QueryDict(f"verdict=a&critique={'x' * size}")
        assert DecisionForm(data).is_valid() == valid
        assert DecisionIn(data={"verdict": "A", "critique": "x" * size}).is_valid() == valid


def entered_value(name: str) -> object:
    """Return a value that the form accepts for a field."""
    field = next(field for field in decision_fields() if field.name == name)
    if field.choices:
        return next(value for value, _ in DecisionForm().fields[name].choices if value)
    return {"BooleanField": True, "FloatField": 0.5, "IntegerField": 3}.get(field.get_internal_type(), "No side named.")


@pytest.mark.django_db
@pytest.mark.parametrize("name", Preference.DECISION_FIELDS)
def test_each_field_is_in_the_form_rest_exports_pages_and_the_admin(client: Client, name: str) -> None:
    (pair,) = waiting_pairs(1)
    client.force_login(User.objects.create_superuser("root"))
    entered = entered_value(name)
    client.get("/review/")
    assert f'name="{name}"' in client.get(f"/review/{pair.pk}/").content.decode()
    client.post(f"/review/{pair.pk}/draft/", {"verdict": "a", name: entered})
    assert Assignment.objects.get().draft[name] == str(entered)
    client.post(f"/review/{pair.pk}/decision/", {"verdict": "a", name: entered})
    stored = Preference.objects.get()
    value = getattr(stored, name)
    assert value not in ("", None)
    (row,) = client.get("/api/v1/preferences/").json()["results"]
    assert row[name] == value
    for format, file in (("jsonl", "data.jsonl"), ("trl", "provenance.jsonl"), ("parquet", "data.parquet")):
        packed = client.get(f"/preferences/export/?format={format}").getvalue()
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            data = archive.read(file)
        exported = pq.read_table(io.BytesIO(data)).to_pylist()[0] if format == "parquet" else json.loads(data)
        assert exported[name] == value, format
    label = capfirst(str(Preference._meta.get_field(name).verbose_name))
    for address in (f"/preferences/{stored.pk}/", f"/admin/preferences/preference/{stored.pk}/change/"):
        assert label in client.get(address).content.decode(), address
    schema = client.get("/api/v1/schema/", headers={"Accept": "application/vnd.oai.openapi+json"}).content
    assert name in json.loads(schema)["components"]["schemas"]["DecisionIn"]["properties"]


@pytest.mark.parametrize("name", Preference.DECISION_FIELDS)
def test_each_field_is_documented(name: str) -> None:
    page = (settings.BASE_DIR / "docs" / "review.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{name}` \|", page, re.MULTILINE)
