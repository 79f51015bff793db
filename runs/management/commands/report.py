"""`manage.py report`: print or write the report of a run."""

from argparse import ArgumentParser
from typing import Unpack

from hub.management import base
from runs.management.report_files import ReportFileOptions, add_report_arguments, write_report_files
from runs.reports import print_report, results_json
from runs.selectors import get_run


class Options(ReportFileOptions):
    """Options of the command, as argparse returns them."""

    run: str
    json: bool


class Command(base.Command):
    help = "Print the report of a run, as `eval` does at its end, or write it to files."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN", help="number of the run, `latest`, or `latest:TAG`")
        add_report_arguments(parser)
        base.add_json_argument(parser)

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        run = get_run(options["run"])
        written = write_report_files(run, options)
        self.print_json(results_json(run))
        for path in written:
            self.stderr.write(f"Wrote {path}.")
        if not written and not options["json"]:
            print_report(run, base.ReportConsole(soft_wrap=False))
