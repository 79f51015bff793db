"""Fields of a decision are derived from the model: form, REST, drafts, and the sides that values refer to."""

import pytest
from django.http import QueryDict

from preferences.decision_fields import letter_choices, shown_values, stored_values
from preferences.models import Preference
from preferences.sides import Sides
from review.web.api import DecisionIn
from review.web.forms import DecisionForm


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
