"""Redirects from an address without its slash at the end."""

from django.http import HttpResponsePermanentRedirect
from django.middleware.common import CommonMiddleware


class _SameRequest(HttpResponsePermanentRedirect):
    """Redirect after which clients send the same method and body. After a 301 they send a POST as a GET."""

    status_code = 308


class TrailingSlashMiddleware(CommonMiddleware):
    """Django's middleware for addresses, with a redirect that also suits POST."""

    response_redirect_class = _SameRequest
