"""Exports of failing cases and rollouts as downloads, for pages and REST."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from django.http import FileResponse

from runs.exports import (
    FORMATS,
    ExportError,
    ExportReport,
    RolloutSelection,
    export_episodes,
    export_failures,
    export_run_rollouts,
)
from runs.models import Run


class ExportResponse(FileResponse):
    """Download of an export. `left_out` and, as JSON, the header X-Left-Out name what the file does not contain."""

    def __init__(self, path: Path, report: ExportReport) -> None:
        # The open file stays readable after its temporary folder is deleted. Its space is freed when it is closed.
        super().__init__(path.open("rb"), as_attachment=True, filename=path.name)
        self.left_out = " ".join(report.left_out_lines())
        if report.left_out:
            self.headers["X-Left-Out"] = json.dumps(report.left_out)


def download_failures(
    run: Run,
    *,
    format: str = "",
    model: str = "",
    environment: str = "",
    q: str = "",
    flag: str = "",
    status: str = "",
) -> ExportResponse:
    """Return the failing cases of *run* as a download. Raises ExportError, also if there is nothing to write.

    *format* is `jsonl` by default. *status* is empty or `failed`, which FailuresFilter checks.
    """
    format = format or "jsonl"
    name = f"run-{run.pk}-failures-{format}{FORMATS.require(format).suffix}"

    def export(path: Path) -> ExportReport:
        return export_failures(
            run, path, format=format, model=model or None, environment=environment or None, q=q, flag=flag
        )

    return _download(name, "failing case", export)


def download_episodes(selection: RolloutSelection) -> ExportResponse:
    """Return finished episodes as a download of JSON lines. Raises ExportError, also if there is nothing to write."""
    return _download("rollouts.jsonl", "rollout", lambda path: export_episodes(path, selection))


def download_run_rollouts(run: Run, selection: RolloutSelection) -> ExportResponse:
    """Return the scored responses of *run* as JSON lines. Raises ExportError, also if there is nothing to write."""
    name = f"run-{run.pk}-rollouts.jsonl"
    return _download(name, "rollout", lambda path: export_run_rollouts(run, path, selection))


def _download(name: str, noun: str, export: Callable[[Path], ExportReport]) -> ExportResponse:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        report = export(path)
        if not path.exists():
            raise ExportError(" ".join([f"There is no {noun} to write.", *report.left_out_lines()]))
        return ExportResponse(path, report)
