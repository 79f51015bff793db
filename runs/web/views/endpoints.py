"""Pages that register, change and test models. They are for staff with the permission to register models."""

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST
from pydantic import ValidationError

from hub.common.web.users import signed_in_user
from hub.web.audited import record_move, record_nothing
from runs.config.endpoints import endpoint_spec
from runs.execution.model_check import check_model
from runs.models import ModelEndpoint
from runs.selectors import visible_models
from runs.web.model_form import PRESETS, Preset, SiteModelEndpointForm, is_key_set
from runs.web.queries import may_register_models

View = Callable[..., HttpResponse]


def _for_registrars(view: View) -> View:
    @wraps(view)
    def checked(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if not may_register_models(request.user):
            raise PermissionDenied("Only staff with the permission to register models may do this.")
        return view(request, *args, **kwargs)

    return checked


@require_http_methods(["GET", "POST"])
@_for_registrars
def new(request: HttpRequest) -> HttpResponse:
    """Register a model, beginning with the values of `?preset=`."""
    preset = next((item for item in PRESETS if item.key == request.GET.get("preset")), None)
    if request.method == "POST":
        form = SiteModelEndpointForm(request.POST, user=signed_in_user(request))
        if form.is_valid():
            return _save(request, form)
    else:
        initial = _initial(preset.base_url, preset.api_key_env) if preset else {}
        form = SiteModelEndpointForm(initial=initial, user=signed_in_user(request))
    if preset:
        form.fields["model"].help_text = f"For example {preset.example}."
    return _show(request, form, {"presets": PRESETS, "preset": preset, "key_missing": _missing_key(preset)})


def _missing_key(preset: Preset | None) -> str:
    """Return the variable of the preset if this installation does not allow it as a key variable."""
    name = preset.api_key_env if preset else ""
    return name if name and name not in settings.API_KEY_VARIABLES else ""


def _initial(base_url: str, variable: str) -> dict[str, str]:
    return {"base_url": base_url, "api_key_env": variable if variable in settings.API_KEY_VARIABLES else ""}


@require_http_methods(["GET", "POST"])
@_for_registrars
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Change the registration of a model."""
    found = get_object_or_404(visible_models(request.user), pk=pk)
    name = found.name
    posted = request.POST if request.method == "POST" else None
    form = SiteModelEndpointForm(posted, instance=found, user=signed_in_user(request))
    if request.method == "POST" and form.is_valid():
        return _save(request, form)
    return _show(request, form, {"endpoint": found, "name": name})


def _show(request: HttpRequest, form: SiteModelEndpointForm, context: dict[str, object]) -> HttpResponse:
    context |= {"form": form, "variables": [(name, is_key_set(name)) for name in sorted(settings.API_KEY_VARIABLES)]}
    return render(request, "runs/model_form.html", context, status=422 if form.errors else 200)


def _save(request: HttpRequest, form: SiteModelEndpointForm) -> HttpResponse:
    endpoint = form.save()
    messages.success(request, f"{endpoint.name} is registered.")
    if "test" in request.POST:
        _test(request, endpoint)
    response = redirect("runs:model", name=endpoint.name)
    if "team" in form.changed_data:
        record_move(response, request.path, endpoint.team)
    return response


@require_POST
@_for_registrars
def test(request: HttpRequest, pk: int) -> HttpResponse:
    """Send one request to the model and show what came back."""
    endpoint = get_object_or_404(visible_models(request.user), pk=pk)
    passed = _test(request, endpoint)
    response = redirect("runs:model", name=endpoint.name)
    return response if passed else record_nothing(response)


def _test(request: HttpRequest, endpoint: ModelEndpoint) -> bool:
    """Send a request to the model, report the outcome on the next page, and return whether the test passed."""
    if endpoint.api_key_env and endpoint.api_key_env not in settings.API_KEY_VARIABLES:
        messages.error(request, f"{endpoint.api_key_env} is no longer allowed as a key variable. Edit the model.")
        return False
    if endpoint.api_key_env and not is_key_set(endpoint.api_key_env):
        variable = endpoint.api_key_env
        messages.error(request, f"No request was sent: the variable {variable} is not set on this server.")
        return False
    try:
        outcome = check_model(endpoint_spec(endpoint))
    except ValidationError:
        messages.error(request, "No request was sent: the registration is invalid. Edit the model.")
        return False
    (messages.success if outcome.passed else messages.error)(request, outcome.message)
    return outcome.passed
