"""Failing cases as a bundle: an environment of its own with the harness, scoring and digests of the one they failed."""

import json
import shutil
import tempfile
from pathlib import Path

import yaml

from hub.bundles.loader import Bundle, open_bundle
from hub.common.digests import digest
from hub.datasets.rows import DatasetError, file_rows
from hub.manifest.problems import MANIFEST
from hub.manifest.schema import Manifest
from runs.exports.base import CHUNK, ExportError, ExportReport, Failures, opened
from runs.models import RunEnvironment

_CASES = "failing-cases.jsonl"


def write_bundle(failures: Failures, path: Path) -> ExportReport:
    """A new environment, as a .zip, of the failing cases alone: same harness, same scoring, same digests."""
    parts = [part for part in failures.parts if failures.of(part).exists()]
    if len(parts) > 1:
        slugs = ", ".join(part.version.environment.slug for part in parts)
        raise ExportError(
            f"A bundle holds one environment, and several have failures: {slugs}. Choose one of them.", "environment"
        )
    exported = ExportReport()
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="llmeval-failures-") as folder, opened(part.version) as bundle:
            exported.written = _fill_folder(failures, part, bundle, Path(folder))
            with open_bundle(folder) as small, path.open("wb") as file:
                small.write(file)
    return exported


def _fill_folder(failures: Failures, part: RunEnvironment, bundle: Bundle, folder: Path) -> int:
    """Lay out the small bundle; the number of its cases."""
    manifest = dict(part.version.manifest)
    checked = bundle.manifest
    data = {checked.dataset.path, checked.dataset.join.path if checked.dataset.join else None}
    for path in bundle.files:
        if path not in data and path != MANIFEST:
            _copy(bundle, path, folder / path)
    cases = _write_cases(failures, part, checked, folder / _CASES)
    manifest["dataset"] = {"path": _CASES, "fields": checked.dataset.fields}
    for key in ("gold", "wrong", "recordings"):
        source = getattr(checked, key)
        if isinstance(source, str):
            (folder / source).unlink()
            manifest.pop(key)
            kept = source.removesuffix(".gz")
            if _filter_answers(bundle, source, folder / kept, cases):
                manifest[key] = kept
    manifest["slug"] = f"{checked.slug[:55]}-failures"
    manifest["version"] = f"1.0.{failures.run.pk}-c{digest(sorted(cases))[:8]}"
    manifest["title"] = f"{checked.title[:90]}: failures of run {failures.run.pk}"
    (folder / MANIFEST).write_text(yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True), "utf-8")
    return len(cases)


def _copy(bundle: Bundle, path: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with bundle.file(path) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file)


def _write_cases(failures: Failures, part: RunEnvironment, manifest: Manifest, path: Path) -> set[str]:
    """The rows of the failing cases as they were read, with an id where the case's number served as one."""
    cases: set[str] = set()
    with path.open("wb") as file:
        for response in failures.of(part).iterator(chunk_size=CHUNK):
            case = response.case
            if case.external_id in cases:
                continue
            cases.add(case.external_id)
            row = dict(case.data.get("row", {}))
            if "id" not in manifest.dataset.fields and row.get("id") is None:
                row["id"] = case.external_id
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return cases


def _filter_answers(bundle: Bundle, source: str, target: Path, cases: set[str]) -> int:
    """Copy the answers to *cases*; how many there were."""
    count = 0
    with target.open("wb") as file:
        for _, row in file_rows(source, bundle.file):
            if isinstance(row, DatasetError):
                raise row
            if str(row.get("case", row.get("id"))) in cases:
                file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
                count += 1
    if not count:
        target.unlink()
    return count
