"""Pages of preferences: list, details, exports, agreement and ranking."""

from typing import TypedDict

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from hub.common.errors import UserError
from hub.common.web.pagination import keyset_page, page_or_part, render_list
from hub.web.audited import record_nothing
from hub.web.reading.spans import MarkedSpan
from preferences.decision_fields import labelled_values
from preferences.evidence import Evidence, RuleResult, SideEvidence, Withholding
from preferences.exporters import FORMATS
from preferences.insight.agreement import Agreement
from preferences.insight.plots import SIGNED, calibration_plot, ranking_plot
from preferences.insight.stored import get_agreement, get_rankings
from preferences.models import Issue, Preference
from preferences.selectors import filter_preferences, history, visible_preferences, with_related_objects
from preferences.sides import tokens_to_phrases
from preferences.web.downloads import download_preferences
from preferences.web.forms import ExportForm, PreferencesFilter
from runs.models import Response
from runs.tracking.mlflow_links import mlflow_run_id, mlflow_url

PAGE = 50


@require_safe
def preferences(request: HttpRequest) -> HttpResponse:
    """List the preferences in force, newest first; `?source=&verdict=&environment=&run=&reviewer=&since=`."""
    form = PreferencesFilter(request.GET, user=request.user)
    rows = _filtered(request, form)
    page = keyset_page(with_related_objects(rows), request, by="id", size=PAGE, descending=True)
    context = {
        "form": form,
        "page": page,
        "formats": FORMATS,
        "query": form.query_string(),
    }
    return render_list(request, page_or_part(request, "preferences/list.html", "preferences"), context, form)


def _filtered(request: HttpRequest, form: PreferencesFilter) -> QuerySet[Preference]:
    """Return the filtered preferences that the user may see; none if a filter is invalid."""
    if not form.is_valid():
        return Preference.objects.none()
    return filter_preferences(visible_preferences(request.user), **form.filters())


@require_safe
def preference(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one preference with both responses, models, run, config, version, tracking and history."""
    rows = with_related_objects(visible_preferences(request.user, superseded=True))
    shown = rows.prefetch_related("issues__category").filter(pk=pk).first()
    if shown is None:
        raise Http404(
            f"There is no preference {pk}, or its environment is private to another user, or it belongs to a pair that "
            "you may still review. In that case it is shown once you have decided the pair."
        )
    has_critique = bool(shown.critique)
    Withholding(request.user)(shown)
    issues = list(shown.issues.all())
    context = {
        "preference": shown,
        "has_critique": has_critique,
        "sides": [_side("First", shown.first, shown, issues), _side("Second", shown.second, shown, issues)],
        "rules": _rules(shown.evidence),
        "more_fields": labelled_values(shown, without=("critique",)),
        "issues": issues,
        "orders": _orders(shown),
        "history": history(shown),
        "answers": shown.answers.select_related("reviewer"),
        "mlflow": mlflow_url(request.user, shown.run),
        "mlflow_run_id": mlflow_run_id(request.user, shown.run),
    }
    return render(request, "preferences/preference.html", context)


def _side(title: str, response: Response, preference: Preference, issues: list[Issue]) -> dict[str, object]:
    """Return the context of one response of *preference*, with its *issues* as marks."""
    return {
        "title": title,
        "response": response,
        "chosen": preference.verdict == title.lower(),
        "marks": _marks(preference, [issue for issue in issues if issue.response_id == response.pk]),
    }


def _marks(preference: Preference, issues: list[Issue]) -> dict[tuple[int, int | None], list[MarkedSpan]]:
    """Return the spans of *issues* by message and tool call."""
    kind = "judge" if preference.source == Preference.Source.LLM else "human"
    marks: dict[tuple[int, int | None], list[MarkedSpan]] = {}
    for issue in issues:
        if issue.start is not None and issue.end is not None:
            label = f"{issue.category} ({issue.severity}): {tokens_to_phrases(issue.note)}".removesuffix(": ")
            marks.setdefault((issue.message, issue.call), []).append(MarkedSpan(issue.start, issue.end, kind, label))
    return marks


def _orders(preference: Preference) -> list[dict[str, str]]:
    """Return the verdict and, unless it is withheld, the critique of the judge in each order; empty without a judge."""
    labels = dict(Preference.Verdict.choices)
    critiques = preference.order_critiques or [""] * len(preference.orders)
    rows = zip(("first response", "second response"), preference.orders, critiques, strict=False)
    return [
        {"shown_first": shown, "verdict": labels.get(verdict, verdict), "critique": critique}
        for shown, verdict, critique in rows
    ]


class _RuleRow(TypedDict):
    """Stored results of one rule for the first and the second response."""

    name: str
    results: list[RuleResult | None]


def _rules(evidence: Evidence) -> list[_RuleRow]:
    """Return the stored results of each rule."""
    sides = [_results_by_rule(evidence.get("first")), _results_by_rule(evidence.get("second"))]
    return [{"name": name, "results": [side.get(name) for side in sides]} for name in {**sides[0], **sides[1]}]


def _results_by_rule(side: SideEvidence | None) -> dict[str, RuleResult]:
    return {item["rule"]: item for item in side.get("rules", [])} if side else {}


@require_safe
def export(request: HttpRequest) -> HttpResponseBase:
    """Download the filtered preferences as a .zip with dataset card and provenance."""
    form = ExportForm(request.GET, user=request.user)
    try:
        filters = form.filters()
        return download_preferences(request.user, filters, format=form.format_name)
    except UserError as error:
        messages.error(request, str(error))
        return record_nothing(redirect(f"{reverse('preferences:list')}?{form.query_string(without=['format'])}"))


@require_safe
def agreement(request: HttpRequest) -> HttpResponse:
    """Show the agreement of judge, reviewers and execution; `?environment=&run=`."""
    form = PreferencesFilter(request.GET, user=request.user)
    stored = get_agreement(request.user, form.filters()) if form.is_valid() else None
    found = stored.figures if stored else Agreement()
    context = {
        "form": form,
        "filtered": any(form.chosen.values()),
        "agreement": found,
        "computed_at": stored and stored.computed_at,
        "signed": SIGNED,
        "plot": calibration_plot(found.bins),
    }
    return render_list(request, "preferences/agreement.html", context, form)


@require_safe
def ranking(request: HttpRequest) -> HttpResponse:
    """Show the ranking of models in each environment; `?source=`: human, llm, execution, or all."""
    form = PreferencesFilter(request.GET, user=request.user)
    stored = get_rankings(request.user, form.filters()) if form.is_valid() else None
    found = stored.figures if stored else {}
    plots = [(slug, ranking_plot(item.models), item.problem) for slug, item in found.items()]
    context = {
        "form": form,
        "filtered": any(form.chosen.values()),
        "plots": plots,
        "computed_at": stored and stored.computed_at,
    }
    return render_list(request, "preferences/ranking.html", context, form)
