"""Actions on an environment: request the gates of a version, publish, retire, and move it to another team."""

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from hub.common.errors import UserError
from hub.common.web.users import signed_in_user
from hub.gates.queue import dispatch_gates
from hub.models import EnvironmentVersion
from hub.selectors import CURATE
from hub.services import EnvironmentRefused, move_environment, publish_environment, retire_environment
from hub.web import queries
from hub.web.audited import record_move, record_nothing


@require_POST
@permission_required(CURATE, raise_exception=True)
def gates(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """Request the gates of a version that has no certificate."""
    shown = queries.get_version_or_404(queries.get_visible_environment(request.user, slug), version)
    response = redirect("hub:certificate", shown.environment.slug, shown.version)
    if shown.certificate is not None:
        return record_nothing(response)
    dispatch_gates(version=shown)
    return response


@require_POST
@permission_required(CURATE, raise_exception=True)
def publish(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """Publish an environment, if this is its latest version and the version passed its gates."""
    found = queries.get_visible_environment(request.user, slug)
    shown = queries.get_version_or_404(found, version)
    if found.latest_id != shown.pk:
        messages.error(request, f"{shown} is not the latest version; publish the latest.")
        return record_nothing(_redirect_to_version(shown))
    try:
        publish_environment(environment=found)
    except EnvironmentRefused as error:
        messages.error(request, str(error))
        return record_nothing(_redirect_to_version(shown))
    whose = f"the members of {found.team.name}" if found.team else "everybody who signs in"
    messages.success(request, f"{found.title} is published: {whose} can see and run it.")
    return _redirect_to_version(shown)


@require_POST
@permission_required(CURATE, raise_exception=True)
def retire(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """Remove a published environment from the catalogue. A private one would become visible, so it is refused."""
    found = queries.get_visible_environment(request.user, slug)
    shown = queries.get_version_or_404(found, version)
    try:
        retire_environment(environment=found)
    except EnvironmentRefused as error:
        messages.error(request, str(error))
        return record_nothing(_redirect_to_version(shown))
    messages.success(
        request, f"{found.title} is retired: the catalogue no longer lists it. Its runs are kept. Publish undoes it."
    )
    return _redirect_to_version(shown)


@require_POST
def move(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """Move an environment with all its versions to another team."""
    found = queries.get_visible_environment(request.user, slug)
    shown = queries.get_version_or_404(found, version)
    try:
        move_environment(
            environment=found, team=queries.find_target(signed_in_user(request), found, request.POST.get("team", ""))
        )
    except UserError as error:
        messages.error(request, error.message)
        return record_nothing(_redirect_to_version(shown))
    whose = f"belongs to {found.team.name}" if found.team else "is shared"
    messages.success(request, f"{found.title} {whose}.")
    response = _redirect_to_version(shown)
    record_move(response, request.path, found.team)
    return response


def _redirect_to_version(version: EnvironmentVersion) -> HttpResponse:
    return redirect("hub:version", version.environment.slug, version.version)
