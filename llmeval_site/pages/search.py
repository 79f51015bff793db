"""The search page."""

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hub.common.storable import storable
from hub.models import Case
from hub.selectors import list_visible_environments, list_withheld_environments
from hub.web.queries import filter_environments
from runs.selectors import visible_runs

LIMIT = 15  # results of each kind


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Search for `?q=`: environments by text, runs by name, number or config hash, cases by the start of their id."""
    query = storable(request.GET.get("q", "")).strip()[:200]
    context: dict[str, object] = {"q": query}
    if query:
        visible = list_visible_environments(request.user)
        runs = visible_runs(request.user).filter(
            Q(name__icontains=query) | Q(config_hash__startswith=query.lower()) | Q(pk=_run_number(query))
        )
        withheld = list_withheld_environments(request.user).values("pk")
        cases = Case.objects.filter(version__in=visible.values("latest_id"), external_id__startswith=query).exclude(
            version__environment__in=withheld
        )
        context |= {
            "environments": filter_environments(request.user, q=query)[:LIMIT],
            "runs": runs[:LIMIT],
            "cases": cases.defer("data").select_related("version__environment").order_by("external_id")[:LIMIT],
        }
    return render(request, "site/search.html", context)


def _run_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0
