"""`manage.py export_preferences`: write linted preference data for training, with a dataset card and provenance."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from hub.common.output_files import add_force_argument
from hub.common.wording import counted, suggest
from hub.management import base
from hub.models import Environment
from preferences.exporters import FORMATS, ExportError, Written, export_preferences
from preferences.models import Preference
from preferences.selectors import current_preferences, filter_preferences
from runs.selectors import get_run


class Command(base.Command):
    help = "Write preferences. Formats: " + "; ".join(f"{name}: {item.summary}" for name, item in FORMATS.items())

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--format", required=True, choices=list(FORMATS))
        parser.add_argument("--out", required=True, type=Path, metavar="F", help="a file, or a folder for all files")
        parser.add_argument("--source", choices=Preference.Source.values, default="", help="only from this source")
        parser.add_argument("--verdict", choices=Preference.Verdict.values, default="", help="only with this verdict")
        parser.add_argument("--run", metavar="RUN", help="only of this run")
        parser.add_argument("--environment", metavar="SLUG", default="", help="only of this environment")
        parser.add_argument("--reviewer", metavar="NAME", default="", help="only by this reviewer")
        parser.add_argument(
            "--since", type=base.day, metavar="DATE", help="only since this day (UTC), for example 2026-01-31"
        )
        parser.add_argument("--json", action="store_true", help="the report as JSON on stdout")
        add_force_argument(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        rows = filter_preferences(current_preferences(), **_filters(options))
        written = export_preferences(rows, options["out"], format=options["format"], force=options["force"])
        self.print_json({**written.report, "files": [str(path) for path in written.files]})
        if not options["json"]:
            self._tell(written)

    def _tell(self, written: Written) -> None:
        report = written.report
        for why, count in report["dropped"].items():
            self.stderr.write(f"Left out {count:,}: {why}.")
        if report["first_chosen"] is not None:
            self.stdout.write(f"The pair's first response was chosen in {100 * report['first_chosen']:.1f} %.")
        if report["length_correlation"] is not None:
            self.stdout.write(f"Correlation of being longer with being chosen: {report['length_correlation']:+.2f}.")
        self.stdout.write(f"Wrote {counted(written.rows, 'row')}: {', '.join(str(path) for path in written.files)}.")


def _filters(options: dict[str, Any]) -> dict[str, Any]:
    """Return the given filters. Raises RunNotFound or ExportError if the run or the environment does not exist."""
    slug = options["environment"]
    if slug and not Environment.objects.filter(slug=slug).exists():
        known = Environment.objects.order_by("slug").values_list("slug", flat=True)
        advice = suggest(slug, known) or "none is stored yet"
        raise ExportError(f"There is no environment {slug!r}; {advice}{'' if advice.endswith('?') else '.'}")
    run = get_run(options["run"]).pk if options["run"] else None
    names = ("source", "verdict", "environment", "reviewer", "since")
    return {**{name: options[name] for name in names}, "run": run}
