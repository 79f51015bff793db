"""Passwords by mail: reset by the user, and invitations by an administrator. Both mail a link that is valid once."""

from collections.abc import Iterable

from django.contrib.auth.forms import PasswordResetForm
from django.contrib.auth.models import User
from django.contrib.auth.views import (
    PasswordResetCompleteView,
    PasswordResetConfirmView,
    PasswordResetDoneView,
    PasswordResetView,
)
from django.http import HttpRequest
from django.urls import path

_TEMPLATE = "registration/password_page.html"

urlpatterns = [
    path(
        "reset/",
        PasswordResetView.as_view(
            template_name=_TEMPLATE,
            email_template_name="registration/password_reset_email.txt",
            subject_template_name="registration/password_reset_subject.txt",
            extra_context={"heading": "Reset your password", "button": "Send a link"},
        ),
        name="password_reset",
    ),
    path(
        "reset/sent/",
        PasswordResetDoneView.as_view(
            template_name=_TEMPLATE,
            extra_context={
                "heading": "Look at your mail",
                "text": "If an account has this address, a link to choose a new password is on its way.",
            },
        ),
        name="password_reset_done",
    ),
    path(
        "new/<uidb64>/<token>/",
        PasswordResetConfirmView.as_view(
            template_name=_TEMPLATE,
            extra_context={"heading": "Choose a password", "button": "Store the password"},
        ),
        name="password_reset_confirm",
    ),
    path(
        "done/",
        PasswordResetCompleteView.as_view(
            template_name=_TEMPLATE,
            extra_context={"heading": "The password is stored", "text": "You can sign in with it now."},
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
