"""`manage.py export_responses`: a run's responses as recordings, to be replayed without asking a model."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from runs.exports import export_responses
from runs.selectors import RunNotFound, run_get

WRONG_INPUT = 2


class Command(BaseCommand):
    help = "Write a run's responses as recordings that the provider `replay` plays: a file for each model."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN")
        parser.add_argument("--out", required=True, type=Path, metavar="DIR")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            exported = export_responses(run_get(options["run"]), options["out"])
        except (RunNotFound, OSError) as error:
            self.stderr.write(str(error))
            sys.exit(WRONG_INPUT)
        for why, count in exported.skipped.items():
            self.stderr.write(f"Left out {count:,}: {why}.")
        for path in exported.files:
            self.stdout.write(f"Wrote {path}; a config replays it by `provider: replay` and `responses: {path}`.")
        if not exported.files:
            self.stdout.write("The run has no responses; no file was made.")
