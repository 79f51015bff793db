"""The user of a request."""

from django.contrib.auth.models import User
from django.http import HttpRequest
from rest_framework.request import Request


def signed_in_user(request: HttpRequest | Request) -> User:
    """Return the user of a request that only signed-in users can send, of a page or of REST."""
    assert request.user.is_authenticated
    return request.user
