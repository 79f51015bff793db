"""Template context of the page of one pair, for one assignment."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict
from django.urls import reverse

from hub.protocols.messages import text_of
from hub.selectors import may_see_content
from hub.web.reading.markdown import markdown_html
from hub.web.reading.spans import MarkedSpan
from hub.web.reading.transcripts import ReadingOptions, read_messages
from hub.web.reading.view_mode import shows_source
from hub.web.reading.word_diff import find_difference
from preferences.decision_fields import letter_choices
from preferences.evidence import winner
from preferences.models import Preference
from preferences.selectors import categories
from preferences.sides import Sides
from review.evidence.findings import RuleRow, call_rows, rule_rows
from review.judge.suggestions import ShownSuggestion, is_acceptable, show_suggestion
from review.models import Assignment, Guideline, Pair
from review.queue.backlog import review_progress
from review.web.forms import DecisionForm
from runs.models import Response

_LONGEST_ID = 18  # digits; no id is longer
_KEYS = {"a": "a", "b": "b", "tie": "t", "both_bad": "x"}
MAX_KEPT = 200  # suggested issues of which a draft keeps whether they are checked
# Fields of the form that a draft keeps as text; `kept` is a list.
ENTERED = ("verdict", *Preference.DECISION_FIELDS, "defect", "issues")
_Place = tuple[int, int | None]  # indices of a message and, in it, of a tool call
_PlacedMark = tuple[_Place, MarkedSpan]


@dataclass(frozen=True, slots=True)
class PairView:
    """How the page shows the answers: as they were written (`source`), with differing words marked (`compare`)."""

    source: bool = False
    compare: bool = False

    def url(self, pair: Pair, run: int | None) -> str:
        query = {"view": "source" if self.source else "rendered"}
        query |= {"diff": "words"} if self.compare else {}
        query |= {"run": str(run)} if run is not None else {}
        return f"{reverse('review:pair', args=[pair.pk])}?{urlencode(query)}"


def pair_view(request: HttpRequest) -> PairView:
    """Return how *request* wants the answers shown: `?view=source&diff=words`."""
    return PairView(source=shows_source(request), compare=request.GET.get("diff") == "words")


def pair_context(
    assignment: Assignment,
    form: DecisionForm | None = None,
    *,
    run: int | None = None,
    view: PairView = PairView(),
    runs: Collection[int] | None = None,
) -> dict[str, object]:
    """Return the context of `review/pair.html`.

    The pair of *assignment* comes from `pairs_with_responses`. *form* is the posted form, if any. If a valid form is
    shown again, it contained a first verdict, which the reviewer confirms now that the suggestion is shown. *runs* is
    that of `review_progress`.
    """
    pair, sides = assignment.pair, Sides(assignment.swapped)
    answers = sides.ordered(pair.first, pair.second)
    suggestion = show_suggestion(assignment=assignment)
    # Scoring results contain expected values, so those of held-out environments are withheld.
    environment = pair.first.run_environment.version.environment
    rows = rule_rows(*answers) if may_see_content(assignment.reviewer, environment) else []
    return {
        "assignment": assignment,
        "pair": pair,
        "done": assignment.state == Assignment.State.DONE,
        "run": run,
        "progress": review_progress(assignment.reviewer, run=run, runs=runs),
        **_answers_context(answers, view, rows, suggestion, sides),
        **_view_urls(view, pair, run),
        **_evidence_context(answers, rows),
        **_suggestion_context(suggestion, pair, sides),
        **_form_context(assignment, form),
    }


def _answers_context(
    answers: tuple[Response, Response],
    view: PairView,
    rows: Sequence[RuleRow],
    suggestion: ShownSuggestion | None,
    sides: Sides,
) -> dict[str, object]:
    """Return the prompt and both answers, with the marks of differing words, the judge's issues and failed lines."""
    difference = find_difference(*map(_final_text, answers)) if view.compare else None
    differing = (difference.left, difference.right) if difference and difference.unit != "texts" else ([], [])
    shown = []
    for name, answer, words in zip(("a", "b"), answers, differing, strict=True):
        marks = [
            *_difference_marks(answer, words),
            *_issue_marks(name, suggestion, sides),
            *_error_marks(name, rows),
        ]
        shown.append(_side(name, answer, marks, view))
    prompt = read_messages(answers[0].prompt, ReadingOptions(source=view.source))
    return {"prompt": prompt, "sides": shown, "difference": difference}


def _evidence_context(answers: tuple[Response, Response], rows: Sequence[RuleRow]) -> dict[str, object]:
    """Return what the rules and the calls of tools say about both answers."""
    return {
        "differing": [row for row in rows if row.differs],
        "agreeing": [row for row in rows if not row.differs],
        "calls": call_rows(*answers),
    }


def _view_urls(view: PairView, pair: Pair, run: int | None) -> dict[str, object]:
    """Return the addresses of the page with its answers shown in other ways."""
    rendered, source = replace(view, source=False).url(pair, run), replace(view, source=True).url(pair, run)
    return {
        "view_links": [
            ("rendered", "Rendered", rendered, not view.source),
            ("source", "Source", source, view.source),
        ],
        "source_url": source,
        "diff_url": replace(view, compare=not view.compare).url(pair, run),
    }


def _suggestion_context(suggestion: ShownSuggestion | None, pair: Pair, sides: Sides) -> dict[str, object]:
    """Return the judge's suggestion with A and B as on this page, and whether it agrees with the tests."""
    issues = suggestion.issues if suggestion else []
    return {
        "decided_by_tests": bool(winner(pair.first, pair.second)),
        "acceptable": suggestion is not None and is_acceptable(suggestion, pair),
        "hidden": pair.suggestion is not None and suggestion is None,
        "recorded": pair.suggestion is not None and (pair.run.summaries.get("judge") or {}).get("recorded"),
        "suggestion": suggestion,
        "suggested": sides.letter(suggestion.verdict).lower() if suggestion else "",
        "critiques": _critiques(suggestion, sides),
        "suggested_issues": [
            {"issue": issue, "note": sides.shown(issue.note), "side": sides.letter(issue.side)} for issue in issues
        ],
    }


def _form_context(assignment: Assignment, form: DecisionForm | None) -> dict[str, object]:
    """Return the form with what was entered, its choices and the guideline beside it."""
    entered = _form_values(assignment, form)
    shown = form or DecisionForm(initial=entered)
    guideline = Guideline.objects.filter(active=True).first()
    return {
        "form": shown,
        "entered": entered,
        "confirm": form is not None and form.is_valid(),
        "verdicts": [(value, label, _KEYS[value]) for value, label in letter_choices(Preference.Verdict.choices)],
        "more_fields": [shown[name] for name in Preference.DECISION_FIELDS if name != "critique"],
        "categories": categories(),
        "guideline": markdown_html(guideline.text) if guideline else "",
    }


def _form_values(assignment: Assignment, form: DecisionForm | None) -> dict[str, object]:
    """Return the values of the form fields: the posted ones, else those of the draft."""
    source: Mapping[str, object] = form.data if form is not None else assignment.draft or {}
    kept = posted_kept(source) if isinstance(source, QueryDict) else source.get("kept")
    entered = {key: source.get(key, "") for key in ENTERED}
    # Until a form that showed them was posted or saved once, all suggested issues are checked.
    return {**entered, "kept": [int(pk) for pk in kept if str(pk).isdecimal()] if isinstance(kept, list) else None}


def posted_kept(posted: QueryDict) -> list[str] | None:
    """Return the ids of the suggested issues that are checked; None if the suggestion was hidden, and so were they."""
    if "blind" in posted:
        return None
    return [pk for pk in posted.getlist("kept") if pk.isdecimal() and len(pk) <= _LONGEST_ID][:MAX_KEPT]


def _critiques(suggestion: ShownSuggestion | None, sides: Sides) -> list[str]:
    """Return the judge's critique with A and B as on this page; those of both orders if the orders disagree."""
    if suggestion is None:
        return []
    texts = suggestion.order_critiques if suggestion.order_sensitive else []
    return [sides.shown(text) for text in texts or [suggestion.critique] if text]


def _final_message(response: Response) -> int:
    """Return the index of the last assistant message; -1 if there is none."""
    roles = [message.get("role") for message in response.messages]
    return max((i for i, role in enumerate(roles) if role == "assistant"), default=-1)


def _final_text(response: Response) -> str:
    last = _final_message(response)
    return text_of(response.messages[last]) if last >= 0 else ""


def _difference_marks(response: Response, differing: Sequence[tuple[int, int]]) -> Iterator[_PlacedMark]:
    """Yield marks of the words of the final answer that only this answer has."""
    if differing:
        final = _final_message(response)
        for start, end in differing:
            yield (final, None), MarkedSpan(start, end, "differs", "only in this answer")


def _issue_marks(name: str, suggestion: ShownSuggestion | None, sides: Sides) -> Iterator[_PlacedMark]:
    """Yield marks of the passages that the judge names in its issues with side *name*."""
    for issue in suggestion.issues if suggestion else []:
        if sides.letter(issue.side).lower() == name and issue.start is not None and issue.end is not None:
            label = f"{issue.category} ({issue.severity}): {sides.shown(issue.note)}"
            yield (issue.message, issue.call), MarkedSpan(issue.start, issue.end, "judge", label)


def _error_marks(name: str, rows: Sequence[RuleRow]) -> Iterator[_PlacedMark]:
    """Yield marks of the lines of code that raised an error in the tests of side *name*."""
    side = 0 if name == "a" else 1
    for row in rows:
        found = row.sides[side]
        if found is not None and found.error_line is not None:
            tests = [test.test for test in row.tests if test.cells[side].error_line is not None]
            label = "\n".join([*tests, found.reason])
            line = found.error_line
            yield (line.message, None), MarkedSpan(line.start, line.end, "error-line", label)


def _side(name: str, response: Response, placed: Iterable[_PlacedMark], view: PairView) -> dict[str, object]:
    """Return the context of one side of the pair, with the marks in its texts."""
    marks: dict[_Place, list[MarkedSpan]] = {}
    for place, mark in placed:
        marks.setdefault(place, []).append(mark)
    turns = read_messages(
        response.messages,
        ReadingOptions(source=view.source, positions=True),
        first=response.first_answer,
        marks=marks,
    )
    texts = [turn.content for turn in turns if turn.content] + [call.arguments for turn in turns for call in turn.calls]
    return {
        "name": name,
        "title": name.upper(),
        "response": response,
        "turns": turns,
        "single": len(turns) == 1,
        "hidden_marks": [mark for text in texts for mark in text.hidden if mark.kind != "differs"],
    }
