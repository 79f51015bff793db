"""Pages that belong to no app: search, account, errors, and the style guide in debug."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.views.decorators.http import require_http_methods, require_safe

from hub.models import Case
from hub.selectors import environments_withheld, visible_environments
from hub.web.queries import environments_filtered
from llmeval_site.forms import TokenForm
from llmeval_site.tokens import create_token, revoke_token
from runs.selectors import visible_runs

FOUND = 15  # of each kind


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """`?q=`: environments by text, runs by name, number or config hash, cases by the beginning of their id."""
    query = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    context: dict[str, Any] = {"q": query}
    if query:
        visible = visible_environments(request.user)
        runs = visible_runs(request.user).filter(
            Q(name__icontains=query) | Q(config_hash__startswith=query.lower()) | Q(pk=_number(query))
        )
        withheld = environments_withheld(request.user).values("pk")
        cases = Case.objects.filter(version__in=visible.values("latest_id"), external_id__startswith=query).exclude(
            version__environment__in=withheld
        )
        context |= {
            "environments": environments_filtered(request.user, q=query)[:FOUND],
            "runs": runs[:FOUND],
            "cases": cases.defer("data").select_related("version__environment").order_by("external_id")[:FOUND],
        }
    return render(request, "site/search.html", context)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0


@require_http_methods(["GET", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Who is signed in, their groups, and their tokens for REST. A key is shown once, when its token is made."""
    assert request.user.is_authenticated
    if "revoke" in request.POST:
        token = get_object_or_404(request.user.api_tokens, prefix=request.POST["revoke"].replace("\x00", ""))
        revoke_token(token)
        messages.success(request, f"The token {token.prefix}... is revoked.")
        return redirect("account")
    form = TokenForm(request.POST if request.method == "POST" else None)
    key = ""
    if form.is_valid():
        _, key = create_token(
            user=request.user,
            scopes=form.cleaned_data["scopes"],
            name=form.cleaned_data["name"],
            lifetime=form.lifetime(),
        )
        form = TokenForm()
    context = {
        "groups": list(request.user.groups.values_list("name", flat=True)),
        "tokens": request.user.api_tokens.all(),
        "form": form,
        "key": key,
    }
    return render(request, "site/account.html", context, status=422 if form.errors else 200)


@login_not_required
@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """For pages that name no icon: the admin's, a browser's own view of JSON."""
    return redirect(static("icon.svg"), permanent=False)


@require_safe
def styleguide(request: HttpRequest) -> HttpResponse:
    """Every component once; in debug only."""
    shown = {"statuses": STATUSES, "diff": DIFF, "turns": TURNS, "code": CODE, "interval_example": [0.739, 0.919]}
    return render(request, "site/styleguide.html", shown)


STATUSES = ["passed", "failed", "errored", "unscored", "truncated", "running", "queued", "completed", "interrupted"]
CODE = "def f(x):\n    return x + 1  # one more"
DIFF = [("place", "@@ -1,2 +1,2 @@"), ("same", "slug: sums"), ("remove", "version: 1.0.0"), ("add", "version: 1.1.0")]
TURNS = [
    {"role": "system", "content": "You are brief."},
    {"role": "user", "content": "What is 2 + 2?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 2}'}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "4"},
    {"role": "assistant", "content": "4"},
]


# ---- errors: what happened, what was kept, what to do ----------------------------------------------------------------


def _error(request: HttpRequest, status: int, title: str, text: str) -> HttpResponse:
    return render(request, "site/error.html", {"status": status, "title": title, "text": text}, status=status)


@login_not_required
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(request, 400, "That request made no sense", "Nothing was changed. Go back and try again.")


@login_not_required
def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(
        request,
        403,
        "Not yours to do",
        "Your account lacks the permission for this. An administrator can add you to the group that has it.",
    )


@login_not_required
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    said = exception.args[0] if exception.args and isinstance(exception.args[0], str) else ""
    signed_in = getattr(getattr(request, "user", None), "is_authenticated", False)
    text = said if said and signed_in else "There is nothing at this address."
    return _error(request, 404, "Not found", text)


@login_not_required
def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _error(
        request, 403, "The form was too old", "Nothing was changed. Reload the page it came from and send it again."
    )


@login_not_required
def broken(request: HttpRequest) -> HttpResponse:
    # Without the request, since whatever broke may break the page's frame as well.
    return HttpResponse(render_to_string("site/broken.html"), status=500)
