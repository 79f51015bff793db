"""Throttling of REST requests, named in settings. Imports no views: the views of REST framework import this module."""

from typing import TYPE_CHECKING

from rest_framework.request import Request
from rest_framework.throttling import UserRateThrottle

if TYPE_CHECKING:
    from rest_framework.views import APIView


class WriteThrottle(UserRateThrottle):
    """Throttle of requests that change something, in addition to the general one."""

    scope = "write"

    def allow_request(self, request: Request, view: "APIView") -> bool:
        return request.method in ("GET", "HEAD", "OPTIONS") or super().allow_request(request, view)
