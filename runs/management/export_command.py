"""Base class of the commands that export rows to files."""

from argparse import ArgumentParser
from collections.abc import Iterable

from hub.common.output.files import add_force_argument
from hub.management import base
from runs.exports.protocol import ExportReport


class ExportCommand(base.Command):
    """Command that writes an export, and prints its report as text or, with --json, as JSON."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_force_argument(parser)
        base.add_json_argument(parser)

    def print_report(self, report: ExportReport, lines: Iterable[str]) -> None:
        """Print what was left out on stderr and *lines* on stdout, or the report as JSON."""
        if self.prints_json:
            self.print_json(report.to_json())
            return
        for line in report.left_out_lines():
            self.stderr.write(line)
        for line in lines:
            self.stdout.write(line)
