"""Errors of rollouts, and how those of a step in the background are stored for later requests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from hub.common.errors import Conflict, NotFound, TooManyRequests, UserError
from hub.protocols.messages import JSON
from hub.teams.quotas import QuotaExceeded

CRASHED = "crashed"  # kind of an error that is a mistake in the server
ErrorT = TypeVar("ErrorT", bound=Exception)


class RolloutError(UserError):
    """The request is not allowed or does not fit the episode. `path` is the invalid key of the request."""


class RolloutConflict(Conflict):
    """A concurrent request has stepped the same episode. Nothing was changed."""


class EpisodeEnded(RolloutError):
    """The episode is over. Nothing was changed."""

    status_code = 409
    code = "ended"


class EpisodeExpired(RolloutError):
    """The episode was idle for too long. Nothing was changed."""

    status_code = 410
    code = "expired"


class DifferentMessage(RolloutConflict):
    """The turn was already taken, with another message or reason. Nothing was changed."""

    code = "different_message"


class StepInProgress(RolloutConflict):
    """An earlier request is still executing a step of the episode. The same request may succeed later."""

    code = "in_progress"
    retry_after = 2

    def __init__(self) -> None:
        super().__init__(
            "A request is still executing a step of this episode. Send yours again later: if the turn and the message "
            "are the same, it returns the stored answer."
        )


class StepInterrupted(RolloutConflict):
    """The process that executed the step has ended. Nothing was stored."""

    code = "interrupted"

    def __init__(self, turn: int) -> None:
        super().__init__(
            f"The process that executed turn {turn} has ended before its answer was stored. Send the step again; it "
            "does not count twice."
        )


class TurnNotFound(NotFound):
    """No step with this turn was sent, or it failed before it was executed."""

    def __init__(self, turn: int) -> None:
        super().__init__(f"No step with the turn {turn} is executed or stored. Send it first.")


class WrongTurn(RolloutConflict):
    """The turn of a request is not the next one of the episode. Nothing was changed."""

    code = "wrong_turn"

    def __init__(self, given: int, expected: int) -> None:
        super().__init__(f"`turn` is {given}; the next turn of this episode is {expected}.", "turn")
        self.expected = expected

    def details(self) -> dict[str, object]:
        return {"expected_turn": self.expected}


class TooManyEpisodes(TooManyRequests):
    """The user has reached the limit of open episodes."""


class StepRunning(Exception):
    """The step is still executed in the background. Its answer can be requested by *turn*.

    retry_after: seconds until a request for the answer is worthwhile.
    """

    def __init__(self, turn: int, retry_after: int) -> None:
        super().__init__(f"Turn {turn} is still executed.")
        self.turn = turn
        self.retry_after = retry_after


class StepCrashed(Exception):
    """A step failed because of a mistake in the server, which its log describes."""


class EnvironmentFailed(UserError):
    """The environment's own code or files are wrong. The episode is unchanged; the same request would fail again."""

    status_code = 422
    code = "environment_failed"


class RolloutFailed(Exception):
    """The sandbox or a role model failed. The episode is unchanged and the step can be sent again."""


@dataclass(frozen=True, slots=True)
class _StoredKind(Generic[ErrorT]):
    """How errors of one class are stored and restored. to_json: returns the keys besides `kind`; `path` is optional."""

    error: type[ErrorT]
    to_json: Callable[[ErrorT], dict[str, JSON]]
    from_json: Callable[[Mapping[str, str]], ErrorT]

    def store(self, error: Exception) -> dict[str, JSON] | None:
        """Return *error* as JSON; None if it is of another class."""
        return self.to_json(error) if isinstance(error, self.error) else None


def _restore_quota(stored: Mapping[str, str]) -> QuotaExceeded:
    resets_at = datetime.fromisoformat(stored["resets_at"]) if stored["resets_at"] else None
    return QuotaExceeded(
        stored["message"], quota=float(stored["quota"]), used=float(stored["used"]), resets_at=resets_at
    )


# Errors with which a step is expected to fail. All others are stored as CRASHED, without their message.
_KINDS: Mapping[
    str,
    _StoredKind[RolloutError]
    | _StoredKind[QuotaExceeded]
    | _StoredKind[EnvironmentFailed]
    | _StoredKind[RolloutFailed],
] = {
    "invalid": _StoredKind(
        RolloutError,
        lambda error: {"message": str(error), "path": error.path},
        lambda stored: RolloutError(stored["message"], stored["path"]),
    ),
    "quota": _StoredKind(QuotaExceeded, lambda error: {"message": error.reason, **error.details()}, _restore_quota),
    "environment": _StoredKind(
        EnvironmentFailed, lambda error: {"message": str(error)}, lambda stored: EnvironmentFailed(stored["message"])
    ),
    "unavailable": _StoredKind(
        RolloutFailed, lambda error: {"message": str(error)}, lambda stored: RolloutFailed(stored["message"])
    ),
}


def error_json(error: Exception) -> dict[str, JSON]:
    """Return an error of a step as it is stored, by the first kind of _KINDS that fits."""
    for kind, declared in _KINDS.items():
        found = declared.store(error)
        if found is not None:
            return {"kind": kind, "path": "", **found}
    message = "The step failed because of an error of the server. Its log has the details."
    return {"kind": CRASHED, "path": "", "message": message}


def restore_error(stored: Mapping[str, str]) -> Exception:
    """Return the error that `error_json` returned as *stored*; StepCrashed for a mistake in the server."""
    declared = _KINDS.get(stored["kind"])
    return StepCrashed(stored["message"]) if declared is None else declared.from_json(stored)
