"""Pages that compare two runs, or two models of one run: figures, the cases that differ, one case side by side."""

from collections.abc import Iterable, Mapping

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hub.common.errors import UserError
from hub.common.web.pagination import keyset_page, page_or_part, render_list
from hub.models import Case
from hub.web.reading.word_diff import MAX_COMPARED, word_diff
from runs.exports import FailureFilters
from runs.models import Run
from runs.reports.comparison.files import difference_chart, gate_lines
from runs.reports.comparison.matrices import comparison_matrices
from runs.reports.comparison.rows import compared_rows
from runs.results.comparison.flips import Change, Flip, list_flips
from runs.results.comparison.gate import decide_gate
from runs.results.comparison.pair import ComparedCells, ComparisonError, find_cells
from runs.results.comparison.several import compare_all
from runs.results.comparison.side_by_side import find_compared_case
from runs.selectors import list_model_labels, visible_runs
from runs.web import queries
from runs.web.downloads import download_failures, failure_formats
from runs.web.forms import ComparedCaseForm, ComparedCasesFilter, ComparedFailuresFilter, CompareForm

CASES_PER_PAGE = 50
RUNS_OFFERED = 50
VERDICTS = 12  # sentences above the tables of a comparison


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Compare the runs `?a=&b=`, or the models `?model_a=&model_b=` of them."""
    form = CompareForm(request.GET or None)
    if form.is_bound and form.is_valid():
        return render(request, "runs/compare.html", _compared_runs(request, form))
    return render(request, "runs/compare.html", _proposed_runs(request, form), status=400 if form.is_bound else 200)


def _proposed_runs(request: HttpRequest, form: CompareForm) -> dict[str, object]:
    """Return the context of a page without a comparison: with the latest runs, or with those that *form* names."""
    named = {str(run.pk): run for run in visible_runs(request.user).filter(pk__in=form.named_runs)}
    recent = _recent_runs(request, named.values())
    latest = next((run for run in recent if run.status == Run.Status.COMPLETED), recent[0] if recent else None)
    a = named.get(form.chosen["a"], latest)
    b = named.get(form.chosen["b"]) or (queries.find_comparable_run(request.user, a) if a else None)
    context = _form_context(request, recent, a, b)
    if not form.is_bound:
        return context | {"given": form.chosen}
    return context | _model_labels(a, b) | {"given": form.chosen, "form": form}


def _compared_runs(request: HttpRequest, form: CompareForm) -> dict[str, object]:
    """Return the context of a page with the comparison of the runs that the valid *form* names."""
    given = form.cleaned_data
    a = queries.get_visible_run(request.user, given["a"])
    b: Run | None
    if given["b"] is None and len(list_model_labels(a)) < 2:
        b = queries.find_comparable_run(request.user, a)  # one model of one run cannot be compared with itself
    else:
        b = queries.get_visible_run(request.user, given["b"] or given["a"])
    context = _form_context(request, _recent_runs(request, [run for run in (a, b) if run is not None]), a, b)
    context |= _model_labels(a, b) | {"given": given}
    if b is not None:
        more = [queries.get_visible_run(request.user, pk) for pk in form.more_runs]
        context |= _comparison([a, b, *more], form)
    return context


def _recent_runs(request: HttpRequest, named: Iterable[Run]) -> list[Run]:
    """Return the runs that the page offers: the latest ones, then those of *named* that are not among them."""
    return list(dict.fromkeys([*visible_runs(request.user)[:RUNS_OFFERED], *named]))


def _form_context(request: HttpRequest, recent: list[Run], a: Run | None, b: Run | None) -> dict[str, object]:
    return {"recent": recent, "a": a, "b": b, "may_add": request.user.has_perm("runs.add_run")}


def _model_labels(a: Run | None, b: Run | None) -> dict[str, object]:
    """Return the labels of the models of both runs."""
    return {f"labels_{side}": list_model_labels(run) for side, run in (("a", a), ("b", b)) if run}


def _comparison(runs: list[Run], form: CompareForm) -> dict[str, object]:
    """Return the comparison of several runs, or of all models of one, with its verdicts, chart and gate."""
    given = form.cleaned_data
    try:
        found = compare_all(runs, model_a=given["model_a"] or None, model_b=given["model_b"] or None)
        gate = decide_gate(given["gate"], found) if given["gate"] else None
    except UserError as error:
        return {"error": str(error)}
    rows = compared_rows(found, margin=form.margin_share)
    return {
        "comparisons": found,
        "notes": list(dict.fromkeys(note for comparison in found for note in comparison.notes)),
        "verdicts": [row.verdict for row in sorted(rows, key=lambda row: not row.is_significant)[:VERDICTS]],
        "more_verdicts": max(0, len(rows) - VERDICTS),
        "chart": difference_chart(rows),
        "gate": gate,
        "gate_lines": gate_lines(gate) if gate else [],
        "matrices": comparison_matrices(rows) if len(found) > 1 else [],
    }


@require_safe
def failures(request: HttpRequest) -> HttpResponseBase:
    """Return the failed responses of `?side=` to the cases that the list of differing cases shows, in `?format=`."""
    form = ComparedFailuresFilter(request.GET)
    if not form.is_valid():
        return render(request, "runs/compared_cases.html", {"form": form, "chosen": form.chosen}, status=400)
    try:
        cells = _cells(request, form)
        given = form.cleaned_data
        run, model = (cells.run_b, cells.model_b) if given["side"] == "b" else (cells.run_a, cells.model_a)
        shown = set(_cases(cells, list_flips(cells), form).values_list("external_id", flat=True))
        filters = FailureFilters(model=model.label, environment=given["environment"], cases=shown)
        exportable = queries.get_exportable_run(request.user, run.pk)
        return download_failures(exportable, filters, format=given["format"]).response
    except UserError as error:
        context = {"form": form, "chosen": form.chosen, "error": str(error)}
        return render(request, "runs/compared_cases.html", context, status=400)


@require_safe
def cases(request: HttpRequest) -> HttpResponse:
    """List the cases with different results, by `?a=&b=&model_a=&model_b=&environment=&change=&q=`."""
    form = ComparedCasesFilter(request.GET)
    context: dict[str, object] = {"form": form, "chosen": form.chosen, "changes": Change.choices}
    if form.is_valid():
        try:
            cells = _cells(request, form)
        except ComparisonError as error:
            return render(request, "runs/compared_cases.html", context | {"error": str(error)}, status=400)
        flips = list_flips(cells)
        counts = {change: sum(flip.change == change for flip in flips.values()) for change in Change}
        context |= {
            "cells": cells,
            "page": keyset_page(_cases(cells, flips, form), request, by="position", size=CASES_PER_PAGE),
            "flips": flips,
            "counts": counts,
            "formats": failure_formats(),
            "state": form.query_string(),
            "several": max(cells.run_a.attempts, cells.run_b.attempts) > 1,
        }
    template = page_or_part(request, "runs/compared_cases.html", "cases")
    return render_list(request, template, context, form)


@require_safe
def case(request: HttpRequest) -> HttpResponse:
    """Show the responses of both sides to `?case=`, by default the first of the list, next to each other.

    The other parameters are those of the list.
    """
    form = ComparedCaseForm(request.GET)
    if not form.is_valid():
        return render(request, "runs/compared_case.html", {"form": form}, status=400)
    given = form.cleaned_data
    try:
        cells = _cells(request, form)
    except ComparisonError as error:
        return render(request, "runs/compared_case.html", {"form": form, "error": str(error)}, status=400)
    flips = list_flips(cells)
    names = list(_cases(cells, flips, form).order_by("position").values_list("external_id", flat=True))
    shown = given["case"] or next(iter(names), "")
    if not shown:
        same = "Both sides have the same results, and where both are wrong, the same answers."
        return render(request, "runs/compared_case.html", {"form": form, "error": same})
    compared = find_compared_case(cells, flips, shown)
    if compared.default_attempt is None:
        raise Http404(f"There is no case {shown} to which both runs have a response.")
    attempt = given["attempt"] or compared.default_attempt
    if attempt not in compared.attempts:
        raise Http404(f"Attempt {attempt} does not have a response on both sides.")
    a, b = compared.responses_a[attempt], compared.responses_b[attempt]
    queries.hide_withheld_reasons(request.user, [a, b])
    context = {
        "cells": cells,
        "name": shown,
        "flip": compared.flip,
        "left_out": compared.is_left_out,
        "sides": [("A", cells.run_a, cells.model_a, a), ("B", cells.run_b, cells.model_b, b)],
        "diff": word_diff(a.text, b.text),
        "same": a.text == b.text,
        "most": MAX_COMPARED,
        "attempts": compared.attempts,
        "attempt": attempt,
        "state": form.query_string(without=["case", "attempt"]),
        **_position(names, shown),
    }
    return render(request, "runs/compared_case.html", context)


def _position(names: list[str], shown: str) -> dict[str, object]:
    """Return the position of a case in the list of *names*, from 1 on, and its neighbours; "" if there is none."""
    at = names.index(shown) if shown in names else None
    return {
        "number": None if at is None else at + 1,
        "count": len(names),
        "before": names[at - 1] if at else "",
        "after": names[at + 1] if at is not None and at + 1 < len(names) else "",
    }


def _cells(request: HttpRequest, form: ComparedCasesFilter) -> ComparedCells:
    given = form.cleaned_data
    run_a = queries.get_visible_run(request.user, given["a"])
    run_b = queries.get_visible_run(request.user, given["b"] or given["a"])
    return find_cells(
        run_a, run_b, model_a=given["model_a"], model_b=given["model_b"], environment=given["environment"]
    )


def _cases(cells: ComparedCells, flips: Mapping[str, Flip], form: ComparedCasesFilter) -> QuerySet[Case]:
    change, q = form.cleaned_data["change"], form.cleaned_data["q"]
    wanted = [flip.pk for flip in flips.values() if not change or flip.change == change]
    rows = Case.objects.filter(version_id=cells.environment_a.version_id, pk__in=wanted).only("external_id", "position")
    return rows.filter(external_id__icontains=q) if q else rows
