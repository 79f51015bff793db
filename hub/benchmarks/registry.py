"""Registry of published benchmarks by name. To add one: a .yaml file in this folder and a row in docs/benchmarks.md."""

from functools import partial
from pathlib import Path

from hub.benchmarks.schema import Benchmark, read_benchmark
from hub.common.registry import Registry

BENCHMARKS: Registry[Benchmark] = Registry("benchmark")
for path in sorted(Path(__file__).parent.glob("*.yaml")):
    BENCHMARKS.register_loader(path.stem, partial(read_benchmark, path))
