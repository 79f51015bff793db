"""Errors that a user can fix, and their kinds."""

from collections.abc import Sequence
from typing import Any, ClassVar


class UserError(ValueError):
    """Something the user can fix: a wrong config, bundle, argument or request. Nothing was changed.

    message: one or more sentences for a person. path: where the mistake is, as a key path or a field's name.

    Commands turn it into an exit code (hub.management.base) and REST into a response (hub.common.rest), in one place
    each. A subclass that reports several mistakes at once overrides `headline`, `lines` and `errors`.
    """

    exit_code: ClassVar[int] = 2
    status_code: ClassVar[int] = 400

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def headline(self) -> str:
        """Return the sentence that an answer begins with."""
        return self.message

    def lines(self) -> Sequence[str]:
        """Return one line for each mistake, if the headline does not already say it all."""
        return ()

    def errors(self) -> list[dict[str, Any]]:
        """Return the mistakes as `[{"path", "message"}]`, for JSON."""
        return [{"path": self.path, "message": self.message}] if self.path else []


class NotFound(UserError):
    """Something that was named does not exist."""

    status_code = 404


class Conflict(UserError):
    """The request is valid, but its object is in a state that does not allow it."""

    status_code = 409


class TooManyRequests(UserError):
    """A limit of what one user may have or do at a time; the same request may succeed later.

    retry_after: after how many seconds it is worth trying again.
    """

    status_code = 429

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after
