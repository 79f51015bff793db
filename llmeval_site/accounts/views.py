"""The account page."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from hub.common.storable import storable
from hub.common.web.users import signed_in_user
from hub.teams.choice import list_own_teams
from hub.web.audited import record_path
from llmeval_site.accounts.forms import TokenForm
from llmeval_site.accounts.tokens import create_token, revoke_token


@never_cache  # the page may show a secret
@require_http_methods(["GET", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Show the user's groups and tokens; create or revoke a token. A new token's key is shown once."""
    user = signed_in_user(request)
    if "revoke" in request.POST:
        token = get_object_or_404(user.api_tokens, prefix=storable(request.POST["revoke"]))
        revoke_token(token)
        messages.success(request, f"The token {token.prefix}... is revoked.")
        response: HttpResponse = redirect("account")
        record_path(response, f"{request.path}?revoke={token.prefix}")
        return response
    form = TokenForm(request.POST if request.method == "POST" else None)
    key, path = "", request.path
    if form.is_valid():
        token, key = create_token(
            user=user,
            scopes=form.cleaned_data["scopes"],
            name=form.cleaned_data["name"],
            lifetime=form.lifetime(),
        )
        form, path = TokenForm(), f"{request.path}?create={token.prefix}"
    context = {
        "groups": list(user.groups.values_list("name", flat=True)),
        "teams": list_own_teams(user),
        "tokens": user.api_tokens.all(),
        "form": form,
        "key": key,
    }
    response = render(request, "site/account.html", context, status=422 if form.errors else 200)
    record_path(response, path)
    return response
