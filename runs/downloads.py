"""Failing cases as a download, for the pages and REST alike."""

import tempfile
from pathlib import Path

from django.http import FileResponse

from runs.exports import FORMATS, ExportError, export_failures
from runs.models import Run


def failures_file(run: Run, chosen: str, model: str | None, environment: str | None) -> FileResponse:
    """The export in the format *chosen*. Raises ExportError, also where there is nothing to write."""
    if chosen not in FORMATS:
        raise ExportError(f"There is no format {chosen!r}; known are {', '.join(FORMATS)}.")
    name = f"run-{run.pk}-failures-{chosen}.{'zip' if chosen == 'bundle' else 'jsonl'}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        exported = export_failures(run, path, format=chosen, model=model or None, environment=environment or None)
        if not path.exists():
            left_out = "; ".join(f"{count:,} left out: {why}" for why, count in exported.skipped.items())
            raise ExportError(f"There is no failing case to write. {left_out}".strip())
        # Open, the file outlives its folder, and is gone once it is sent.
        return FileResponse(path.open("rb"), as_attachment=True, filename=name)
