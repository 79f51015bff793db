"""Reasons why a sign-in with the provider fails, in words for the page."""

from typing import ClassVar

from hub.common.errors import UserError


class SignInError(UserError):
    """A sign-in that is refused. `title` is the heading of its page."""

    status_code = 403
    title: ClassVar[str] = "You cannot sign in"


class SignInExpired(SignInError):
    """The provider's answer belongs to no sign-in that this browser has started."""

    status_code = 400
    title = "The sign-in has expired"


class InvalidAnswer(SignInError):
    """The provider's answer fails a check, so that it may be forged."""

    status_code = 400
    title = "The sign-in could not be verified"


class ProviderFailed(SignInError):
    """The provider cannot be reached, or answers with an error."""

    status_code = 502
    title = "The identity provider does not work"
