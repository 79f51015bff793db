"""Pages of models, and the results of all models on an environment."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from hub.common.web.pagination import page_or_part, render_part
from hub.web.queries import environment_of
from runs.models import ModelEndpoint
from runs.results import history


@require_safe
def models(request: HttpRequest) -> HttpResponse:
    """List the registered models, and the other model labels of runs."""
    uses = history.model_uses(request.user)
    by_label = {use.label: use for use in uses}
    endpoints = list(ModelEndpoint.objects.all())
    names = {endpoint.name for endpoint in endpoints}
    context = {
        "endpoints": [(endpoint, by_label.get(endpoint.name)) for endpoint in endpoints],
        "others": [use for use in uses if use.label not in names],
        "may_register": request.user.is_staff and request.user.has_perm("runs.add_modelendpoint"),
        "register": reverse("admin:runs_modelendpoint_add"),
    }
    return render(request, "runs/models.html", context)


@require_safe
def model(request: HttpRequest, name: str) -> HttpResponse:
    """Show one model: its registration, and its latest result on each environment."""
    context = {
        "name": name,
        "endpoint": ModelEndpoint.objects.filter(name=name).first(),
        "results": history.model_results(request.user, name),
    }
    return render(request, "runs/model.html", context)


@require_safe
def past_results(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the latest result of each model on an environment, as a page or as a part of the environment's page."""
    environment = environment_of(request.user, slug)
    context = {"environment": environment, "results": history.environment_results(request.user, environment)}
    return render_part(request, page_or_part(request, "runs/past_results.html", "past"), context)
