"""State of a run in progress, for its page and for streams of events.

It is computed at most once a second for each run in each process, and shared by everybody who watches the run.
"""

import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from math import ceil, inf
from typing import TypedDict

from django.contrib.auth.models import AnonymousUser, User
from django.core.cache import cache
from django.utils import timezone

from hub.common.digests import digest
from runs.models import ENDED, Response, Run
from runs.reports.formats import percent
from runs.results.statistics.mean_intervals import Estimate
from runs.results.statistics.proportion_intervals import proportion_interval
from runs.results.stored import get_results
from runs.selectors import reason_without_target, withheld_environments
from runs.spending import budget_of
from runs.stages import stages
from runs.web.progress import CellProgress, RunProgressData, count_quarantined, get_progress
from runs.web.queries import list_environments, list_responses

_LATEST = 6  # responses shown, and errors
_RATE_RESPONSES, _RATE_SECONDS = 500, 120.0  # the rate is that of the latest responses within this time
# A snapshot is used for a second, or for this many times the time that it took, so that large runs cost no more than
# a twentieth of a core.
_SECONDS, _TIMES = 1.0, 20.0
# Seconds between two requests of a page, each with the remaining time of the run, in seconds, below which it applies.
_POLL = [(2, 300.0), (5, 3600.0), (10, inf)]
_POLLS_PER_S = 10  # of all users who watch a run together
_LONGEST_POLL_S = 15
_WATCHES_S = 20  # a user is counted as watching for this long after each request
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class LiveResponse:
    """A response as the list of the latest ones shows it."""

    pk: int
    case: str
    model: str
    status: str
    reason: str
    error_kind: str
    run_environment: int


@dataclass(frozen=True, slots=True)
class LiveCell:
    """Progress of one model on one environment, with its accuracy so far and the interval of it.

    That is the share of scored responses that passed; of a run that has ended, the accuracy in its report.
    quarantined: responses to quarantined cases. Only `done` and `expected` of the counts include them, as in a report.
    """

    counts: CellProgress
    quarantined: int
    accuracy: float | None
    low: float | None
    high: float | None

    @property
    def bounds(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State of a run that is the same for all users. rate: responses per minute; None before two were stored lately."""

    progress: RunProgressData
    cells: list[LiveCell]
    rate: float | None
    latest: list[LiveResponse]
    errors: list[LiveResponse]

    @property
    def seconds_left(self) -> float | None:
        """Return the time in which the missing responses are stored at this rate; None if unknown."""
        missing = self.progress["expected"] - self.progress["done"]
        return 60 * missing / self.rate if self.rate and missing > 0 else None


@dataclass(frozen=True, slots=True)
class StageState:
    """A stage after the last response; state: waiting, running, done or failed. *total* is 0 if it has no count."""

    key: str
    title: str
    state: str
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run as its page shows it to one user. `version` changes with everything that is shown.

    watchers: how many users have the page open.
    """

    snapshot: Snapshot
    budget_usd: float | None
    stages: list[StageState]
    latest: list[LiveResponse]
    errors: list[LiveResponse]
    version: str
    watchers: int = 1

    @property
    def rate(self) -> float | None:
        return _rounded(self.snapshot.rate)

    @property
    def time_left(self) -> str:
        return rough_duration(self.snapshot.seconds_left)

    @property
    def poll_s(self) -> int:
        """Return after how many seconds its page asks again.

        The longer the run takes and the more users watch it, the less often: together they ask ten times a second.
        """
        left = self.snapshot.seconds_left or 0.0
        base = next(seconds for seconds, below in _POLL if left < below)
        return max(base, min(ceil(self.watchers / _POLLS_PER_S), _LONGEST_POLL_S))

    @property
    def budget_share(self) -> str:
        """Return the part of the budget that is spent, such as `12.5 %`."""
        cost = self.snapshot.progress["cost_usd"]
        return percent(cost / self.budget_usd) if self.budget_usd and cost is not None else ""


class EventCell(TypedDict):
    """Progress of one model on one environment, in an event.

    Only `done` and `expected` include the `quarantined` responses.
    """

    environment: str
    model: str
    done: int
    expected: int
    passed: int
    failed: int
    errored: int
    unscored: int
    quarantined: int
    accuracy: float | None
    interval: list[float] | None


class RunEvent(TypedDict):
    """Data of an event: the whole state of the run. `rate` is in responses per minute."""

    run: int
    status: str
    message: str
    evaluated: bool
    done: int
    expected: int
    cost_usd: float | None
    budget_usd: float | None
    rate: float | None
    seconds_left: int | None
    cells: list[EventCell]
    stages: list[dict[str, object]]


def get_live_run(user: User | AnonymousUser, run: Run) -> LiveRun:
    """Return the state of *run* for *user*, without the reasons that the user may not read."""
    snapshot = get_snapshot(run)
    withheld = set(withheld_environments(user, run).values_list("pk", flat=True))
    latest, errors = _shown(snapshot.latest, withheld), _shown(snapshot.errors, withheld)
    states, budget = stage_states(run), budget_of(run)
    shown = [asdict(cell) for cell in snapshot.cells]
    version = digest(
        [
            *(run.status, run.message, run.cancel_requested, str(run.retry_at), run.evaluated_at is not None, budget),
            *(snapshot.progress["cost_usd"], _rounded(snapshot.rate), rough_duration(snapshot.seconds_left), shown),
            *([asdict(item) for item in latest], [asdict(item) for item in errors], [asdict(item) for item in states]),
        ]
    )[:16]
    return LiveRun(snapshot, budget, states, latest, errors, version, _count_watchers(run, user))


def _count_watchers(run: Run, user: User | AnonymousUser) -> int:
    """Return how many users watch *run*, *user* included, as far as this process has seen."""
    key, now = f"run-watchers:{run.pk}", time.time()
    seen: dict[int | None, float] = cache.get(key, {})
    seen = {who: at for who, at in seen.items() if at > now - _WATCHES_S} | {user.pk: now}
    cache.set(key, seen, _WATCHES_S)
    return len(seen)


def event_of(run: Run) -> RunEvent:
    """Return the state of *run* as the data of an event. It has no text of a model or a dataset."""
    snapshot = get_snapshot(run)
    left = None if run.status in ENDED else snapshot.seconds_left
    return {
        "run": run.pk,
        "status": run.status,
        "message": run.message,
        "evaluated": run.evaluated_at is not None,
        "done": snapshot.progress["done"],
        "expected": snapshot.progress["expected"],
        "cost_usd": snapshot.progress["cost_usd"],
        "budget_usd": budget_of(run),
        "rate": _rounded(snapshot.rate),
        "seconds_left": None if left is None else ceil(left),
        "cells": [_event_cell(cell) for cell in snapshot.cells],
        "stages": [asdict(state) for state in stage_states(run)],
    }


def get_snapshot(run: Run) -> Snapshot:
    """Return the shared snapshot of *run*, computed now if there is none that is recent."""
    # The status is part of the key: the first request after a change gets new numbers. So is the time of creation,
    # because databases may assign the number of a deleted run again.
    key = f"live-run:{run.pk}:{run.created_at.timestamp()}:{run.status}:{run.evaluated_at is not None}"
    found = cache.get(key)
    if found is None:
        with _lock:  # threads that wait for it use the snapshot of the first one
            found = cache.get(key)
            if found is None:
                started = time.monotonic()
                found = _take_snapshot(run)
                cache.set(key, found, max(_SECONDS, _TIMES * (time.monotonic() - started)))
    assert isinstance(found, Snapshot)
    return found


def get_shared_progress(run: Run) -> RunProgressData:
    """Return the progress of *run*: that of the shared snapshot until the run has ended."""
    return get_progress(run) if run.status in ENDED else get_snapshot(run).progress


def stage_states(run: Run) -> list[StageState]:
    """Return the stages that *run* executes after its last response, in order."""
    current = run.stage_progress.get("key")
    configured = [stage for stage in stages() if stage.is_configured(run)]
    keys = [stage.key for stage in configured]
    position = keys.index(current) if current in keys else 0
    states = []
    for i, stage in enumerate(configured):
        if stage.key == current:
            done, total = int(run.stage_progress.get("done", 0)), int(run.stage_progress.get("total", 0))
            states.append(StageState(stage.key, stage.title, "running", done, total))
        elif i < position:
            summary = run.summaries.get(stage.key)
            failed = isinstance(summary, dict) and bool(summary.get("error"))
            states.append(StageState(stage.key, stage.title, "failed" if failed else "done"))
        else:
            states.append(StageState(stage.key, stage.title, "waiting"))
    return states


def rough_duration(seconds: float | None) -> str:
    """Return an estimated time that does not change with every second: `less than a minute`, `12 min`, `2 h 10 min`."""
    if seconds is None:
        return ""
    if seconds < 60:
        return "less than a minute"
    minutes = ceil(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(10 * ceil(minutes / 10), 60)
    return f"{hours} h {minutes:02d} min"


def _take_snapshot(run: Run) -> Snapshot:
    progress = get_progress(run)
    rows = list_responses(list_environments(run))
    times = list(rows.order_by("-id").values_list("created_at", flat=True)[:_RATE_RESPONSES])
    latest = [_live_response(row) for row in rows.order_by("-id")[:_LATEST]]
    errors = []
    if any(cell["errored"] for cell in progress["cells"]):
        errored = rows.filter(status=Response.Status.ERRORED).order_by("-id")
        errors = [_live_response(row) for row in errored[:_LATEST]]
    quarantined = count_quarantined(run)
    results = get_results(run) if run.status in ENDED else []
    final = {(result.slug, result.model): result.accuracy for result in results}
    cells = [
        _live_cell(
            cell,
            run.attempts,
            quarantined.get((cell["environment"], cell["model"]), Counter()),
            final.get((cell["slug"], cell["model"])),
        )
        for cell in progress["cells"]
    ]
    return Snapshot(progress, cells, _rate(times, timezone.now(), _last_start(run)), latest, errors)


def _last_start(run: Run) -> datetime:
    """Return when the run was started or, if it was resumed since, when it was queued again."""
    return max(run.started_at or run.created_at, run.ready_at)


def _rate(times: list[datetime], now: datetime, start: datetime) -> float | None:
    """Return responses per minute, from the *times* of the latest responses, latest first.

    start: when the run was started or resumed. Within the first two minutes, the time from it until the first response
    counts, because concurrent requests are answered together: the first replies alone would give a far too high rate.
    """
    since_start = (now - start).total_seconds()
    in_first_minutes = 0 <= since_start <= _RATE_SECONDS
    longest = since_start if in_first_minutes else _RATE_SECONDS
    ages = [age for age in ((now - moment).total_seconds() for moment in times) if age <= longest]
    if len(ages) < 2:
        return None
    seconds = since_start if in_first_minutes and len(ages) < _RATE_RESPONSES else ages[-1]
    return 60 * len(ages) / max(seconds, 1.0)


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 1) if rate < 10 else float(round(rate))


def _live_cell(cell: CellProgress, attempts: int, quarantined: Counter[str], final: Estimate | None) -> LiveCell:
    left_out = quarantined.total()
    cell = {
        **cell,
        "passed": cell["passed"] - quarantined[Response.Status.PASSED],
        "failed": cell["failed"] - quarantined[Response.Status.FAILED],
        "errored": cell["errored"] - quarantined[Response.Status.ERRORED],
        "unscored": cell["unscored"] - quarantined[Response.Status.UNSCORED],
    }
    if final is not None:
        return LiveCell(cell, left_out, final.value, final.low, final.high)
    scored = cell["passed"] + cell["failed"]
    if not scored:
        return LiveCell(cell, left_out, None, None, None)
    accuracy = cell["passed"] / scored
    # Attempts at one case resemble each other. At worst they are all equal, and only the cases count.
    low, high, _ = proportion_interval(accuracy, max(1.0, scored / attempts))
    return LiveCell(cell, left_out, accuracy, low, high)


def _live_response(row: Response) -> LiveResponse:
    case, model = str(getattr(row, "case_name", "")), str(getattr(row, "model_label", ""))
    reason = row.reason[:300]
    return LiveResponse(row.pk, case, model, row.status, reason, row.error_kind, row.run_environment_id)


def _shown(rows: list[LiveResponse], withheld: set[int]) -> list[LiveResponse]:
    return [
        replace(row, reason=reason_without_target(row.reason, row.status, row.error_kind))
        if row.run_environment in withheld
        else row
        for row in rows
    ]


def _event_cell(cell: LiveCell) -> EventCell:
    counts = cell.counts
    return {
        "environment": counts["environment"],
        "model": counts["model"],
        "done": counts["done"],
        "expected": counts["expected"],
        "passed": counts["passed"],
        "failed": counts["failed"],
        "errored": counts["errored"],
        "unscored": counts["unscored"],
        "quarantined": cell.quarantined,
        "accuracy": cell.accuracy,
        "interval": list(cell.bounds) if cell.bounds else None,
    }
