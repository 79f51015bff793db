"""Failing cases and rollouts as downloads, for the pages and REST alike."""

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
    """An export as a download. `left_out` says in sentences what is not in it; the header X-Left-Out does, as JSON."""

    def __init__(self, path: Path, exported: ExportReport) -> None:
        # Open, the file outlives its folder, and is gone once it is sent.
        super().__init__(path.open("rb"), as_attachment=True, filename=path.name)
        self.left_out = " ".join(f"Left out {count:,}: {why}." for why, count in exported.left_out.items())
        if exported.left_out:
            self.headers["X-Left-Out"] = json.dumps(exported.left_out)


def failures_file(
    run: Run,
    *,
    format: str = "",
    model: str = "",
    environment: str = "",
    q: str = "",
    flag: str = "",
    status: str = "",
) -> ExportResponse:
    """The failing cases of *run* as a file. Raises ExportError, also where there is nothing to write.

    *format* is `jsonl` by default. *status* is `failed` or nothing, as FailuresFilter checks.
    """
    format = format or "jsonl"
    FORMATS.require(format)
    name = f"run-{run.pk}-failures-{format}.{'zip' if format == 'bundle' else 'jsonl'}"

    def export(path: Path) -> ExportReport:
        return export_failures(
            run, path, format=format, model=model or None, environment=environment or None, q=q, flag=flag
        )

    return _sent(name, "failing case", export)


def episodes_file(which: RolloutSelection) -> ExportResponse:
    """Episodes that are over, as JSONL. Raises ExportError, also where there is nothing to write."""
    return _sent("rollouts.jsonl", "rollout", lambda path: export_episodes(path, which))


def run_rollouts_file(run: Run, which: RolloutSelection) -> ExportResponse:
    """The scored responses of *run*, as JSONL. Raises ExportError, also where there is nothing to write."""
    return _sent(f"run-{run.pk}-rollouts.jsonl", "rollout", lambda path: export_run_rollouts(run, path, which))


def _sent(name: str, what: str, export: Callable[[Path], ExportReport]) -> ExportResponse:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        exported = export(path)
        if not path.exists():
            left_out = "; ".join(f"{count:,} left out: {why}" for why, count in exported.left_out.items())
            raise ExportError(f"There is no {what} to write. {left_out}".strip())
        return ExportResponse(path, exported)
