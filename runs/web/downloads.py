"""Exports of failing cases and rollouts as downloads, for pages and REST."""

import json
import tempfile
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from django.http import FileResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from runs.exports import (
    FORMATS,
    ROLLOUT_FORMATS,
    Export,
    ExportReport,
    FailureFilters,
    RolloutSelection,
    episodes_export,
    failures_export,
    run_rollouts_export,
)
from runs.models import Run
from runs.reports.files import Reader, ReportFile

BUFFERED = 1000  # rows that are made before a download begins

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """Response with an export. `left_out` says what it does not contain; empty if nothing, or if not known yet."""

    response: HttpResponseBase
    left_out: str = ""


def failure_formats() -> dict[str, str]:
    """Return the summary of each format of failing cases, for the menu of exports."""
    return {name: item.summary for name, item in FORMATS.items()}


def download_failures(run: Run, filters: FailureFilters, *, format: str = "") -> Download:
    """Return the failing cases of *run* as a download. Raises ExportError, also if there is nothing to write.

    *format* is `jsonl` by default. Raises UnknownSlice, too.
    """
    format = format or "jsonl"
    export = failures_export(run, filters, format=format)
    return _download(f"run-{run.pk}-failures-{format}{export.format.suffix}", "failing case", export)


def download_episodes(selection: RolloutSelection, *, format: str = "") -> Download:
    """Return finished episodes as a download. Raises UnknownName and ExportError, also if there is nothing to write.

    *format* is `jsonl` by default.
    """
    format = format or "jsonl"
    return _download(_rollouts_name("rollouts", format), "rollout", episodes_export(selection, format=format))


def download_run_rollouts(run: Run, selection: RolloutSelection, *, format: str = "") -> Download:
    """Return the scored responses of *run* as `download_episodes` returns episodes."""
    format = format or "jsonl"
    name = _rollouts_name(f"run-{run.pk}-rollouts", format)
    return _download(name, "rollout", run_rollouts_export(run, selection, format=format))


def _rollouts_name(stem: str, format: str) -> str:
    suffix = ROLLOUT_FORMATS.require(format).suffix
    return f"{stem}{suffix}" if format == "jsonl" else f"{stem}-{format}{suffix}"


def _download(name: str, noun: str, export: Export[Item]) -> Download:
    """Return the rows of *export* as a file. Raises ExportError, also if there is nothing to write.

    Lines are sent while they are made, so the memory for a download does not depend on its size. The header
    X-Left-Out names what the file does not contain; it is missing if the export has BUFFERED rows or more. If the
    export fails after that, the connection is closed before the end of the file.
    """
    if not export.format.has_lines:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            report = export.write_file(path)
            report.require_rows(noun)
            # The open file stays readable after its folder is deleted. Its space is freed when it is closed.
            return _complete(FileResponse(path.open("rb"), as_attachment=True, filename=name), report)
    report = ExportReport()
    lines = export.lines(report)
    first = list(islice(lines, BUFFERED))
    report.require_rows(noun)
    response = StreamingHttpResponse(
        chain([b"".join(first)], lines),
        content_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
    return _complete(response, report) if len(first) < BUFFERED else Download(response=response)


def _complete(response: HttpResponseBase, report: ExportReport) -> Download:
    if report.left_out:
        response.headers["X-Left-Out"] = json.dumps(report.left_out)
    return Download(response=response, left_out=" ".join(report.left_out_lines()))


def download_report(file: ReportFile, run: Run, reader: Reader) -> FileResponse:
    """Respond with the report of *run* as a file, written to disk first so that memory does not grow with the run."""
    out = tempfile.TemporaryFile()  # noqa: SIM115  # the response closes it
    file.write(run, out, reader)
    out.seek(0)
    name = f"run-{run.pk}.{file.suffix}"
    return FileResponse(out, as_attachment=True, filename=name, content_type=file.content_type)
