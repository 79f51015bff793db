"""Formats of the report that are files: HTML, Markdown and JUnit XML."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from django.contrib.auth.models import AnonymousUser, User

from runs.models import Run
from runs.reports.html import render_html
from runs.reports.junit import write_junit
from runs.reports.markdown import render_markdown

Reader = User | AnonymousUser | None
"""The user who reads the report; None for a command, which may read everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFile:
    """Format of a report file.

    write: writes the report of a run for a reader. withholds: it leaves out what the reader may not see; otherwise only
    users who may export the run may read it.
    """

    title: str
    suffix: str
    content_type: str
    write: Callable[[Run, BinaryIO, Reader], None]
    withholds: bool = False


def _write_html(run: Run, out: BinaryIO, reader: Reader) -> None:
    out.write(render_html(run, user=reader).encode())


def _write_markdown(run: Run, out: BinaryIO, reader: Reader) -> None:
    out.write(render_markdown(run, user=reader).encode())


def _write_junit(run: Run, out: BinaryIO, reader: Reader) -> None:
    write_junit(run, out)


REPORT_FILES = {
    "html": ReportFile(
        title="one HTML file", suffix="html", content_type="text/html; charset=utf-8", write=_write_html, withholds=True
    ),
    "markdown": ReportFile(
        title="Markdown", suffix="md", content_type="text/markdown; charset=utf-8", write=_write_markdown
    ),
    "junit": ReportFile(
        title="a JUnit XML file: a test for each response",
        suffix="xml",
        content_type="application/xml",
        write=_write_junit,
    ),
}
