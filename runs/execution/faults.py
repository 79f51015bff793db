"""Infrastructure faults: a service that a run needs does not work at the moment, so the run is retried later."""

import logging
import random
from datetime import timedelta

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.db.models.functions import Now
from django.utils import timezone

from hub.bundles.stored import ArchivesUnreachable
from hub.common.fields import ContentUnreachable
from hub.common.wording import end_sentence
from runs.missing import count_missing
from runs.models import Run
from runs.services import STORED_IS_KEPT
from runs.transitions import change_status
from sandbox.errors import SandboxUnreachable

logger = logging.getLogger(__name__)

DATABASE_ERRORS = (OperationalError, InterfaceError)
_FIRST_DELAY_S = 5.0
_LONGEST_DELAY_S = 300.0


class InfrastructureFault(Exception):
    """A service that the run needs does not work at the moment. The message names it. It is no error of a response."""


def find_fault(error: BaseException) -> InfrastructureFault | None:
    """Return the infrastructure fault that *error* is, or contains if it is a group of errors; otherwise None."""
    if isinstance(error, InfrastructureFault):
        return error
    if isinstance(error, SandboxUnreachable | ArchivesUnreachable | ContentUnreachable):
        return InfrastructureFault(end_sentence(str(error)))
    if isinstance(error, DATABASE_ERRORS):
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return InfrastructureFault(end_sentence(f"The database does not work at the moment: {lines[0].strip()}"))
    if isinstance(error, BaseExceptionGroup):
        return next((fault for inner in error.exceptions if (fault := find_fault(inner))), None)
    return None


def retry_delay(faults: int) -> float:
    """Return the seconds to wait after this many faults in a row: twice as long each time, with a random part."""
    longest: float = min(_FIRST_DELAY_S * 2 ** min(faults - 1, 16), _LONGEST_DELAY_S)
    return longest * random.uniform(0.75, 1.0)  # noqa: S311  # spreads the retries of many runs; it is no secret


def return_after_fault(run: Run, fault: InfrastructureFault, owner: str) -> None:
    """Return *run* to the queue with the reason and the time of its next retry, and give up its lease.

    Faults are counted from one again if responses were stored in the meantime. A run that had no success for
    LLMEVAL_FAULT_RETRY_HOURS is interrupted; a user can resume it.
    """
    now = timezone.now()
    progressed = count_missing(run) < run.remaining
    faults = 1 if progressed else run.faults + 1
    failing_since = now if progressed or run.failing_since is None else run.failing_since
    hours = settings.FAULT_RETRY_HOURS
    if now - failing_since > timedelta(hours=hours):
        message = f"{fault} It was retried for {hours} hours. Resume the run when it works again. {STORED_IS_KEPT}"
        change_status(
            run, Run.Status.INTERRUPTED, owner=owner, message=message, seconds=run.seconds, cost_usd=run.cost_usd
        )
        return
    delay = retry_delay(faults)
    change_status(
        run,
        Run.Status.QUEUED,
        owner=owner,
        message=str(fault),
        seconds=run.seconds,
        cost_usd=run.cost_usd,
        faults=faults,
        failing_since=failing_since,
        ready_at=Now() + timedelta(seconds=delay),
    )
    logger.warning("run %s is retried in %.0f s: %s", run.pk, delay, fault, extra={"run_id": run.pk, "faults": faults})
