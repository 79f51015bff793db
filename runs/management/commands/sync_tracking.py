"""`manage.py sync_tracking`: log in MLflow what could not be logged when it ran."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from runs.models import Run
from runs.selectors import RunNotFound, run_get
from runs.tracking import Tracker, TrackingConfig, config_of, pending_runs, track

WRONG_INPUT, UNAVAILABLE = 2, 3


class Command(BaseCommand):
    help = "Log runs in MLflow that are not logged yet; safe to repeat. With RUN: these, whether logged or not."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("runs", metavar="RUN", nargs="*", help="by default every run that is pending")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            runs = [run_get(name) for name in options["runs"]] or pending_runs()
        except RunNotFound as error:
            self.stderr.write(str(error))
            sys.exit(WRONG_INPUT)
        if not runs:
            self.stdout.write("No run is pending.")
            return
        tracker = Tracker.start(TrackingConfig())
        try:
            failed = sum(not self._sync(run, tracker) for run in runs)
        finally:
            tracker.close()
        if failed:
            sys.exit(UNAVAILABLE)

    def _sync(self, run: Run, tracker: Tracker) -> bool:
        tracking = track(run, tracker, config_of(run))
        if tracking["state"] != "logged":
            self.stderr.write(f"Run {run.pk} is still pending: {tracking['error']}")
            return False
        self.stdout.write(f"Run {run.pk} is logged as {tracking['parent']} in experiment {tracking['experiment']!r}.")
        return True
