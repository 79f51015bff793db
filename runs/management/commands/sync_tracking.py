"""`manage.py sync_tracking`: log runs in MLflow that are not logged yet, or that have newer preferences."""

from argparse import ArgumentParser

from hub.management import base
from hub.management.base import UNAVAILABLE
from runs.management.config_file import UsageError
from runs.models import ENDED, Run
from runs.selectors import get_run
from runs.tracking.sync import TrackingOutcome, runs_to_log, track_in_turn


class Command(base.Command):
    help = (
        "Log runs in MLflow that are not logged yet, or that were judged since; safe to repeat. "
        "With RUN: only these runs, logged or not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("runs", metavar="RUN", nargs="*", help="by default all that are pending or outdated")
        base.add_json_argument(parser)

    def handle(self, *args: object, runs: list[str], **options: object) -> None:
        selected = [get_run(name) for name in runs] or runs_to_log()
        if not selected:
            self.print_json({"runs": []})
            self._write("No run is pending.")
            return
        active = [str(run.pk) for run in selected if run.status not in ENDED]
        if active:
            raise UsageError(
                f"Not ended yet, and logged by itself as soon as it ends: run {', '.join(active)}. Nothing was logged."
            )
        outcomes: dict[Run, TrackingOutcome] = {}
        for run, outcome in track_in_turn(selected):
            self._describe(run, outcome)
            outcomes[run] = outcome
        self.print_json({"runs": [{"run": run.pk, **outcome, **_links(run)} for run, outcome in outcomes.items()]})
        if any(outcome["state"] != Run.TrackingState.LOGGED for outcome in outcomes.values()):
            raise SystemExit(UNAVAILABLE)

    def _describe(self, run: Run, outcome: TrackingOutcome) -> None:
        if outcome["state"] != Run.TrackingState.LOGGED:
            self.stderr.write(f"Run {run.pk} is still pending: {outcome['error']}")
        else:
            self._write(
                f"Run {run.pk} is logged as {run.tracking['parent']} in experiment {run.tracking['experiment']!r}."
            )

    def _write(self, text: str) -> None:
        if not self.prints_json:
            self.stdout.write(text)


def _links(run: Run) -> dict[str, object]:
    """Return the experiment and, once the run is logged, the id of its parent run in MLflow."""
    return {key: run.tracking[key] for key in ("experiment", "parent") if key in run.tracking}
