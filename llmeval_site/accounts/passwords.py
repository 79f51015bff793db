"""Passwords by mail: reset by the user, and invitations by an administrator. Both mail a link that is valid once."""

from collections.abc import Callable, Iterable
from functools import wraps
from hashlib import sha256

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import PasswordResetForm
from django.contrib.auth.models import User
from django.contrib.auth.views import (
    PasswordResetCompleteView,
    PasswordResetConfirmView,
    PasswordResetDoneView,
    PasswordResetView,
)
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import path
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.views import APIView

from llmeval_site.accounts.sign_in import ClientThrottle, passwords_off
from llmeval_site.pages.errors import error_page

_TEMPLATE = "registration/password_page.html"


class PasswordMailThrottle(ClientThrottle):
    """Limit on how many links one client may request."""

    scope = "password_mail"


class PasswordMailboxThrottle(SimpleRateThrottle):
    """Limit on how many links are mailed to one address, whoever requests them."""

    scope = "password_mailbox"

    def __init__(self, email: str) -> None:
        super().__init__()
        self._ident = sha256(email.casefold().encode()).hexdigest()

    def get_cache_key(self, request: Request, view: object) -> str:
        return self.cache_format % {"scope": self.scope, "ident": self._ident}


class LimitedPasswordResetView(PasswordResetView):
    """Mails links, with limits for each client and each address.

    Beyond the limit of an address no more mail is sent, and the page is the same, so that it does not show whether an
    account has the address.
    """

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if not PasswordMailThrottle().allow_request(Request(request), APIView()):
            return error_page(
                request, 429, "Too many requests for a link", "Look at your mail, or try again in an hour."
            )
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: PasswordResetForm) -> HttpResponse:
        if PasswordMailboxThrottle(form.cleaned_data["email"]).allow_request(Request(self.request), APIView()):
            return super().form_valid(form)
        return HttpResponseRedirect(self.get_success_url())


def _if_on(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Return *view*, which answers with an error if passwords are turned off."""

    @login_not_required
    @wraps(view)
    def checked(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        return view(request, *args, **kwargs) if settings.PASSWORDS else passwords_off(request)

    return checked


urlpatterns = [
    path(
        "reset/",
        _if_on(
            LimitedPasswordResetView.as_view(
                template_name=_TEMPLATE,
                email_template_name="registration/password_reset_email.txt",
                subject_template_name="registration/password_reset_subject.txt",
                extra_context={"heading": "Reset your password", "button": "Send a link"},
            )
        ),
        name="password_reset",
    ),
    path(
        "reset/sent/",
        _if_on(
            PasswordResetDoneView.as_view(
                template_name=_TEMPLATE,
                extra_context={
                    "heading": "Look at your mail",
                    "text": "If an account has this address, a link to choose a new password is on its way.",
                },
            )
        ),
        name="password_reset_done",
    ),
    path(
        "new/<uidb64>/<token>/",
        _if_on(
            PasswordResetConfirmView.as_view(
                template_name=_TEMPLATE,
                extra_context={"heading": "Choose a password", "button": "Store the password"},
            )
        ),
        name="password_reset_confirm",
    ),
    path(
        "done/",
        _if_on(
            PasswordResetCompleteView.as_view(
                template_name=_TEMPLATE,
                extra_context={"heading": "The password is stored", "text": "You can sign in with it now."},
            )
        ),
        name="password_reset_complete",
    ),
]


class InvitationForm(PasswordResetForm):
    """Form that mails one user, who may have no password yet."""

    def __init__(self, user: User) -> None:
        super().__init__({"email": user.email})
        self._user = user

    def get_users(self, email: str) -> Iterable[User]:
        return [self._user]


def invite_user(user: User, request: HttpRequest) -> bool:
    """Mail *user* a link to choose a password. Returns False if the user is inactive or has no address."""
    form = InvitationForm(user)
    if not user.is_active or not form.is_valid():
        return False
    form.save(
        request=request,
        use_https=request.is_secure(),
        subject_template_name="registration/invitation_subject.txt",
        email_template_name="registration/invitation_email.txt",
    )
    return True
