"""Template context of the page of one pair, for one assignment."""

from collections.abc import Mapping

from django.http import QueryDict

from hub.common.web.rendering import markdown_html
from hub.protocols.messages import get_prompt_messages, text_of
from hub.selectors import may_see_content
from preferences.evidence import winner
from preferences.selectors import categories
from preferences.sides import Sides
from review.evidence.display import Mark, diff_lines, final_text, text_html, turns_of
from review.evidence.findings import RuleRow, call_rows, rule_rows
from review.judge.suggestions import ShownSuggestion, visible_suggestion
from review.models import Assignment, Guideline
from review.queue.backlog import review_progress
from review.web.forms import DecisionForm
from runs.models import Response

_VERDICTS = [
    ("a", "A is better", "a"),
    ("b", "B is better", "b"),
    ("tie", "Tie", "t"),
    ("both_bad", "Both bad", "x"),
]


def pair_context(
    assignment: Assignment, form: DecisionForm | None = None, *, run: int | None = None
) -> dict[str, object]:
    """Return the context of `review/pair.html`.

    The pair of *assignment* comes from `pairs_with_responses`. *form* is the posted form, if any. If a valid form is
    shown again, it contained a first verdict, which the reviewer confirms now that the suggestion is shown.
    """
    pair, sides = assignment.pair, Sides(assignment.swapped)
    a, b = sides.ordered(pair.first, pair.second)
    suggestion = visible_suggestion(assignment=assignment)
    guideline = Guideline.objects.filter(active=True).first()
    # Scoring results contain expected values, so those of held-out environments are withheld.
    environment = pair.first.run_environment.version.environment
    rows = rule_rows(a, b) if may_see_content(assignment.reviewer, environment) else []
    right = winner(pair.first, pair.second)
    return {
        "assignment": assignment,
        "pair": pair,
        "done": assignment.state == Assignment.State.DONE,
        "prompt": [
            {"role": message.get("role", ""), "html": text_html(text_of(message))}
            for message in get_prompt_messages(a.messages)
        ],
        "sides": [_side("a", a, suggestion, rows, sides), _side("b", b, suggestion, rows, sides)],
        "differing": [row for row in rows if row.differs],
        "agreeing": [row for row in rows if not row.differs],
        "calls": call_rows(a, b),
        "decided_by_tests": bool(right),
        "acceptable": suggestion is not None and right in ("", suggestion.verdict),
        "diff": diff_lines(final_text(a), final_text(b)),
        "suggestion": suggestion,
        "suggested": sides.letter(suggestion.verdict).lower() if suggestion else "",
        "critiques": _critiques(suggestion, sides),
        "suggested_issues": [
            {"issue": issue, "note": sides.shown(issue.note), "side": sides.letter(issue.side)}
            for issue in suggestion.issues
        ]
        if suggestion
        else [],
        "hidden": pair.suggestion is not None and suggestion is None,
        "verdicts": _VERDICTS,
        "confirm": form is not None and form.is_valid(),
        "form": form or DecisionForm(),
        "entered": _form_values(assignment, form),
        "categories": categories(),
        "guideline": markdown_html(guideline.text) if guideline else "",
        "progress": review_progress(assignment.reviewer, run=run),
        "run": run,
        "recorded": pair.suggestion is not None and (pair.run.summaries.get("judge") or {}).get("recorded"),
    }


def _form_values(assignment: Assignment, form: DecisionForm | None) -> dict[str, object]:
    """Return the values of the form fields: the posted ones, else those of the draft."""
    source: Mapping[str, object] = form.data if form is not None else assignment.draft or {}
    kept = source.getlist("kept") if isinstance(source, QueryDict) else source.get("kept")
    entered = {key: source.get(key, "") for key in ("verdict", "critique", "defect", "issues")}
    # Until the form was posted or saved once, all suggested issues are checked.
    return {**entered, "kept": [int(pk) for pk in kept if str(pk).isdecimal()] if isinstance(kept, list) else None}


def _critiques(suggestion: ShownSuggestion | None, sides: Sides) -> list[str]:
    """Return the judge's critique with A and B as on this page; those of both orders if the orders disagree."""
    if suggestion is None:
        return []
    texts = suggestion.order_critiques if suggestion.order_sensitive else []
    return [sides.shown(text) for text in texts or [suggestion.critique] if text]


def _side(
    name: str, response: Response, suggestion: ShownSuggestion | None, rows: list[RuleRow], sides: Sides
) -> dict[str, object]:
    marks: dict[tuple[int, int | None], list[Mark]] = {}
    for issue in suggestion.issues if suggestion else []:
        if sides.letter(issue.side).lower() == name and issue.start is not None and issue.end is not None:
            label = f"{issue.category} ({issue.severity}): {sides.shown(issue.note)}"
            marks.setdefault((issue.message, issue.call), []).append(Mark(issue.start, issue.end, "judge", label))
    side = 0 if name == "a" else 1
    for row in rows:
        found = row.sides[side]
        if found is not None and found.blame is not None:
            tests = [test.test for test in row.tests if test.cells[side].blame is not None]
            label = "\n".join([*tests, found.reason])
            mark = Mark(found.blame.start, found.blame.end, "blamed", label)
            marks.setdefault((found.blame.message, None), []).append(mark)
    turns = turns_of(response, marks)
    return {"name": name, "title": name.upper(), "response": response, "turns": turns, "single": len(turns) == 1}
