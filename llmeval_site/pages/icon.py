"""The icon at the path that browsers request by default."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.templatetags.static import static
from django.views.decorators.http import require_safe


@login_not_required
@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect to the icon among the static files."""
    return redirect(static("icon.svg"), permanent=False)
