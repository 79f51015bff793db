"""Forms of the review page: the decision with its fields, marks as JSON and objections to the tests; the run filter."""

import json

from django import forms
from django.http import QueryDict
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from hub.common.web.filters import FilterForm
from preferences.decision_fields import MAX_TEXT, ModelField, decision_fields, is_side_valued, is_text, letter_choices
from preferences.models import Preference
from preferences.sides import Sides
from review.decisions import MAX_DEFECT, Decision
from review.issues import MarkedIssue
from review.models import Assignment


class MarkIn(BaseModel):
    """Mark as posted by the page; `side` is a or b."""

    model_config = ConfigDict(extra="forbid")
    side: str = Field(pattern="^[ab]$")
    category: str = Field(max_length=40, pattern=r"^[\w-]+$")
    severity: str = "major"
    note: str = Field(default="", max_length=2000)
    message: int = Field(default=0, ge=0)
    call: int | None = Field(default=None, ge=0)
    start: int | None = Field(default=None, ge=0)
    end: int | None = Field(default=None, ge=0)
    text_hash: str = Field(default="", max_length=64)
    quote: str = ""  # only for the list on the page; the stored quote is taken from the response


MARKS = TypeAdapter(list[MarkIn])


def describe_marks(posted: str) -> str:
    """Return the posted marks as text with one line for each, as the page lists them; empty if they are invalid."""
    try:
        marks = MARKS.validate_json(posted or "[]")
    except ValidationError:
        return ""
    lines = []
    for mark in marks:
        quote = f"“{mark.quote}”" if mark.quote else ""
        words = (mark.side.upper(), mark.category, f"({mark.severity})", quote, mark.note)
        lines.append(" ".join(word for word in words if word))
    return "\n".join(lines)


def _form_field(field: ModelField) -> forms.Field:
    """Return the form field of a model's field. The choices of a side-valued one are named A and B."""
    found = field.formfield(max_length=field.max_length or MAX_TEXT) if is_text(field) else field.formfield()
    assert found is not None
    if isinstance(found, forms.ChoiceField) and is_side_valued(field):
        found.choices = letter_choices(field.get_choices(include_blank=field.blank))
    return found


class RunFilter(FilterForm):
    """Filter `?run=` for the pairs of one run."""

    run = forms.IntegerField(required=False, min_value=1, max_value=2**53)


class DecisionForm(forms.Form):
    """Form of a decision; `decision(assignment)` translates A and B into the sides of the pair.

    It has a field for each of `Preference.DECISION_FIELDS`.
    """

    verdict = forms.ChoiceField(
        choices=letter_choices(Preference.Verdict.choices), error_messages={"required": "Choose a verdict."}
    )
    defect = forms.CharField(required=False, max_length=MAX_DEFECT, widget=forms.Textarea)
    issues = forms.CharField(required=False, max_length=200_000, widget=forms.HiddenInput)
    kept = forms.TypedMultipleChoiceField(required=False, coerce=int)
    blind = forms.BooleanField(required=False)

    def __init__(self, data: QueryDict | None = None, *, initial: dict[str, object] | None = None) -> None:
        super().__init__(data, initial=initial)
        self.fields.update({field.name: _form_field(field) for field in decision_fields()})
        kept = data.getlist("kept") if data is not None else []
        self.fields["kept"].choices = [(item, item) for item in kept if str(item).isdecimal()]  # type: ignore[attr-defined]

    def clean_issues(self) -> list[MarkIn]:
        raw = self.cleaned_data["issues"] or "[]"
        try:
            return MARKS.validate_python(json.loads(raw))
        except (ValueError, RecursionError, ValidationError):
            raise forms.ValidationError("The marks cannot be parsed. Reload the page and mark again.") from None

    def decision(self, assignment: Assignment) -> Decision:
        data = self.cleaned_data
        sides = Sides(assignment.swapped)
        marks = [
            MarkedIssue(**{**mark.model_dump(exclude={"quote", "side"}), "side": sides.side(mark.side)})
            for mark in data["issues"]
        ]
        return Decision(
            verdict=sides.verdict(data["verdict"]),
            fields={name: data[name] for name in Preference.DECISION_FIELDS},
            issues=marks,
            kept=data["kept"],
            defect=data["defect"],
            blind=data["blind"],
        )
