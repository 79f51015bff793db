"""`manage.py export_preferences`: preference data to train on, linted, with a dataset card and provenance."""

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from datetime import date
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from preferences.exporters import FORMATS, ExportError, preferences_export
from preferences.models import Preference
from preferences.selectors import filtered, preferences_current

WRONG_INPUT = 2


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a date like 2026-01-31") from None


class Command(BaseCommand):
    help = "Write preferences. Formats: " + "; ".join(f"{name}: {item.summary}" for name, item in FORMATS.items())

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--format", required=True, choices=list(FORMATS))
        parser.add_argument("--out", required=True, type=Path, metavar="F", help="a file, or a folder for all files")
        parser.add_argument("--source", choices=Preference.Source.values, default="", help="only from these judges")
        parser.add_argument("--run", type=int, help="only of this run")
        parser.add_argument("--environment", metavar="SLUG", default="", help="only of this environment")
        parser.add_argument("--since", type=_day, metavar="DATE", help="only since this day (UTC), as 2026-01-31")
        parser.add_argument("--json", action="store_true", help="the report as JSON on stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        filters = {name: options[name] for name in ("source", "run", "environment", "since")}
        try:
            written = preferences_export(
                filtered(preferences_current(), **filters), options["out"], format=options["format"]
            )
        except (ExportError, OSError) as error:
            self.stderr.write(str(error))
            sys.exit(WRONG_INPUT)
        report = written.report
        if options["json"]:
            self.stdout.write(json.dumps({**report, "files": [str(path) for path in written.files]}))
            return
        for why, count in report["dropped"].items():
            self.stderr.write(f"Left out {count:,}: {why}.")
        if report["first_chosen"] is not None:
            self.stdout.write(f"The pair's first response was chosen in {100 * report['first_chosen']:.1f} %.")
        if report["length_correlation"] is not None:
            self.stdout.write(f"Correlation of being longer with being chosen: {report['length_correlation']:+.2f}.")
        self.stdout.write(f"Wrote {written.rows:,} rows: {', '.join(str(path) for path in written.files)}.")
