"""Sign-in, sign-out, and limits for each client. The settings of django-axes name two of these functions."""

from datetime import timedelta

from django.conf import settings
from django.contrib import admin
from django.contrib.auth import BACKEND_SESSION_KEY
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView, LogoutView, redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from llmeval_site.pages.errors import error_page

OPENID_BACKEND = "llmeval_site.accounts.openid.backend.OpenIDBackend"


def client_address(request: HttpRequest | Request) -> str:
    """Return the client's address: behind the TLS proxy, the last entry of X-Forwarded-For, which the proxy adds."""
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "") if settings.HTTPS else ""
    return str(forwarded.rpartition(",")[2].strip() or request.META.get("REMOTE_ADDR", ""))


@login_not_required
def locked_out(request: HttpRequest, *_: object, **__: object) -> HttpResponse:
    """Respond with 429 to a sign-in after too many failures."""
    minutes = settings.AXES_COOLOFF_TIME // timedelta(minutes=1)
    return error_page(
        request,
        429,
        "Too many failed sign-ins",
        f"Sign-in with this name is blocked from your address. Try again in {minutes} minutes.",
    )


class SignInView(LoginView):
    """The sign-in page: a form for the password, a link to the OpenID provider, or both."""

    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        return super().get_context_data(
            sends_mail=settings.SENDS_MAIL, passwords=settings.PASSWORDS, openid=settings.OPENID, **kwargs
        )

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        return super().post(request, *args, **kwargs) if settings.PASSWORDS else passwords_off(request)


class SignOutView(LogoutView):
    """Ends the session. A user of the OpenID provider learns that the session there continues."""

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        by_openid = request.session.get(BACKEND_SESSION_KEY) == OPENID_BACKEND
        response = super().post(request, *args, **kwargs)
        return redirect("openid_signed_out") if by_openid else response


@login_not_required
def sign_in_to_admin(request: HttpRequest) -> HttpResponse:
    """Show the admin's form for passwords, or the site's sign-in page if that has a link to the OpenID provider.

    Users who are signed in without being staff get the error page instead.
    """
    user = request.user
    if user.is_authenticated and not user.is_staff:
        return error_page(
            request,
            403,
            "Permission required",
            f"The admin is for staff, and you are signed in as {user.get_username()}. "
            'A superuser can give your account "staff status", or sign out and sign in with another account.',
        )
    if settings.OPENID is None or user.is_staff:
        return admin.site.login(request)
    return redirect_to_login(request.GET.get("next", "/admin/"))


def passwords_off(request: HttpRequest) -> HttpResponse:
    """Respond with 403 to what needs passwords, on a site that has turned them off."""
    return error_page(
        request,
        403,
        "Passwords are turned off",
        f"Sign in with {settings.OPENID.label if settings.OPENID else 'the identity provider'} instead.",
    )


class ClientThrottle(SimpleRateThrottle):
    """Limit for each address of clients. Subclasses set `scope`."""

    def get_cache_key(self, request: Request, view: object) -> str:
        return self.cache_format % {"scope": self.scope, "ident": client_address(request)}


class FailedTokenThrottle(ClientThrottle):
    """Limit on how often one client may send invalid tokens."""

    scope = "failed_token"
