"""Notices that pages show after they changed a run."""

from django.contrib import messages
from django.http import HttpRequest

from runs.execution.dispatch import WorkersNotNotified, dispatch_run
from runs.models import Run


def notify_workers(request: HttpRequest, run: Run) -> bool:
    """Notify the workers of *run*. If that fails, show why on the next page and return False."""
    try:
        dispatch_run(run=run)
    except WorkersNotNotified as error:
        messages.warning(request, str(error))
        return False
    return True
