"""Forms of the review page: the decision with verdict, marks as JSON and objections to the tests; the run filter."""

import json

from django import forms
from django.http import QueryDict
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from hub.common.web.filters import FilterForm
from preferences.sides import Sides
from review.decisions import Decision
from review.issues import MarkedIssue
from review.models import Assignment

_VERDICTS = [("a", "A is better"), ("b", "B is better"), ("tie", "Tie"), ("both_bad", "Both bad")]


class MarkIn(BaseModel):
    """Mark as posted by the page; `side` is a or b."""

    model_config = ConfigDict(extra="forbid")
    side: str = Field(pattern="^[ab]$")
    category: str = Field(max_length=40)
    severity: str = "major"
    note: str = Field(default="", max_length=2000)
    message: int = Field(default=0, ge=0)
    call: int | None = Field(default=None, ge=0)
    start: int | None = Field(default=None, ge=0)
    end: int | None = Field(default=None, ge=0)
    text_hash: str = Field(default="", max_length=64)
    quote: str = ""  # only for the list on the page; the stored quote is taken from the response


MARKS = TypeAdapter(list[MarkIn])


class RunFilter(FilterForm):
    """Filter `?run=` for the pairs of one run."""

    run = forms.IntegerField(required=False, min_value=1, max_value=2**53)


class DecisionForm(forms.Form):
    """Form of a decision; `decision(assignment)` translates A and B into the sides of the pair."""

    verdict = forms.ChoiceField(choices=_VERDICTS, error_messages={"required": "Choose a verdict."})
    critique = forms.CharField(required=False, max_length=8000, widget=forms.Textarea)
    defect = forms.CharField(required=False, max_length=4000, widget=forms.Textarea)
    issues = forms.CharField(required=False, max_length=200_000, widget=forms.HiddenInput)
    kept = forms.TypedMultipleChoiceField(required=False, coerce=int)
    blind = forms.BooleanField(required=False)

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data)
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
            critique=data["critique"],
            issues=marks,
            kept=data["kept"],
            defect=data["defect"],
            blind=data["blind"],
        )
