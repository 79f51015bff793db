"""Bundles made of a benchmark's manifest and its rows."""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from hub.benchmarks.schema import Benchmark
from hub.common.problems import Problem
from hub.datasets.row_types import Row
from hub.manifest.problems import BundleError

DATA = "data.jsonl.gz"


def write_bundle(benchmark: Benchmark, found: Iterator[Row], folder: Path, changes: Mapping[str, str]) -> None:
    """Write a bundle of *benchmark* and the rows *found* into *folder*; *changes* override slug, version or title."""
    with (folder / DATA).open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        count = 0
        for row in found:
            packed.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            count += 1
    if not count:
        raise BundleError(Problem(file="the data", message="it has no rows, or all of them are skipped."))
    text = yaml.safe_dump({**benchmark.manifest, **changes}, sort_keys=False, allow_unicode=True, width=110)
    (folder / "environment.yaml").write_text(text, encoding="utf-8")
