"""Schema of a benchmark's .yaml file: the manifest of an environment without data, and a description of the data."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from hub.common.documents import yaml_source


class HubDataset(BaseModel):
    """Place of a data set on the Hugging Face hub."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    id: str
    config: str | None = None
    split: str = "test"


class RowRule(BaseModel):
    """Condition on a row, as a template over its columns, and the reason to report."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    when: str
    why: str


class Benchmark(BaseModel):
    """A published benchmark.

    `files` describes the published file in words. `hub` is its place on the Hugging Face hub.

    `join` is the column by which a second file, with the answers, belongs to the first. `columns` are those of a .csv
    without a header. `subject` is the column that gets the name of such a file.

    `skip`: rows that match are left out and counted. `refuse`: a row that matches makes the file invalid.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    manifest: dict[str, object]
    files: str
    hub: HubDataset
    join: str | None = None
    columns: Annotated[list[str], Field(min_length=1)] | None = None
    subject: str | None = None
    skip: list[RowRule] = []
    refuse: list[RowRule] = []


_DOCUMENT = TypeAdapter(dict[str, object])


def read_benchmark(path: Path) -> Benchmark:
    """Return the benchmark that the .yaml file *path* describes."""
    manifest = _DOCUMENT.validate_python(yaml_source.parse(path.read_text(encoding="utf-8")).value)
    description = _DOCUMENT.validate_python(manifest.pop("benchmark"))
    return Benchmark.model_validate({"name": path.stem, "manifest": manifest, **description})
