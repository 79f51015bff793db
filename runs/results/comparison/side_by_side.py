"""Responses of two cells to one case, paired by attempt."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from runs.models import Response, RunEnvironment, RunModel
from runs.results.comparison.flips import Flip
from runs.results.comparison.pair import ComparedCells
from runs.results.counting import cell_responses
from runs.results.statistics.mean_intervals import mean


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCase:
    """Responses of both sides to one case, by attempt. flip: how the results differ; None if the case is no flip."""

    case: str
    flip: Flip | None
    responses_a: Mapping[int, Response]
    responses_b: Mapping[int, Response]

    @property
    def attempts(self) -> list[int]:
        """Return the attempts with a response on both sides."""
        return sorted(self.responses_a.keys() & self.responses_b.keys())

    @property
    def default_attempt(self) -> int | None:
        """Return the first attempt with different results, or else the first one; None if there is none."""
        attempts = self.attempts
        differing = (n for n in attempts if self.responses_a[n].status != self.responses_b[n].status)
        return next(differing, attempts[0] if attempts else None)

    @property
    def is_left_out(self) -> bool:
        """Return whether the figures leave the case out: its results differ, but it is no flip."""
        if self.flip is not None:
            return False
        return _passed_share(self.responses_a.values()) != _passed_share(self.responses_b.values())


def find_compared_case(cells: ComparedCells, flips: Mapping[str, Flip], case: str) -> ComparedCase:
    """Return the responses of *cells* to the case with the id *case*, which need not be one of *flips*."""
    return ComparedCase(
        case=case,
        flip=flips.get(case),
        responses_a=_responses(cells.environment_a, cells.model_a, case),
        responses_b=_responses(cells.environment_b, cells.model_b, case),
    )


def _responses(run_environment: RunEnvironment, model: RunModel, case: str) -> dict[int, Response]:
    found = {}
    for row in cell_responses(run_environment, model).filter(case__external_id=case):
        row.run_environment = run_environment  # later reads need no query
        found[row.attempt] = row
    return found


def _passed_share(responses: Iterable[Response]) -> float | None:
    """Return the share of the scored responses that passed; None without any."""
    scored = (Response.Status.PASSED, Response.Status.FAILED)
    return mean([row.status == Response.Status.PASSED for row in responses if row.status in scored])
