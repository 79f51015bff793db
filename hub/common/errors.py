"""The base class of errors that a user can fix."""

from collections.abc import Sequence
from typing import Any, ClassVar


class UserError(ValueError):
    """Something the user can fix: a wrong config, bundle, argument or request. Nothing was changed.

    message: one or more sentences for a person. path: where the mistake is, as a key path or form field.
    issues: several mistakes at once, each `{"path", "message"}` and possibly more keys.

    Each interface turns it into its own kind of answer, in one place: commands into an exit code
    (hub.management.base), REST into a response (hub.common.rest), pages into form errors (hub.common.forms).
    """

    exit_code: ClassVar[int] = 2
    status_code: ClassVar[int] = 400

    def __init__(self, message: str, path: str = "", *, issues: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.issues = list(issues)

    def errors(self) -> list[dict[str, Any]]:
        """Return the mistakes as `[{"path", "message"}]`; empty if the message alone says it all."""
        if self.issues:
            return self.issues
        return [{"path": self.path, "message": self.message}] if self.path else []


class NotFound(UserError):
    """Something that was named does not exist."""

    status_code = 404


class Conflict(UserError):
    """The request is right, but not now: its object is in another state."""

    status_code = 409
