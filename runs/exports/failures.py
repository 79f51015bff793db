"""Export of failing cases: as training data, as JSON lines to read, or as an environment to evaluate again."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hub.manifest.problems import BundleError
from runs.exports.failure_formats.base import COMPLETIONS, Failure, FailureFilters, FailureSelection
from runs.exports.failure_formats.registry import FORMATS
from runs.exports.protocol import Export, ExportError, ExportReport
from runs.exports.selection import find_run_environments, find_run_model, refuse_held_out
from runs.models import Run
from runs.results.case_selection import select_cases

ALL_FAILURES = FailureFilters()


def failures_export(run: Run, filters: FailureFilters = ALL_FAILURES, *, format: str) -> Export[Failure]:
    """Return the export of the failing cases of *run*.

    Raises ExportError, also when its rows are read, and UnknownSlice.
    """
    cases = filters.cases
    if cases is None:
        cases = select_cases(run, filters.environment, by=filters.by, value=filters.value, solved=filters.solved)
    if not filters.completions:
        raise ExportError(
            f"{filters.completion!r} is no source of right answers; choose {', '.join(COMPLETIONS)}.", "completion"
        )
    export_format = FORMATS.require(format)
    selection = FailureSelection(
        filters=filters,
        model=find_run_model(run, filters.model),
        environments=find_run_environments(run, filters.environment),
        cases=cases,
        training=export_format.training,
    )
    if export_format.training:
        versions = [item.version for item in selection.environments]
        refuse_held_out(versions, "or choose jsonl, which is not training data")

    def read() -> Iterator[Failure]:
        with _readable_bundles():
            yield from export_format.failures(selection)

    return Export(export_format, read)


def export_failures(
    run: Run, path: Path, filters: FailureFilters = ALL_FAILURES, *, format: str, force: bool = False
) -> ExportReport:
    """Write the failing cases of *run* to *path*. Raises as `failures_export` does, and CannotWrite.

    No file is created if there is nothing to write. An existing file is only replaced with *force*, and only by a
    complete export.
    """
    with _readable_bundles():
        return failures_export(run, filters, format=format).write_file(path, force=force)


@contextmanager
def _readable_bundles() -> Iterator[None]:
    try:
        yield
    except BundleError as error:
        raise ExportError(f"The stored environment cannot be read: {error}") from None
