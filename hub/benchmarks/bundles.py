"""Bundles made of a benchmark's manifest and its rows."""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from hub.benchmarks.rows import FoundRow
from hub.benchmarks.schema import Benchmark
from hub.bundles.cases import RepeatedId
from hub.common.problems import Problem
from hub.manifest.problems import BundleError

DATA = "data.jsonl.gz"


def write_bundle(
    benchmark: Benchmark, found: Iterator[FoundRow], folder: Path, changes: Mapping[str, str]
) -> list[tuple[str, int]]:
    """Write a bundle of *benchmark* and the rows *found* into *folder*; *changes* override slug, version or title.

    Return where each line of the data comes from: the file and line of its row.
    """
    origins = []
    with (folder / DATA).open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        for file, line, row in found:
            packed.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            origins.append((file, line))
    if not origins:
        raise BundleError(Problem(file="the data", message="it has no rows, or all of them are skipped."))
    text = yaml.safe_dump({**benchmark.manifest, **changes}, sort_keys=False, allow_unicode=True, width=110)
    (folder / "environment.yaml").write_text(text, encoding="utf-8")
    return origins


def locate_in_source(problem: Problem, origins: Sequence[tuple[str, int]]) -> Problem:
    """Return a problem of a line of the data as one of the row that `write_bundle` wrote there."""
    if problem.file != DATA or problem.line is None:
        return problem
    file, line = origins[problem.line - 1]
    if isinstance(problem, RepeatedId):
        return problem.moved(file, line, *origins[problem.earlier_line - 1])
    return replace(problem, file=file, line=line)
