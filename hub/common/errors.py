"""Errors that a user can fix, and their kinds."""

from collections.abc import Sequence
from typing import ClassVar


class UserError(ValueError):
    """Something the user can fix: an invalid config, bundle, argument or request. Nothing was changed (see `stored`).

    message: one or more sentences for a person. path: the place of the mistake, as a key path or a field's name.
    code: a word for programs, if `status_code` does not say enough. retry_after: seconds until the same
    request may succeed.

    Commands turn it into an exit code (hub.management.base) and REST into a response (hub.common.rest.errors), in one
    place each. A subclass that reports several mistakes at once overrides `headline`, `lines` and `errors`.
    """

    exit_code: ClassVar[int] = 2
    status_code: ClassVar[int] = 400
    code: ClassVar[str] = ""
    retry_after: int | None = None
    stored: ClassVar[bool] = False  # whether the request had its effect although it failed, so must not be repeated

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def headline(self) -> str:
        """Return the sentence that a report of the error begins with."""
        return self.message

    def lines(self) -> Sequence[str]:
        """Return one line for each mistake, unless the headline already describes it."""
        return ()

    def errors(self) -> list[dict[str, object]]:
        """Return the mistakes as `[{"path", "message"}]`, for JSON."""
        return [{"path": self.path, "message": self.message}] if self.path else []

    def details(self) -> dict[str, object]:
        """Return further keys of the body of a REST response, for programs."""
        return {}


class NotFound(UserError):
    """Something that was named does not exist."""

    status_code = 404


class Conflict(UserError):
    """The request is valid, but the state of its object does not allow it."""

    status_code = 409


class TooLarge(UserError):
    """The body or file exceeds its limit."""

    status_code = 413


class UnsupportedEncoding(UserError):
    """The body is compressed as a whole, which is not supported."""

    status_code = 415


class TooManyRequests(UserError):
    """A limit on what one user may have or do at a time; the same request may succeed later.

    retry_after: seconds until another attempt is worthwhile.
    """

    status_code = 429

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after
