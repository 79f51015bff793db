"""How commands that execute a run end if it is not completed, or if some of its responses have no score."""

from collections.abc import Mapping, Sequence
from typing import TypedDict, cast

from hub.common.wording import counted
from hub.management import base
from hub.management.base import INCOMPLETE, INTERRUPTED
from hub.management.invocation import command
from runs.leases import left_behind
from runs.missing import count_missing, count_too_long
from runs.models import Run
from runs.services import STORED_IS_KEPT
from runs.spending import is_budget_spent


class ScoredRow(TypedDict):
    """The keys of a row in the results that decide the exit code."""

    environment: str
    model: str
    cases: int
    passed: int
    failed: int
    accuracy: float | None


def resume_command(run: Run) -> str:
    """Return the command that continues *run*."""
    return command("eval", "--resume", run.pk)


def describe_unfinished(run: Run) -> str:
    """Return that *run* was interrupted, and the command that continues it."""
    return f"Run {run.pk} was interrupted; its stored responses are kept. Continue it with: {resume_command(run)}"


def find_unfinished(config_hash: str) -> Run | None:
    """Return the latest run with this config and these cases if it was interrupted, or its process was killed."""
    run = Run.objects.filter(config_hash=config_hash, deleted_at=None, rescored_from=None).first()
    if run is not None and (run.status == Run.Status.INTERRUPTED or left_behind([run])):
        return run
    return None


def check_completed(run: Run, caller: base.Command) -> None:
    """Let *caller* exit with the code of the status of *run* and say how to continue it, unless it is completed."""
    if run.status == Run.Status.COMPLETED:
        return
    # Without a reason, the message of a run does not repeat its status, which pages show beside it.
    has_reason = run.message not in ("", STORED_IS_KEPT)
    shown = run.message if has_reason else f"{run.get_status_display().capitalize()}."
    code = INTERRUPTED if run.status == Run.Status.INTERRUPTED else INCOMPLETE
    larger = " --budget USD" if is_budget_spent(run) else ""
    raise caller.exit_with(code, f"{shown} Continue with: {resume_command(run)}{larger}")


def check_scored(run: Run, results: Mapping[str, object], caller: base.Command) -> Sequence[ScoredRow]:
    """Return the rows of *results*.

    Let *caller* exit if *run* is not completed, or if some of its responses have no score.
    """
    check_completed(run, caller)
    rows = cast("list[ScoredRow]", results["results"])
    if any(row["passed"] + row["failed"] < row["cases"] * run.attempts for row in rows):
        if count_missing(run) == 0:
            if too_long := count_too_long(run):
                raise caller.exit_with(
                    INCOMPLETE,
                    "Some responses have no score; the report has the reasons. A resume leaves out "
                    f"{counted(too_long, 'response')} whose conversation is too long for the model. To request them "
                    f"again: {resume_command(run)} --retry-too-long",
                )
            raise caller.exit_with(
                INCOMPLETE, "Some responses are unscored: a rule could not decide. The report has the reasons."
            )
        again = f"Request them again, with the config that the run has: {resume_command(run)}"
        raise caller.exit_with(INCOMPLETE, f"Some responses are errored or unscored. {again}")
    return rows
