"""Loading of bundles, folders or .zip files: manifest, files with their hashes, data, code and digest."""

import codecs
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, Protocol

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from hub.bundles.archive import (
    MAX_ENTRIES,
    MAX_PATH,
    MAX_UNPACKED,
    Archive,
    ArchiveError,
    FileInfo,
    check_names,
    is_junk,
    write_archive,
)
from hub.bundles.cases import prepared_cases
from hub.bundles.explain import explain
from hub.common import digests, wording
from hub.common.documents import yaml_source
from hub.common.documents.validation import location_in
from hub.common.problems import Problem
from hub.environments.compiled import CompiledEnvironment, CompileError, code_paths, is_code
from hub.manifest.problems import MANIFEST, BundleError
from hub.manifest.schema import Manifest
from hub.protocols.cases import CaseData

CERTIFICATE = "certificate.json"  # contains the digest, so the digest cannot cover it
README = "README.md"
MAX_CODE = 32 * 1024 * 1024  # bytes of all code files; the limit of one sandbox job


_PLACEHOLDERS = {
    "spec": 1,
    "slug": "unnamed",
    "version": "0.0.0",
    "title": "unnamed",
    "summary": "unnamed",
    "category": "reasoning",
}


class Source(Protocol):
    """Source of a bundle's files."""

    files: dict[str, FileInfo]

    def open(self, path: str) -> IO[bytes]: ...

    def close(self) -> None: ...


class FolderSource:
    """Bundle in a folder. Links are rejected, by-products of tools are ignored."""

    def __init__(self, root: Path) -> None:
        self._root = root
        found: dict[str, Path] = {}
        for path, entry in _walk(root, ""):
            if not entry.is_file(follow_symlinks=False):
                raise ArchiveError("this is a link or a device.", "Replace it by the file itself.", entry=path)
            found[path] = Path(entry.path)
            if len(found) > MAX_ENTRIES:
                raise ArchiveError(f"the folder has more than {MAX_ENTRIES:,} files.", "Is it the right folder?")
        check_names(found)
        total = sum(path.stat().st_size for path in found.values())
        if total > MAX_UNPACKED:
            raise ArchiveError(
                f"the folder has {total:,} bytes; at most {MAX_UNPACKED:,} are allowed.", "Leave files out."
            )
        self.files = {path: _hash(found[path]) for path in sorted(found)}

    def open(self, path: str) -> IO[bytes]:
        return (self._root / path).open("rb")

    def close(self) -> None:
        pass


def _walk(folder: Path, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            path = prefix + entry.name
            if is_junk(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                if len(path) > MAX_PATH:  # also limits how deep this function calls itself
                    message = f"the path of the folder is longer than {MAX_PATH} characters."
                    raise ArchiveError(message, "Is it the right folder?", entry=path)
                yield from _walk(Path(entry.path), path + "/")
            else:
                yield path, entry


def _hash(path: Path) -> FileInfo:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return FileInfo(file.tell(), digest.hexdigest())


class ArchiveSource:
    """Bundle in a .zip. A single top folder is removed from the paths."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._archive = Archive(file)
        self._top = _find_top_folder(self._archive.files)
        self.files = {path.removeprefix(self._top): info for path, info in self._archive.files.items()}

    def open(self, path: str) -> IO[bytes]:
        return self._archive.open(self._top + path)

    def close(self) -> None:
        self._archive.close()
        self._file.close()


def _find_top_folder(paths: Mapping[str, FileInfo]) -> str:
    if MANIFEST in paths:
        return ""
    tops = {path.partition("/")[0] for path in paths}
    if len(tops) == 1 and f"{(top := tops.pop())}/{MANIFEST}" in paths:
        return f"{top}/"
    raise ArchiveError(
        f"there is no {MANIFEST} at its root, nor in its single top folder.",
        _how_to_name_manifest(paths) or f"Pack only the folder that contains {MANIFEST}.",
    )


def _how_to_name_manifest(paths: Iterable[str]) -> str:
    """Return the advice to rename a file such as environment.yml; empty if no file has a similar name."""
    names = {path.rpartition("/")[2]: path for path in paths}
    similar = wording.find_similar(MANIFEST, [name for name in names if name != MANIFEST])
    return f"Rename {names[similar]} to {MANIFEST}." if similar else ""


class Bundle:
    """An open bundle, to be used as a context manager. Its properties raise BundleError."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.files = {path: info for path, info in source.files.items() if path != CERTIFICATE}

    def __enter__(self) -> "Bundle":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._source.close()

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the path and SHA-256 of every file except the certificate."""
        return digests.files_digest({path: info.sha256 for path, info in self.files.items()})

    def file(self, path: str) -> IO[bytes]:
        """Open a file of the bundle. Raises BundleError if there is none."""
        if path not in self.files:
            advice = _how_to_name_manifest(self.files) or "Is this the folder of a bundle?"
            remedy = advice if path == MANIFEST else ""
            raise BundleError(Problem(file=path, message="there is no such file in the bundle.", remedy=remedy))
        return self._source.open(path)

    def text(self, path: str, limit: int = yaml_source.MAX_BYTES) -> str:
        """Return a file's text. Raises BundleError if it is missing, not UTF-8 or longer than *limit* bytes."""
        with self.file(path) as file:
            if self.files[path].size > limit:
                raise BundleError(Problem(file=path, message=f"the file is longer than {limit:,} bytes."))
            try:
                return file.read().decode("utf-8-sig").replace("\r\n", "\n")
            except UnicodeDecodeError:
                raise BundleError(Problem(file=path, message="not UTF-8.", remedy="Save it as UTF-8.")) from None

    def head(self, path: str, size: int) -> str:
        """Return the text of the first *size* bytes of a file. Raises BundleError if it is missing or not UTF-8."""
        with self.file(path) as file:
            try:
                text = codecs.getincrementaldecoder("utf-8-sig")().decode(file.read(size), final=False)
            except UnicodeDecodeError:
                raise BundleError(Problem(file=path, message="not UTF-8.", remedy="Save it as UTF-8.")) from None
        return text.replace("\r\n", "\n")

    @cached_property
    def yaml(self) -> yaml_source.YamlText:
        """The parsed environment.yaml, with line numbers."""
        try:
            return yaml_source.parse(self.text(MANIFEST))
        except yaml_source.YamlError as error:
            raise BundleError(Problem(file=MANIFEST, line=error.line, message=f"not YAML: {error.message}.")) from None

    @property
    def readable(self) -> bool:
        """Whether environment.yaml is there and is YAML."""
        try:
            return self.yaml is not None
        except BundleError:
            return False

    @cached_property
    def manifest(self) -> Manifest:
        """The validated manifest."""
        try:
            return Manifest.model_validate(self.yaml.value)
        except ValidationError as error:
            problems = [self._problem(item) for item in error.errors()]
            # A value that is valid in none of several forms has an error for each form; only the first is reported.
            raise BundleError(list({problem.where: problem for problem in reversed(problems)}.values())[::-1]) from None

    def valid_part(self) -> Manifest | None:
        """Return the manifest with placeholders for invalid keys, so that the rest can be checked as well."""
        value = self.yaml.value if isinstance(self.yaml.value, dict) else {}
        try:
            Manifest.model_validate(value)
        except ValidationError as error:
            broken = {item["loc"][0] for item in error.errors() if item["loc"]}
            value = {**_PLACEHOLDERS, **{key: part for key, part in value.items() if key not in broken}}
        try:
            return Manifest.model_validate(value)
        except ValidationError:
            return None  # without a valid `dataset` nothing else can be checked

    def _problem(self, item: ErrorDetails) -> Problem:
        """Return a pydantic error as a Problem; the names of union members are removed from the key path."""
        path = location_in(self.yaml.value, item)
        message, remedy = explain(item, path)
        return self.problem(path, message, remedy)

    def problem(self, path: list[str | int], message: str, remedy: str = "") -> Problem:
        """Return a problem at a key path of environment.yaml."""
        return Problem(
            file=MANIFEST,
            line=self.yaml.line(path),
            path=yaml_source.dotted(tuple(path)),
            message=wording.end_sentence(message),
            remedy=remedy,
        )

    def with_line(self, problem: Problem) -> Problem:
        """Return a problem of environment.yaml with the line of its key path."""
        return self.problem(list(yaml_source.undotted(problem.path)), problem.message, problem.remedy)

    @cached_property
    def readme(self) -> str:
        return self.text(README) if README in self.files else ""

    @cached_property
    def certificate(self) -> dict[str, object] | None:
        """The certificate in the folder, if it has this bundle's digest."""
        if CERTIFICATE not in self._source.files or self._source.files[CERTIFICATE].size > yaml_source.MAX_BYTES:
            return None
        with self._source.open(CERTIFICATE) as file:
            try:
                found = json.load(file)
            except (ValueError, RecursionError):
                return None
        return found if isinstance(found, dict) and found.get("digest") == self.digest else None

    def code(self, manifest: Manifest) -> dict[str, bytes]:
        """Return the code files by path: every .py, and files that the harness or a rule names as code."""
        named = code_paths(manifest)
        paths = [path for path in self.files if path.endswith(".py") or is_code(path, named)]
        total = sum(self.files[path].size for path in paths)
        if total > MAX_CODE:
            raise BundleError(
                Problem(
                    file=paths[0], message=f"the code files have {total:,} bytes; at most {MAX_CODE:,} are allowed."
                )
            )
        code = {}
        for path in paths:
            with self.file(path) as file:
                code[path] = file.read()
        return code

    def compile(self, manifest: Manifest | None = None) -> CompiledEnvironment:
        """Return the compiled environment, by default of the bundle's own manifest. Raises BundleError."""
        manifest = manifest or self.manifest
        try:
            return CompiledEnvironment(manifest, self.code(manifest), self.files)
        except CompileError as error:
            raise BundleError([self.with_line(problem) for problem in error.problems]) from None

    def cases(self) -> Iterator[CaseData]:
        """Yield every case, in order. Raises BundleError at the first problem."""
        for found in prepared_cases(self.manifest, self.compile(), self.file):
            if isinstance(found, Problem):
                raise BundleError(found)
            yield found.case

    def write(self, file: IO[bytes]) -> None:
        """Write the bundle as a .zip, identical for identical content."""
        write_archive(file, self.files, self.file)


def open_bundle(path: str | Path) -> Bundle:
    """Open the bundle at *path*, a folder or a .zip. Raises BundleError."""
    path = Path(path)
    if path.is_dir():
        return Bundle(FolderSource(path))
    if not path.is_file():
        raise BundleError(f"{path}: there is no such file or folder.")
    if path.name == MANIFEST:
        raise BundleError(Problem(f"{path}: this is one file of a bundle.", remedy=f"Name its folder: {path.parent}"))
    return open_archive(path.open("rb"))


def open_archive(file: IO[bytes]) -> Bundle:
    """Open the bundle in the .zip *file*, which is closed with it. Raises BundleError."""
    try:
        return Bundle(ArchiveSource(file))
    except BaseException:
        file.close()
        raise
