"""What the audit log stores of a request besides its own path, or that it stores nothing."""

from django.http import HttpResponseBase

from hub.models import Team


def record_path(response: HttpResponseBase, path: str) -> None:
    """Store *path* in the audit log instead of the request's: it names what a body or a form has changed."""
    response.audited_path = path  # type: ignore[attr-defined]


def record_nothing(response: HttpResponseBase) -> None:
    """Leave a request that changed nothing out of the audit log, although the status of *response* is no error."""
    response.audited = False  # type: ignore[attr-defined]


def record_move(response: HttpResponseBase, path: str, team: Team | None) -> None:
    """Store *path* in the audit log with the team to which something was moved; None: shared."""
    record_path(response, f"{path}?team={Team.SHARED if team is None else team.slug}")
