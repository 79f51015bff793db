"""Rows of a published benchmark, from its files or from the Hugging Face hub."""

import csv
import gzip
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from hub.benchmarks.schema import Benchmark, HubDataset, RowRule
from hub.common.documents.validation import describe_error
from hub.common.problems import Problem
from hub.datasets.files import read_file
from hub.datasets.joins import join_rows
from hub.datasets.row_types import MAX_ROW_BYTES, DatasetError, Row
from hub.datasets.rows import read_rows
from hub.manifest.problems import BundleError
from hub.manifest.schema import DATA_SUFFIXES, Dataset, is_data_path
from hub.templating import templates

FoundRow = tuple[str, int, Row]  # with the file and the line, or the dataset of the hub and the number, of the row


def selected_rows(benchmark: Benchmark, found: Iterator[FoundRow], skipped: Counter[str]) -> Iterator[FoundRow]:
    """Yield *found* without the rows that the benchmark skips, which *skipped* counts by reason. Raises BundleError."""
    for file, line, row in found:
        invalid = _reason(benchmark.refuse, row)
        if invalid:
            raise BundleError(Problem(file=file, line=line, message=invalid))
        reason = _reason(benchmark.skip, row)
        if reason:
            skipped[reason] += 1
        else:
            yield file, line, row


def _reason(rules: Sequence[RowRule], row: Row) -> str:
    """Return the reason of the first rule that matches *row*, "" if none does."""
    for rule in rules:
        try:
            matches = templates.truth(templates.render(rule.when, {**row, "row": row}))
        except templates.RenderError:
            continue  # a column is missing: the mapping to cases reports it if it is needed
        if matches:
            return rule.why
    return ""


def data_rows(benchmark: Benchmark, files: Sequence[Path], answers: Path | None) -> Iterator[FoundRow]:
    """Yield the rows of the published *files*, joined with those of *answers*. Raises BundleError."""
    if (answers is None) != (benchmark.join is None):
        if benchmark.join:
            raise BundleError(f"The answers of {benchmark.name} are in a file of their own. Add --answers FILE.")
        raise BundleError(f"The data of {benchmark.name} contains the answers. Leave --answers out.")
    found: Iterator[tuple[str, int, Row | DatasetError]] = chain.from_iterable(
        _file_rows(path, benchmark) for path in files
    )
    if answers is not None and benchmark.join is not None:
        _known_format(answers)
        found = join_rows(found, str(answers), benchmark.join, _open)
    for file, line, row in found:
        if isinstance(row, DatasetError):
            raise row
        yield file, line, row


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
    if path.is_dir():
        raise BundleError(f"{path} is a folder; name a file in it.")
    if not path.is_file():
        raise BundleError(f"{path}: there is no such file.")
    if not is_data_path(path.name):
        raise BundleError(f"{path} must end in {', '.join(DATA_SUFFIXES)}, or one of these with .gz.")


def hub_rows(benchmark: Benchmark, revision: str, changes: dict[str, str]) -> Iterator[FoundRow]:
    """Yield the rows of the Hugging Face hub at the commit *revision*; *changes* override id, config or split."""
    try:
        place = HubDataset.model_validate({**benchmark.hub.model_dump(), **changes})
        dataset = Dataset(hf=place.id, config=place.config, split=place.split, revision=revision)
    except ValidationError as error:
        raise BundleError(
            [Problem(file="--hf", message=f"{describe_error(item)}.") for item in error.errors()]
        ) from None
    for file, line, row in read_rows(dataset, _open):
        if isinstance(row, DatasetError):
            raise row
        yield file, line, row
