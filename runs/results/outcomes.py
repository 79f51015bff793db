"""Outcomes of runs for display. Unlike the status, they distinguish completed runs with errors from those without."""

from collections.abc import Iterable
from dataclasses import dataclass

from runs.leases import left_behind
from runs.models import Response, Run, RunModel
from runs.results.stored import count_responses


@dataclass(frozen=True, slots=True)
class Outcome:
    """`kind` is a run's status, or `incomplete` or `errored` for one that completed with errors; `label` is shown."""

    kind: str
    label: str


def outcomes_of(runs: Iterable[Run]) -> dict[int, Outcome]:
    """Return the outcome of each run, by run id. A run that completed with errors can be resumed.

    A run whose process was killed is shown as interrupted until it is continued. Its status stays running, because a
    worker that is free continues it by itself.
    """
    runs = list(runs)
    completed = [run for run in runs if run.status == Run.Status.COMPLETED]
    counts = {
        pk: (by_status.total(), by_status[Response.Status.ERRORED])
        for pk, by_status in count_responses(completed).items()
    }
    stopped = set(RunModel.objects.filter(run__in=completed).exclude(stopped="").values_list("run_id", flat=True))
    dead = left_behind(runs)
    return {
        run.pk: Outcome(Run.Status.INTERRUPTED, Run.Status.INTERRUPTED.label)
        if run.pk in dead
        else _outcome(run, *counts.get(run.pk, (0, 0)), run.pk in stopped)
        for run in runs
    }


def outcome_of(run: Run) -> Outcome:
    """Return the outcome of one run; use `outcomes_of` for several."""
    return outcomes_of([run])[run.pk]


def _outcome(run: Run, stored: int, errored: int, model_stopped: bool) -> Outcome:
    if run.status == Run.Status.RUNNING and run.evaluated_at is not None:
        return Outcome("running", "finishing")
    if run.status == Run.Status.COMPLETED and errored == stored and (stored or model_stopped):
        return Outcome("errored", "all errored")
    if run.status == Run.Status.COMPLETED and (errored or model_stopped):
        return Outcome("incomplete", "completed with errors")
    return Outcome(run.status, run.get_status_display())
