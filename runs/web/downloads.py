"""Failing cases and rollouts as downloads, for the pages and REST alike."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from django.http import FileResponse

from runs.exports import FORMATS, Exported, ExportError, Which, export_episodes, export_failures, export_run_rollouts
from runs.models import Run


def failures_file(run: Run, chosen: str, model: str | None, environment: str | None) -> FileResponse:
    """The export in the format *chosen*. Raises ExportError, also where there is nothing to write."""
    FORMATS.require(chosen)
    name = f"run-{run.pk}-failures-{chosen}.{'zip' if chosen == 'bundle' else 'jsonl'}"

    def export(path: Path) -> Exported:
        return export_failures(run, path, format=chosen, model=model or None, environment=environment or None)

    return _sent(name, "failing case", export)


def episodes_file(which: Which) -> FileResponse:
    """Episodes that are over, as JSONL. Raises ExportError, also where there is nothing to write."""
    return _sent("rollouts.jsonl", "rollout", lambda path: export_episodes(path, which))


def run_rollouts_file(run: Run, which: Which) -> FileResponse:
    """The scored responses of *run*, as JSONL. Raises ExportError, also where there is nothing to write."""
    return _sent(f"run-{run.pk}-rollouts.jsonl", "rollout", lambda path: export_run_rollouts(run, path, which))


def _sent(name: str, what: str, export: Callable[[Path], Exported]) -> FileResponse:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        exported = export(path)
        if not path.exists():
            left_out = "; ".join(f"{count:,} left out: {why}" for why, count in exported.skipped.items())
            raise ExportError(f"There is no {what} to write. {left_out}".strip())
        # Open, the file outlives its folder, and is gone once it is sent.
        return FileResponse(path.open("rb"), as_attachment=True, filename=name)
