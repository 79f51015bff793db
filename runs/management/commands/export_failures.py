"""`manage.py export_failures`: export the failing cases of a run for training, reading or another evaluation."""

from argparse import ArgumentParser
from pathlib import Path
from typing import TypedDict, Unpack

from hub.common.wording import counted
from runs.exports import COMPLETIONS, FORMATS, FailureFilters, export_failures
from runs.management.export_command import ExportCommand
from runs.selectors import FLAGS, get_run


class Options(TypedDict):
    """Options of the command as parsed."""

    run: str
    format: str
    out: Path
    model: str
    environment: str
    search: str
    flag: str
    completion: str
    force: bool
    json: bool


class Command(ExportCommand):
    help = "Write the failing cases of a run. Formats: " + "; ".join(f"{k}: {f.summary}" for k, f in FORMATS.items())

    option_names = {"environment": "--environment", "model": "--model"}

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN", help="number of the run, `latest`, or `latest:TAG`")
        parser.add_argument("--format", required=True, choices=list(FORMATS))
        parser.add_argument("--out", required=True, type=Path, metavar="FILE")
        parser.add_argument("--model", metavar="M", default="", help="only failures of the model with this label")
        parser.add_argument("--environment", metavar="SLUG", default="", help="only this environment of the run")
        parser.add_argument("--search", metavar="TEXT", default="", help="only with TEXT in the case id or the reason")
        parser.add_argument("--flag", choices=FLAGS, default="", help="only with this flag")
        parser.add_argument(
            "--completion",
            choices=COMPLETIONS,
            default="",
            help="right answers of sft and openai only from gold answers, other attempts of the model, or other models "
            "(default: the first of these that exists)",
        )
        super().add_arguments(parser)

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        filters = FailureFilters(
            model=options["model"],
            environment=options["environment"],
            q=options["search"],
            flag=options["flag"],
            completion=options["completion"],
        )
        run = get_run(options["run"])
        exported = export_failures(run, options["out"], filters, format=options["format"], force=options["force"])
        exported.require_rows("failing case")
        self.print_report(exported, [f"Wrote {counted(exported.written, 'row')} to {options['out']}."])
