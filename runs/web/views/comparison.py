"""Page that compares two runs, or two models of one run."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from runs.models import Run
from runs.results.comparison import ComparisonError
from runs.results.comparison import compare as compare_runs
from runs.selectors import visible_runs
from runs.web import queries
from runs.web.forms import CompareForm


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Compare the runs `?a=&b=`, or the models `?model_a=&model_b=` of them."""
    form = CompareForm(request.GET or None)
    recent = list(visible_runs(request.user)[:50])
    context: dict[str, object] = {"recent": recent, "may_add": request.user.has_perm("runs.add_run")}
    if not (form.is_bound and form.is_valid()):
        a = next((run for run in recent if run.status == Run.Status.COMPLETED), recent[0] if recent else None)
        b = queries.find_comparable_run(request.user, a) if a else None
        context |= {"a": a, "b": b, "form": form if form.is_bound else None}
        return render(request, "runs/compare.html", context, status=400 if form.is_bound else 200)
    given = form.cleaned_data
    run_a = queries.get_visible_run(request.user, given["a"])
    labels_a = queries.list_model_labels(run_a)
    if given["b"] is None and len(labels_a) < 2:  # one model of one run cannot be compared with itself
        run_b = queries.find_comparable_run(request.user, run_a)
    else:
        run_b = queries.get_visible_run(request.user, given["b"] or given["a"])
        context |= _comparison(run_a, run_b, given["model_a"], given["model_b"])
    context |= {"a": run_a, "b": run_b, "given": given, "labels_a": labels_a}
    if run_b is not None:
        context["labels_b"] = queries.list_model_labels(run_b)
    recent += [item for item in (run_a, run_b) if item is not None and item not in recent]
    return render(request, "runs/compare.html", context)


def _comparison(run_a: Run, run_b: Run, model_a: str, model_b: str) -> dict[str, object]:
    try:
        return {"comparison": compare_runs(run_a, run_b, model_a=model_a or None, model_b=model_b or None)}
    except ComparisonError as error:
        return {"error": str(error)}
