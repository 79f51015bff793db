"""Errors of rollouts."""

from hub.common.errors import Conflict, NotFound, TooManyRequests, UserError


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
