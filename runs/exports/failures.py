"""Export of failing cases: as training data, as JSON lines to read, or as an environment to evaluate again."""

from pathlib import Path

from hub.common.output_files import Outputs
from hub.manifest.problems import BundleError
from runs.exports.failure_formats.base import FailureSelection
from runs.exports.failure_formats.registry import FORMATS
from runs.exports.protocol import ExportError, ExportReport, export_items
from runs.exports.selection import find_run_environments, find_run_model, refuse_held_out
from runs.models import Run


def export_failures(
    run: Run,
    path: Path,
    *,
    format: str,
    model: str | None = None,
    environment: str | None = None,
    q: str = "",
    flag: str = "",
    force: bool = False,
) -> ExportReport:
    """Write the failing cases of *run* to *path*. Raises ExportError and CannotWrite.

    *model*, *environment*, *q* and *flag* filter them as in the list of responses. No file is created if there is
    nothing to write. An existing file is only replaced with *force*, and only by a complete export.
    """
    export_format = FORMATS.require(format)
    selection = FailureSelection(
        run=run,
        model=find_run_model(run, model),
        environments=find_run_environments(run, environment),
        q=q,
        flag=flag,
    )
    if export_format.training:
        versions = [item.version for item in selection.environments]
        refuse_held_out(versions, "or choose jsonl, which is not training data")
    report = ExportReport()
    with Outputs(force=force) as outputs:
        try:
            export_items(export_format, lambda: export_format.failures(selection), outputs.file(path), report)
        except BundleError as error:
            raise ExportError(f"The stored environment cannot be read: {error}") from None
    report.files = outputs.written
    return report
