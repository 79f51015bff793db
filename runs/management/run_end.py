"""How commands that execute a run end if it is not completed."""

from hub.management import base
from hub.management.base import INCOMPLETE, INTERRUPTED
from hub.management.invocation import command
from runs.limits.budget import LARGER_BUDGET
from runs.models import Run
from runs.services import STORED_IS_KEPT


def resume_command(run: Run) -> str:
    """Return the command that continues *run*."""
    return command("eval", "--resume", run.pk)


def check_completed(run: Run, ended: base.Command) -> None:
    """Exit with the code of the status of *run*, and say how to continue it, unless it is completed."""
    if run.status == Run.Status.INTERRUPTED:
        shown = "Interrupted." if run.message == STORED_IS_KEPT else run.message
        raise ended.exit_with(INTERRUPTED, f"{shown} Continue with: {resume_command(run)}")
    if run.status != Run.Status.COMPLETED:
        larger = " --budget USD" if run.message.endswith(LARGER_BUDGET) else ""
        raise ended.exit_with(INCOMPLETE, f"{run.message} Continue with: {resume_command(run)}{larger}")
