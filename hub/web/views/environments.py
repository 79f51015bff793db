"""Pages of an environment: the overview and the certificate of a version."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from hub.bundles.changes import manifest_yaml
from hub.common.web.pagination import page_or_part, render_part
from hub.gates.queue import TRIES, pending_request, why_given_up
from hub.models import EnvironmentVersion
from hub.selectors import list_forgeable_rules
from hub.web import queries
from hub.web.environment_page import page_context
from hub.web.reading.markdown import markdown_html


@require_safe
def environment(request: HttpRequest, slug: str, version: str | None = None) -> HttpResponse:
    """Show the overview of a version, by default the latest."""
    found = queries.get_visible_environment(request.user, slug)
    shown = queries.get_version_or_404(found, version)
    context = page_context(request.user, shown, "overview")
    context |= _description(shown)
    context["forgeable"] = list_forgeable_rules(shown)
    context["gates"] = _pending_gates(shown)
    context["follows"] = found.versions.filter(pk__lt=shown.pk).exists()
    return render_part(request, "hub/environment.html", context)


def _description(version: EnvironmentVersion) -> dict[str, object]:
    """Return the harness, the scoring rules, the manifest and the README for display."""
    harness = version.manifest.get("harness") or {}
    scoring = version.manifest.get("scoring") or {}
    return {
        "readme": markdown_html(_body(version.readme)) if version.readme else "",
        "harness": harness.get("type", queries.DEFAULT_HARNESS),
        "rules": scoring.get("rules") or [{"type": "reward"}],
        "pass_mark": scoring.get("pass", 1.0),
        "manifest": manifest_yaml(version),
    }


def _body(readme: str) -> str:
    """Return the README without its first heading, because the page has a title already."""
    first, _, rest = readme.lstrip().partition("\n")
    return rest if first.startswith("# ") else readme


@require_safe
def certificate(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """Show the results of the gates of a version, or that they are running or have yet to run."""
    shown = queries.get_version_or_404(queries.get_visible_environment(request.user, slug), version)
    context = page_context(request.user, shown, "certificate") | {"gates": _pending_gates(shown), "tries": TRIES}
    return render_part(request, page_or_part(request, "hub/certificate.html", "certificate"), context)


def _pending_gates(version: EnvironmentVersion) -> dict[str, object] | None:
    """Return the state of a request for the gates that has no result yet; None if there is no such request."""
    request = pending_request(version)
    return {"problem": request.problem, "given_up": why_given_up(request)} if request else None
