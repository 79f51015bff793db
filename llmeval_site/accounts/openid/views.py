"""Sign-in with the provider: the redirect to it, its answer, and the page after signing out."""

import logging
import time
from collections.abc import Callable
from functools import wraps
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from llmeval_site.accounts.openid.errors import ProviderFailed, SignInError, SignInExpired
from llmeval_site.accounts.openid.provider import library_setting, openid_settings, provider_metadata
from llmeval_site.configuration.openid import OpenIDSettings

logger = logging.getLogger(__name__)

_STATES = "oidc_states"  # key of the session under which the library keeps sign-ins that are not complete
_NEXT = "oidc_login_next"  # and the page to open after the last one that was started
_STATE_S = 15 * 60


def _page_of_errors(view: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Make *view* public, and turn a SignInError into a page."""

    @login_not_required
    @never_cache
    @require_GET
    @wraps(view)
    def wrapped(request: HttpRequest) -> HttpResponse:
        openid = openid_settings()
        try:
            return view(request)
        except SignInError as error:
            context = {
                "heading": error.title,
                "text": error.message,
                "label": openid.label,
                "again": True,
                "next": request.GET.get("next") or request.session.get(_NEXT) or "",
                # Starting again would use the same account of the provider, without asking.
                "provider_sign_out": "" if isinstance(error, ProviderFailed) else _sign_out_address(openid),
            }
            return render(request, "registration/openid_page.html", context, status=error.status_code)

    return wrapped


class StartView(OIDCAuthenticationRequestView):
    """Redirects to the provider, with state, nonce and a PKCE challenge that are stored in the session."""

    @staticmethod
    def get_settings(attr: str, *args: object) -> object:
        """Return a setting of the library."""
        if attr == "OIDC_OP_AUTHORIZATION_ENDPOINT":
            return provider_metadata(openid_settings()).authorization_endpoint
        return library_setting(attr, *args)


class CallbackView(OIDCAuthenticationCallbackView):
    """Receives the provider's answer, signs the user in and redirects to the page that was asked for."""

    @staticmethod
    def get_settings(attr: str, *args: object) -> object:
        """Return a setting of the library."""
        return library_setting(attr, *args)

    def get(self, request: HttpRequest) -> HttpResponse:
        """Sign in. Raises SignInError."""
        states = request.session.get(_STATES, {})
        state = request.GET.get("state", "")
        if state not in states or time.time() - states[state]["added_on"] > _STATE_S:
            raise SignInExpired(
                "It was started in another browser, was completed already, or took longer than 15 minutes. Start again."
            )
        if "code" not in request.GET or "error" in request.GET:
            # The library would sign out a user who is signed in.
            del states[state]
            request.session.modified = True
            raise _refusal(request.GET.get("error", ""), request.GET.get("error_description", ""))
        response: HttpResponse = super().get(request)
        return response

    def login_success(self) -> HttpResponse:
        """Start the session, which ends after some hours so that the provider is asked again."""
        response: HttpResponse = super().login_success()
        self.request.session.set_expiry(openid_settings().session_hours * 3600)
        return response


def _sign_out_address(openid: OpenIDSettings) -> str:
    """Return the address that ends the session at the provider, or "" if the provider has none or cannot be reached."""
    try:
        address = provider_metadata(openid).end_session_endpoint
    except ProviderFailed:
        return ""
    return f"{address}{'&' if '?' in address else '?'}{urlencode({'client_id': openid.client_id})}" if address else ""


def _refusal(code: str, description: str) -> SignInError:
    """Return the error for an answer without a code."""
    label = openid_settings().label
    logger.warning("OpenID: the provider refused a sign-in: %s %s", code[:100], description[:500])
    if code == "access_denied":
        return SignInError(
            f"{label} was not allowed to sign you in here: you or the provider refused. Nothing was changed."
        )
    if code in ("login_required", "interaction_required", "consent_required", "account_selection_required"):
        return SignInError(f"{label} needs you to sign in there first. Start again.")
    if code in ("server_error", "temporarily_unavailable"):
        return ProviderFailed(f"{label} has an error or is busy. Try again in a minute.")
    return ProviderFailed(
        f"{label} does not accept the request of this site. An administrator finds the reason in the server's log."
    )


@_page_of_errors
def start(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider. `next` is the page to open afterwards."""
    response: HttpResponse = StartView.as_view()(request)
    return response


@_page_of_errors
def callback(request: HttpRequest) -> HttpResponse:
    """Sign in the user whom the provider names."""
    response: HttpResponse = CallbackView.as_view()(request)
    return response


@_page_of_errors
def signed_out(request: HttpRequest) -> HttpResponse:
    """Say that the session here has ended, with a link that ends the one at the provider."""
    openid = openid_settings()
    context = {
        "heading": "You are signed out",
        "text": f"You may still be signed in at {openid.label}. On a shared computer, sign out there too.",
        "label": openid.label,
        "provider_sign_out": _sign_out_address(openid),
    }
    return render(request, "registration/openid_page.html", context)


urlpatterns = [
    path("start/", start, name="openid_start"),
    path("callback/", callback, name="openid_callback"),
    path("signed-out/", signed_out, name="openid_signed_out"),
]
