"""Responses to the health checks of orchestrators, before any other middleware."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from llmeval_site.health import healthz, readyz


class HealthCheckMiddleware:
    """Middleware that responds to /healthz and /readyz before the host name is checked and HTTP is redirected to HTTPS.

    Orchestrators send these requests to the address of the container, not to its host name, and without the proxy that
    terminates TLS.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        view = {"/healthz": healthz, "/readyz": readyz}.get(request.path_info)
        return self._get_response(request) if view is None else view(request)
