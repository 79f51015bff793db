"""Start a run of one environment from its page: a pilot or all cases, with the model that was used last."""

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from hub.common.web.pagination import page_or_part, render_part
from hub.common.web.users import signed_in_user
from hub.teams.quotas import QuotaExceeded
from hub.web.queries import get_version_or_404, get_visible_environment
from runs.services import create_run
from runs.web.notices import notify_workers
from runs.web.pilots import StartForm, default_model, start_choices

ADD = "runs.add_run"


@require_http_methods(["GET", "POST"])
@permission_required(ADD, raise_exception=True)
def start(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what a run of the environment needs with `?model=`, or start it. All fields have defaults."""
    user = signed_in_user(request)
    environment = get_visible_environment(user, slug)
    version = get_version_or_404(environment, None)
    posted = request.method == "POST"
    given = request.POST if posted else request.GET
    model = given.get("model") or default_model(user, slug)
    form = StartForm(given.dict() if posted else None, user=user, version=version, model=model)
    if posted and form.is_valid():
        resolved = form.resolved
        try:
            run = create_run(config=resolved.config, environments=resolved.environments, user=user, team=resolved.team)
        except QuotaExceeded as error:
            form.add_error(None, error.message)
        else:
            notify_workers(request, run)
            return redirect("runs:run", pk=run.pk)
    context = {
        "environment": environment,
        "version": version,
        "form": form,
        "model": model,
        "choices": start_choices(user, version, model),
    }
    template = "runs/start.html" if posted else page_or_part(request, "runs/start.html", "start")
    return render_part(request, template, context, status=422 if posted else 200)
