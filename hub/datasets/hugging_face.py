"""Reader of datasets of the Hugging Face hub."""

from collections.abc import Iterator

from hub.datasets.row_types import DatasetError, Row, check_row, to_json_value
from hub.manifest.problems import MANIFEST, BundleError
from hub.manifest.schema import Dataset


def read_hugging_face(dataset: Dataset) -> Iterator[tuple[int, Row | DatasetError]]:
    """Yield (number, row) from 1; a wrong row is yielded as a DatasetError. Raises DatasetError."""
    name = dataset.hf or ""
    try:
        import datasets  # optional and large; used for this source only
    except ImportError:
        raise DatasetError(
            MANIFEST,
            None,
            f"the dataset {name} comes from the Hugging Face hub, which needs the package `datasets`.",
            "Install it with `.venv/bin/pip install datasets`, or put the data into a file of the bundle.",
        ) from None
    try:
        table = datasets.load_dataset(
            name, dataset.config, split=dataset.split, revision=dataset.revision, streaming=True
        )
        for number, row in enumerate(table, 1):
            yield number, check_row(to_json_value(dict(row), name, number), name, number)
    except BundleError:
        raise
    except Exception as error:  # errors of the many libraries that the package uses
        raise DatasetError(name, None, f"the Hugging Face hub returned an error: {error}") from None
