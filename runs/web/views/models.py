"""Pages of models."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from hub.common.web.pagination import Order, keyset_page, page_or_part, render_list, render_part
from runs.results import history
from runs.selectors import visible_models
from runs.web.forms import ModelsFilter
from runs.web.model_form import is_key_set
from runs.web.queries import filter_models, is_known_model, may_register_models

_RESULTS_PER_PAGE = 50


@require_safe
def models(request: HttpRequest) -> HttpResponse:
    """List the registered models, and the other model labels of runs; with `?team=` only models of that team."""
    form = ModelsFilter(request.GET, user=request.user)
    uses = history.model_uses(request.user)
    by_label = {use.label: use for use in uses}
    endpoints = list(filter_models(request.user, **form.values())) if form.is_valid() else []
    names = {endpoint.name for endpoint in endpoints}
    filtered = any(form.chosen.values())
    context = {
        "form": form,
        "chosen": form.chosen,
        "filtered": filtered,
        "endpoints": [(endpoint, by_label.get(endpoint.name)) for endpoint in endpoints],
        "others": [] if filtered or form.problems else [use for use in uses if use.label not in names],
        "may_register": may_register_models(request.user),
        "key_states": {item.name: is_key_set(item.api_key_env) for item in endpoints if item.api_key_env},
    }
    return render_list(request, "runs/models.html", context, form)


@require_safe
def model(request: HttpRequest, name: str) -> HttpResponse:
    """Show one model: its registration, and its latest result on each environment."""
    endpoint = visible_models(request.user).filter(name=name).first()
    if endpoint is None and not is_known_model(request.user, name):
        raise Http404(f"No model is registered as {name}, and no run that you may see has used this label.")
    versions = history.versions_of_model(request.user, name)
    by_environment = Order("environment", "environment__slug")
    page = keyset_page(versions, request, by="id", size=_RESULTS_PER_PAGE, order=by_environment)
    context: dict[str, object] = {
        "name": name,
        "endpoint": endpoint,
        "key_set": is_key_set(endpoint.api_key_env) if endpoint and endpoint.api_key_env else None,
        "may_register": may_register_models(request.user),
        "results": history.model_results(request.user, name, page.rows),
        "page": page,
    }
    return render_part(request, page_or_part(request, "runs/model.html", "results"), context)
