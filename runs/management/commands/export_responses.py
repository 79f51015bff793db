"""`manage.py export_responses`: export a run's responses as recordings, which replay without calls to a model."""

from argparse import ArgumentParser
from pathlib import Path
from typing import TypedDict, Unpack

from hub.common.output.files import add_force_argument
from hub.management import base
from runs.exports import export_responses
from runs.selectors import get_run


class Options(TypedDict):
    """Options of the command as parsed."""

    run: str
    out: Path
    force: bool


class Command(base.Command):
    help = "Write a run's responses as recordings for the provider `replay`, one file for each model."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN", help="number of the run, or `latest`")
        parser.add_argument("--out", required=True, type=Path, metavar="DIR")
        add_force_argument(parser)

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        exported = export_responses(get_run(options["run"]), options["out"], force=options["force"])
        exported.require_rows("response")
        for line in exported.left_out_lines():
            self.stderr.write(line)
        for path in exported.files:
            self.stdout.write(
                f"Wrote {path}. To replay it, set `provider: replay` and `responses: {path}` in a config."
            )
