"""Errors of review that a reviewer can fix."""

from hub.common.errors import Conflict, UserError


class InvalidDecision(UserError):
    """A decision that cannot be stored; `path` is the form field to change."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message, field)

    def headline(self) -> str:
        return "The decision was not stored."


class AlreadyDecided(Conflict):
    """The reviewer has decided the pair, and sent another decision without undoing the first."""
