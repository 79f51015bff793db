"""Manifests of published benchmarks without their data; each maps a file that the user has to a bundle."""

import csv
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any

import yaml
from pydantic import ValidationError

from hub.common.documents import yaml_source
from hub.common.documents.validation import describe_error
from hub.common.problems import Problem
from hub.datasets.files import read_file
from hub.datasets.joins import join_rows
from hub.datasets.row_types import MAX_ROW_BYTES, DatasetError, Row
from hub.datasets.rows import read_rows
from hub.manifest.problems import BundleError
from hub.manifest.schema import DATA_SUFFIXES, Dataset, is_data_path
from hub.templating import templates

FOLDER = Path(__file__).resolve().parent
DATA = "data.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Manifest of a benchmark and a description of its published data.

    `files` says in words which file to give; `hub` is its place on the Hugging Face hub (`id`, `config`, `split`);
    `join` is the column by which a second file, with the answers, belongs to the first; `columns` are those of a .csv
    without a header, and `subject` the column that takes the name of such a file. `skip` and `refuse` pair a template
    over the row with a reason: rows are left out and counted, or the file is refused.
    """

    name: str
    manifest: dict[str, Any]
    files: str
    hub: dict[str, str]
    join: str | None = None
    columns: list[str] | None = None
    subject: str | None = None
    skip: dict[str, str] = field(default_factory=dict)
    refuse: dict[str, str] = field(default_factory=dict)


def benchmarks() -> dict[str, Benchmark]:
    """Return every benchmark by its name."""
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("*.yaml"))}


def _read(path: Path) -> Benchmark:
    document = dict(yaml_source.parse(path.read_text(encoding="utf-8")).value)
    about = document.pop("benchmark")
    return Benchmark(
        path.stem,
        document,
        about["files"],
        about["hub"],
        join=about.get("join"),
        columns=about.get("columns"),
        subject=about.get("subject"),
        skip={rule["when"]: rule["why"] for rule in about.get("skip", [])},
        refuse={rule["when"]: rule["why"] for rule in about.get("refuse", [])},
    )


def selected_rows(benchmark: Benchmark, found: Iterator[Row], skipped: Counter[str]) -> Iterator[Row]:
    """Yield *found* without the rows that the benchmark skips, which *skipped* counts by reason. Raises BundleError."""
    for number, row in enumerate(found, 1):
        refusal = _reason(benchmark.refuse, row)
        if refusal:
            raise BundleError(Problem(file="the data", line=number, message=refusal))
        reason = _reason(benchmark.skip, row)
        if reason:
            skipped[reason] += 1
        else:
            yield row


def _reason(rules: Mapping[str, str], row: Row) -> str:
    """Return the reason of the first rule that holds for *row*, "" if none does."""
    for template, reason in rules.items():
        try:
            holds = templates.truth(templates.render(template, {**row, "row": row}))
        except templates.RenderError:
            continue  # a column is missing: another form of the benchmark, or a mistake that mapping reports
        if holds:
            return reason
    return ""


def data_rows(benchmark: Benchmark, files: Sequence[Path], answers: Path | None) -> Iterator[Row]:
    """Yield the rows of the published *files*, joined with those of *answers*. Raises BundleError."""
    if (answers is None) != (benchmark.join is None):
        what = (
            "needs its answers too: --answers FILE"
            if benchmark.join
            else "has its answers in the data; leave --answers out"
        )
        raise BundleError(f"{benchmark.name} {what}.")
    found: Iterator[tuple[str, int, Row | DatasetError]] = chain.from_iterable(
        _file_rows(path, benchmark) for path in files
    )
    if answers is not None and benchmark.join is not None:
        _known_format(answers)
        found = join_rows(found, str(answers), benchmark.join, _open)
    for _, _, row in found:
        if isinstance(row, DatasetError):
            raise row
        yield row


def _file_rows(path: Path, benchmark: Benchmark) -> Iterator[tuple[str, int, Row | DatasetError]]:
    _known_format(path)
    name = path.name.removesuffix(".gz")
    plain = benchmark.columns is not None and name.endswith(".csv")
    known = {column.casefold(): column for column in benchmark.columns or ()} if plain else {}
    columns = benchmark.columns if plain and not _has_header(path, list(known)) else None
    subject = re.sub(r"_(test|val|dev)$", "", name.removesuffix(".csv"))
    for line, row in read_file(str(path), _open, columns):
        if plain and isinstance(row, dict):
            row = {known.get(key.strip().casefold(), key): value for key, value in row.items()}
            row = {benchmark.subject: subject, **row} if benchmark.subject else row
        yield str(path), line, row


def _has_header(path: Path, columns: Sequence[str]) -> bool:
    """Return whether the first row of a .csv is a header with *columns*."""
    with _open(str(path)) as raw, gzip.open(raw) if path.name.endswith(".gz") else raw as file:
        first = next(csv.reader([file.readline(MAX_ROW_BYTES).decode("utf-8-sig", "replace")]), [])
    return {columns[0], columns[-1]} <= {cell.strip().casefold() for cell in first}


def _open(path: str) -> IO[bytes]:
    return Path(path).open("rb")


def _known_format(path: Path) -> None:
    if not path.is_file():
        raise BundleError(f"{path}: there is no such file.")
    if not is_data_path(path.name):
        raise BundleError(f"{path} must end in {', '.join(DATA_SUFFIXES)}, or one of these with .gz.")


def hub_rows(benchmark: Benchmark, revision: str, changes: dict[str, str]) -> Iterator[Row]:
    """Yield the rows of the Hugging Face hub at the commit *revision*; *changes* override id, config or split."""
    place = {**benchmark.hub, **changes}
    try:
        dataset = Dataset(
            hf=place["id"], config=place.get("config"), split=place.get("split", "test"), revision=revision
        )
    except ValidationError as error:
        raise BundleError(
            [Problem(file="--hf", message=f"{describe_error(item)}.") for item in error.errors()]
        ) from None
    for _, _, row in read_rows(dataset, _open):
        if isinstance(row, DatasetError):
            raise row
        yield row


def write_bundle(benchmark: Benchmark, found: Iterator[Row], folder: Path, changes: dict[str, str]) -> None:
    """Write a bundle of *benchmark* and the rows *found* into *folder*; *changes* override slug, version or title."""
    with (folder / DATA).open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        count = 0
        for row in found:
            packed.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            count += 1
    if not count:
        raise BundleError(Problem(file="the data", message="it has no rows, or none that the benchmark takes."))
    text = yaml.safe_dump({**benchmark.manifest, **changes}, sort_keys=False, allow_unicode=True, width=110)
    (folder / "environment.yaml").write_text(text, encoding="utf-8")
