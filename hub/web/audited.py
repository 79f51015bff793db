"""What the audit log stores of a request besides its own path, or that it stores nothing."""

from typing import TypeVar

from django.http import HttpResponseBase

from hub.models import Team

Answer = TypeVar("Answer", bound=HttpResponseBase)


def record_path(response: HttpResponseBase, path: str) -> None:
    """Store *path* in the audit log instead of the request's: it names what a body or a form has changed."""
    response.audited_path = path  # type: ignore[attr-defined]


def record_nothing(response: Answer) -> Answer:
    """Leave the request out of the audit log, and return its *response*.

    Call it for each change or download that a page refuses with a redirect, or with its form and the status 200. The
    log leaves out responses with the status of an error by itself.
    """
    response.audited = False  # type: ignore[attr-defined]
    return response


def record_move(response: HttpResponseBase, path: str, team: Team | None) -> None:
    """Store *path* in the audit log with the team to which something was moved; None: shared."""
    record_path(response, f"{path}?team={Team.SHARED if team is None else team.slug}")
