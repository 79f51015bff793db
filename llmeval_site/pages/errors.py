"""Error pages. Each states what happened, whether anything was changed, and what to do. Below /api/ errors are JSON."""

import sqlite3
import sys

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import BadRequest
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django_guid import get_guid

from hub.common.rest.error_bodies import error_body, error_content_type

_FAILED = "An error occurred on the server."
_RETRY_AFTER_S = 5
_INVALID_STATEMENT = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG)  # such as an unknown column, or too many variables


def is_rest(request: HttpRequest) -> bool:
    """Return whether *request* is one of the REST API, whose errors are JSON."""
    return request.path_info == "/api" or request.path_info.startswith("/api/")


def rest_error(request: HttpRequest, status: int, message: str) -> JsonResponse:
    """Return an error of REST that occurs outside of its views."""
    content_type = error_content_type(request.headers.get("Accept", ""))
    return JsonResponse(error_body(message, status), status=status, content_type=content_type)


def error_page(request: HttpRequest, status: int, title: str, text: str, *, link: str = "") -> HttpResponse:
    """Render the common error page, or the same as JSON for REST. link: the page on which the user can go on."""
    if is_rest(request):
        return rest_error(request, status, text)
    context = {"status": status, "title": title, "text": text, "link": link}
    return render(request, "site/error.html", context, status=status)


@login_not_required
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Respond with 400. The message of a BadRequest is for the user; others may be of Django."""
    message = str(exception) if isinstance(exception, BadRequest) else ""
    message = message or "The server could not understand the request. Nothing was changed."
    return error_page(request, 400, "Invalid request", message)


@login_not_required
def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Respond with 403."""
    return error_page(
        request,
        403,
        "Permission required",
        "Your account lacks the permission for this. An administrator can add you to a group that has it.",
    )


@login_not_required
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Respond with 404; signed-in users also see the message of the exception."""
    if is_rest(request):
        return error_page(request, 404, "Not found", "There is nothing at this address. /api/v1/docs/ lists all.")
    message = exception.args[0] if exception.args and isinstance(exception.args[0], str) else ""
    if message.endswith(" matches the given query."):  # of `get_object_or_404`, in the words of the code
        message = "It does not exist, it was deleted, or your account may not see it."
    signed_in = getattr(getattr(request, "user", None), "is_authenticated", False)
    if not signed_in:
        message = "There is no page at this address. Check it for mistakes."
    elif not message:
        message = "There is no page at this address. Check it for mistakes, or find the page by the menu or the search."
    return error_page(request, 404, "Not found", message)


@login_not_required
def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Respond with 403 to a form whose CSRF token is missing or no longer valid."""
    return error_page(
        request, 403, "The form has expired", "Nothing was changed. Reload the page with the form and submit it again."
    )


def _is_database_unavailable(error: BaseException | None) -> bool:
    """Return whether the request may succeed later. SQLite raises OperationalError for invalid statements as well."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    return getattr(error.__cause__, "sqlite_errorcode", None) not in _INVALID_STATEMENT


@login_not_required
def server_error(request: HttpRequest) -> HttpResponse:
    """Respond with 500, or with 503 if the database is why: clients send the request again after a restart of it.

    The template gets no request, because the base template might be what failed.
    """
    unavailable = _is_database_unavailable(sys.exception())  # Django calls this in `except`
    status = 503 if unavailable else 500
    if is_rest(request):
        problem = "The database could not answer the request. Send it again." if unavailable else _FAILED
        text = f"{problem} The log of the server has the details under the request id {get_guid()}."
        response = error_page(request, status, "Server error", text)
    else:
        context = {"request_id": get_guid(), "status": status, "unavailable": unavailable}
        response = HttpResponse(render_to_string("site/broken.html", context), status=status)
    if unavailable:
        response.headers["Retry-After"] = str(_RETRY_AFTER_S)
    return response
