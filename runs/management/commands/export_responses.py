"""`manage.py export_responses`: export a run's responses as recordings, which replay without calls to a model."""

from argparse import ArgumentParser
from pathlib import Path
from typing import TypedDict, Unpack

from runs.exports import export_responses
from runs.management.export_command import ExportCommand
from runs.selectors import get_run


class Options(TypedDict):
    """Options of the command as parsed."""

    run: str
    out: Path
    force: bool
    json: bool


class Command(ExportCommand):
    help = "Write a run's responses as recordings for the provider `replay`, one file for each model."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN", help="number of the run, `latest`, or `latest:TAG`")
        parser.add_argument("--out", required=True, type=Path, metavar="DIR")
        super().add_arguments(parser)

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        exported = export_responses(get_run(options["run"]), options["out"], force=options["force"])
        exported.require_rows("response")
        lines = [
            f"Wrote {path}. To replay it, set `provider: replay` and `responses: {path}` in a config."
            for path in exported.files
        ]
        self.print_report(exported, lines)
