"""`manage.py export_preferences`: write linted preference data for training, with a dataset card and provenance."""

from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TypedDict, Unpack

from django.contrib.auth.models import User

from hub.common.wording import counted
from hub.management import base
from hub.models import Environment
from preferences.exporters import FORMATS, PreferenceReport, export_preferences
from preferences.models import Preference
from preferences.selectors import PreferenceFilters, current_preferences
from runs.exports import check_known
from runs.management.export_command import ExportCommand
from runs.selectors import get_run


class Options(TypedDict):
    """Parsed options of the command."""

    format: str
    out: Path
    source: str
    verdict: str
    run: str | None
    environment: str
    reviewer: str
    since: date | None
    json: bool
    force: bool


class Command(ExportCommand):
    help = "Write preferences. Formats: " + "; ".join(f"{name}: {item.summary}" for name, item in FORMATS.items())

    option_names = {"environment": "--environment", "reviewer": "--reviewer"}

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
        super().add_arguments(parser)

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        report = export_preferences(
            current_preferences(),
            options["out"],
            format=options["format"],
            filters=_filters(options),
            force=options["force"],
        )
        self.print_report(report, _describe(report))


def _describe(report: PreferenceReport) -> Iterator[str]:
    """Yield the linter's figures, and where the rows were written."""
    yield from report.figure_lines()
    paths = ", ".join(str(path) for path in report.files)
    yield f"Wrote {counted(report.written, 'row')}: {paths}."


def _filters(options: Options) -> PreferenceFilters:
    """Return the given filters. Raises RunNotFound or ExportError if something that they name does not exist."""
    slug, reviewer = options["environment"], options["reviewer"]
    if slug:
        slugs = Environment.objects.order_by("slug").values_list("slug", flat=True)
        check_known("environment", slug, slugs, "environment")
    if reviewer and not User.objects.filter(username=reviewer).exists():
        reviewers = User.objects.filter(pk__in=Preference.objects.order_by().values("reviewer"))
        names = reviewers.order_by("username").values_list("username", flat=True)
        check_known("reviewer", reviewer, names, "reviewer")
    return {
        "source": options["source"],
        "verdict": options["verdict"],
        "run": get_run(options["run"]).pk if options["run"] else None,
        "environment": slug,
        "reviewer": reviewer,
        "since": options["since"],
    }
