"""`bundle`: a new environment (.zip) of the failing cases, with the harness, scoring and digests of the original."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import yaml

from hub.bundles.loader import Bundle, open_bundle
from hub.bundles.stored import open_stored_bundle
from hub.common.digests import digest
from hub.datasets.files import read_file
from hub.datasets.row_types import DatasetError
from hub.manifest.problems import MANIFEST
from hub.protocols.cases import case_split
from runs.exports.failure_formats.base import Failure, FailureFormat, FailureSelection
from runs.exports.protocol import ExportError, JSONObject, Row, write_json_lines
from runs.exports.selection import is_held_out
from runs.models import RunEnvironment
from runs.results.counting import defective_cases

_CASES = "failing-cases.jsonl"


class FailureBundle(FailureFormat):
    name = "bundle"
    summary = "a new environment (.zip) of the failing cases"
    suffix = ".zip"
    training = False
    has_lines = False

    def failures(self, selection: FailureSelection) -> Iterator[Failure]:
        """Yield the first failure of each case. Raises ExportError if several environments have failures."""
        failing = [item for item in selection.environments if _has_failures(selection, item)]
        if len(failing) > 1:
            slugs = ", ".join(item.version.environment.slug for item in failing)
            raise ExportError(
                f"A bundle contains one environment, but several have failures: {slugs}. Choose one of them.",
                "environment",
            )
        for environment in failing:
            yield from selection.read_first(environment)

    def convert(self, item: Failure) -> Iterator[JSONObject]:
        """Yield the row of the dataset as it was read, with an id if the case had only its number as one."""
        case = item.response.case
        row = dict(case.data.get("row", {}))
        fields = item.response.run_environment.version.manifest.get("dataset", {}).get("fields", {})
        if "id" not in fields and row.get("id") is None:
            row["id"] = case.external_id
        yield row

    def write(self, rows: Iterable[Row[Failure]], path: Path) -> None:
        """Pack a bundle whose dataset are *rows*."""
        remaining = iter(rows)
        first = next(remaining, None)
        if first is None:
            return
        environment = first.item.response.run_environment
        with (
            tempfile.TemporaryDirectory(prefix="llmeval-failures-") as name,
            open_stored_bundle(environment.version) as full,
        ):
            folder = Path(name)
            _fill_folder(environment, full, chain([first], remaining), folder)
            with open_bundle(folder) as small, path.open("wb") as file:
                small.write(file)


def _has_failures(selection: FailureSelection, environment: RunEnvironment) -> bool:
    return selection.responses(environment).exclude(case_id__in=defective_cases(environment)).exists()


def _fill_folder(environment: RunEnvironment, bundle: Bundle, rows: Iterable[Row[Failure]], folder: Path) -> None:
    """Write the files of the new bundle: all but the dataset and the reference answers are copied."""
    manifest, original = dict(environment.version.manifest), bundle.manifest
    data = {original.dataset.path, original.dataset.join.path if original.dataset.join else None}
    for path in bundle.files:
        if path not in data and path != MANIFEST:
            _copy(bundle, path, folder / path)
    cases: set[str] = set()
    splits: set[str] = set()
    held_out: set[str] = set()  # also those that only an earlier version names

    def read_rows() -> Iterator[JSONObject]:
        for row in rows:
            case = row.item.response.case
            cases.add(case.external_id)
            splits.add(case_split(case.data))
            if case.held_out:
                held_out.add(case_split(case.data))
            yield row.data

    write_json_lines(read_rows(), folder / _CASES)
    manifest["dataset"] = {"path": _CASES, "fields": original.dataset.fields}
    for key in ("gold", "wrong", "recordings"):
        source = getattr(original, key)
        if isinstance(source, str):
            (folder / source).unlink()
            manifest.pop(key)
            target = source.removesuffix(".gz")
            write_json_lines(_answers_to(cases, bundle, source), folder / target)
            if (folder / target).exists():
                manifest[key] = target
    # The new environment is held out as the original is. A split without a case would be an error.
    named = manifest.pop("held_out_splits", [])
    held_out_splits = [split for split in named if split in splits] + sorted(held_out.difference(named))
    if held_out_splits:
        manifest["held_out_splits"] = held_out_splits
    if is_held_out(environment.version):
        manifest["held_out"] = True
    manifest["slug"] = f"{original.slug[:55]}-failures"
    manifest["version"] = f"1.0.{environment.run_id}-c{digest(sorted(cases))[:8]}"
    manifest["title"] = f"{original.title[:90]}: failures of run {environment.run_id}"
    (folder / MANIFEST).write_text(yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True), "utf-8")


def _copy(bundle: Bundle, path: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with bundle.file(path) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file)


def _answers_to(cases: set[str], bundle: Bundle, source: str) -> Iterator[JSONObject]:
    """Yield the answers in the file *source* that belong to *cases*."""
    for _, row in read_file(source, bundle.file):
        if isinstance(row, DatasetError):
            raise row
        if str(row.get("case", row.get("id"))) in cases:
            yield row
