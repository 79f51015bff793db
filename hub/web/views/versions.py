"""Versions of an environment, and the differences between any two of them."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from hub.bundles.changes import VersionChanges, version_changes
from hub.bundles.stored import ArchiveUnavailable
from hub.common.web.pagination import page_or_part, render_part
from hub.models import EnvironmentVersion
from hub.web import queries
from hub.web.environment_page import page_context


@require_safe
def changes(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """List the versions, and show the differences between the one of `?from=` and *version*.

    `?from=` is by default the version stored before it. `?to=` replaces *version*, so that a form can choose both.
    """
    found = queries.get_environment_with_content(request.user, slug)
    given, to = request.GET.get("from"), request.GET.get("to")
    if to and to != version:
        address = reverse("hub:changes", args=[slug, queries.get_version_or_404(found, to).version])
        return redirect(f"{address}?{urlencode({'from': given})}" if given else address)
    after = queries.get_version_or_404(found, version)
    versions = list(found.versions.defer("manifest", "readme"))
    if given:
        before: EnvironmentVersion | None = queries.get_version_or_404(found, given)
    else:
        before = found.versions.filter(pk__lt=after.pk).order_by("-pk").first()
    if before is not None:
        before.environment = found
    part = "changed" if request.headers.get("HX-Target") == "changed" and before else "changes"
    shown, problem = VersionChanges(before=None, after=after), ""
    if before is not None:
        try:
            shown = version_changes(before, after, with_files=part == "changes")
        except ArchiveUnavailable as error:
            shown, problem = version_changes(before, after), str(error)
    context = page_context(request.user, after, "versions") | {
        "changes": shown,
        "files_problem": problem,
        "versions": versions,
    }
    return render_part(request, page_or_part(request, "hub/changes.html", part), context)
