"""Export of failing cases: as training data, as JSON lines to read, or as an environment to evaluate again."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Required, TypedDict, Unpack

from hub.manifest.problems import BundleError
from runs.exports.failure_formats.base import COMPLETIONS, Failure, FailureSelection
from runs.exports.failure_formats.registry import FORMATS
from runs.exports.protocol import Export, ExportError, ExportReport
from runs.exports.selection import find_run_environments, find_run_model, refuse_held_out
from runs.models import Run


class FailureFilters(TypedDict, total=False):
    """Parameters of `failures_export`."""

    format: Required[str]
    model: str | None
    environment: str | None
    q: str
    flag: str
    reason: str
    cases: Collection[str] | None
    completion: str


def failures_export(
    run: Run,
    *,
    format: str,
    model: str | None = None,
    environment: str | None = None,
    q: str = "",
    flag: str = "",
    reason: str = "",
    cases: Collection[str] | None = None,
    completion: str = "",
) -> Export[Failure]:
    """Return the export of the failing cases of *run*. Raises ExportError, also when its rows are read.

    *model*, *environment*, *q*, *flag* and *reason* filter them as in the list of responses; *cases* are the ids of the
    only cases exported. *completion* is the only source of right answers, of COMPLETIONS; empty: all, in their order.
    """
    if completion and completion not in COMPLETIONS:
        raise ExportError(
            f"{completion!r} is no source of right answers; choose {', '.join(COMPLETIONS)}.", "completion"
        )
    export_format = FORMATS.require(format)
    selection = FailureSelection(
        run=run,
        model=find_run_model(run, model),
        environments=find_run_environments(run, environment),
        q=q,
        flag=flag,
        reason=reason,
        cases=cases,
        training=export_format.training,
        completion=completion or None,
    )
    if export_format.training:
        versions = [item.version for item in selection.environments]
        refuse_held_out(versions, "or choose jsonl, which is not training data")

    def read() -> Iterator[Failure]:
        with _readable_bundles():
            yield from export_format.failures(selection)

    return Export(export_format, read)


def export_failures(run: Run, path: Path, *, force: bool = False, **filters: Unpack[FailureFilters]) -> ExportReport:
    """Write the failing cases of *run* to *path*. Raises ExportError and CannotWrite.

    No file is created if there is nothing to write. An existing file is only replaced with *force*, and only by a
    complete export. The other parameters are those of `failures_export`.
    """
    with _readable_bundles():
        return failures_export(run, **filters).write_file(path, force=force)


@contextmanager
def _readable_bundles() -> Iterator[None]:
    try:
        yield
    except BundleError as error:
        raise ExportError(f"The stored environment cannot be read: {error}") from None
