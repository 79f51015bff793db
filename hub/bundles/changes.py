"""Differences between two versions of an environment: cases by digest, manifest and README by line."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml
from django.db.models import Exists, OuterRef, Q, QuerySet

from hub.bundles.loader import README, Bundle
from hub.bundles.stored import open_stored_bundle
from hub.manifest.problems import MANIFEST, BundleError
from hub.models import Case, EnvironmentVersion

EXAMPLES = 10  # case ids listed for each kind of change
_MAX_FILES = 50  # files whose differences a page shows
_MAX_BYTES = 200_000  # of each file
MAX_LINES = 4000  # of both texts; comparing longer ones takes too long for a page


@dataclass(frozen=True, slots=True)
class CaseChange:
    """Cases that changed in one way. `title` follows a number: "37 added"."""

    title: str
    version: EnvironmentVersion  # where the listed cases can be opened
    count: int
    examples: list[str]


Diff = list[tuple[str, str]]  # (kind, line); kind is add, remove, place or same


@dataclass(frozen=True, slots=True)
class FileChange:
    """File that differs. `kind`: added, removed or changed; `added` and `removed` count the lines of `diff`."""

    path: str
    kind: str
    diff: Diff

    @property
    def added(self) -> int:
        return sum(kind == "add" for kind, _ in self.diff)

    @property
    def removed(self) -> int:
        return sum(kind == "remove" for kind, _ in self.diff)


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """Differences between two versions. `before` is None for a first version."""

    before: EnvironmentVersion | None
    after: EnvironmentVersion
    cases: list[CaseChange] = field(default_factory=list)
    manifest: Diff = field(default_factory=list)
    readme: Diff = field(default_factory=list)
    files: list[FileChange] = field(default_factory=list)  # other files than manifest, README and datasets
    file_count: int = 0  # number of the files that differ; `files` has the first of them


def version_changes(
    before: EnvironmentVersion, after: EnvironmentVersion, *, with_files: bool = False
) -> VersionChanges:
    """Compare two versions of one environment. Cases are matched by id.

    with_files: also compare the other files of the bundles, which raises ArchiveUnavailable if one cannot be read.
    """
    new_cases, old_cases = Case.objects.filter(version=after), Case.objects.filter(version=before)
    predecessor = Case.objects.filter(version=before, external_id=OuterRef("external_id"))
    successor = Case.objects.filter(version=after, external_id=OuterRef("external_id"))
    same_input = Q(input_digest=OuterRef("input_digest"))
    same_scoring = Q(scoring_digest=OuterRef("scoring_digest"))
    kinds: list[tuple[str, EnvironmentVersion, QuerySet[Case]]] = [
        ("added", after, new_cases.filter(~Exists(predecessor))),
        ("removed", before, old_cases.filter(~Exists(successor))),
        ("with a different input", after, new_cases.filter(Exists(predecessor.exclude(same_input)))),
        (
            "with the same input but scored differently",
            after,
            new_cases.filter(Exists(predecessor.filter(same_input, ~same_scoring))),
        ),
        ("unchanged", after, new_cases.filter(Exists(predecessor.filter(same_input, same_scoring)))),
    ]
    files, file_count = _file_changes(before, after) if with_files else ([], 0)
    return VersionChanges(
        before=before,
        after=after,
        cases=[change for title, version, cases in kinds if (change := _case_change(title, version, cases)).count],
        manifest=list(_diff(_yaml(before.manifest), _yaml(after.manifest))),
        readme=list(_diff(before.readme, after.readme)),
        files=files,
        file_count=file_count,
    )


def _file_changes(before: EnvironmentVersion, after: EnvironmentVersion) -> tuple[list[FileChange], int]:
    """Return the first _MAX_FILES files that differ, and the number of all. Raises ArchiveUnavailable.

    Manifest and README are compared apart, and datasets by case.
    """
    left_out = {MANIFEST, README, *_dataset_paths(before), *_dataset_paths(after)}
    with open_stored_bundle(before) as old, open_stored_bundle(after) as new:
        paths = sorted({*old.files, *new.files} - left_out)
        changed = [path for path in paths if _sha256(old, path) != _sha256(new, path)]
        return [_file_change(old, new, path) for path in changed[:_MAX_FILES]], len(changed)


def _dataset_paths(version: EnvironmentVersion) -> set[str]:
    dataset = version.manifest.get("dataset") or {}
    return {path for path in (dataset.get("path"), (dataset.get("join") or {}).get("path")) if path}


def _file_change(old: Bundle, new: Bundle, path: str) -> FileChange:
    kind = "added" if path not in old.files else "removed" if path not in new.files else "changed"
    try:
        return FileChange(path, kind, list(_diff(_file_text(old, path), _file_text(new, path))))
    except BundleError:
        return FileChange(path, kind, [("place", "Too long to be compared here, or not text.")])


def _sha256(bundle: Bundle, path: str) -> str:
    return bundle.files[path].sha256 if path in bundle.files else ""


def _file_text(bundle: Bundle, path: str) -> str:
    """Return the text of a file; "" if there is none. Raises BundleError if it is long or not text."""
    return bundle.text(path, _MAX_BYTES) if path in bundle.files else ""


def _case_change(title: str, version: EnvironmentVersion, cases: QuerySet[Case]) -> CaseChange:
    listed = cases.order_by("position").values_list("external_id", flat=True)
    return CaseChange(
        title=title,
        version=version,
        count=cases.count(),
        examples=[] if title == "unchanged" else list(listed[:EXAMPLES]),
    )


def manifest_yaml(version: EnvironmentVersion) -> str:
    """Return the manifest as readable YAML."""
    return _yaml(version.manifest)


def _yaml(manifest: dict[str, object]) -> str:
    return yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """Dumper that writes text of several lines as a block."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _diff(before: str, after: str) -> Iterator[tuple[str, str]]:
    if before == after:
        return
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > MAX_LINES:
        yield "place", f"Changed, but too long to be compared here ({len(new):,} lines)."
        return
    kinds = {"+": "add", "-": "remove", "@": "place", " ": "same"}
    for line in list(difflib.unified_diff(old, new, lineterm="", n=3))[2:]:
        yield kinds[line[0]], line if line.startswith("@") else line[1:]
