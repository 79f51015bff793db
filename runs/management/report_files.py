"""Files in which `eval` and `report` write the report of a run."""

from argparse import ArgumentParser
from pathlib import Path
from typing import TypedDict

from hub.common.output.files import Outputs, add_force_argument, check_suffix
from runs.models import Run
from runs.reports.files import REPORT_FILES, ReportFile


class ReportFileOptions(TypedDict):
    """Options of a command that writes report files, as argparse returns them."""

    html: Path | None
    markdown: Path | None
    junit: Path | None
    force: bool


def add_report_arguments(parser: ArgumentParser) -> None:
    """Add --html, --markdown, --junit and --force."""
    for format, file in REPORT_FILES.items():
        parser.add_argument(f"--{format}", type=Path, metavar="FILE", help=f"write the report as {file.title}")
    add_force_argument(parser)


def check_report_files(options: ReportFileOptions) -> None:
    """Raise CannotWrite if a named file cannot be written, so that this is known before the run."""
    with Outputs(force=options["force"]) as outputs:
        for path, _ in _files(options):
            outputs.file(path)


def write_report_files(run: Run, options: ReportFileOptions) -> list[Path]:
    """Write the named files, all or none, and return them. Raises CannotWrite."""
    with Outputs(force=options["force"]) as outputs:
        for path, file in _files(options):
            with outputs.file(path).open("wb") as out:
                file.write(run, out, None)
    return outputs.written


def _files(options: ReportFileOptions) -> list[tuple[Path, ReportFile]]:
    """Return the named files. Raises CannotWrite if one has the suffix of a file of another kind."""
    given = {"html": options["html"], "markdown": options["markdown"], "junit": options["junit"]}
    files = [(path, REPORT_FILES[format]) for format, path in given.items() if path is not None]
    for path, file in files:
        check_suffix(path, f".{file.suffix}", f"the report as {file.title}")
    return files
