"""Rows of a dataset, streamed from files of a bundle or from the Hugging Face hub.

Memory does not grow with the data: one row of at most MAX_ROW_BYTES at a time, look-ups on disk.
"""

from collections.abc import Iterator

from hub.datasets.files import read_file
from hub.datasets.hugging_face import read_hugging_face
from hub.datasets.joins import join_rows
from hub.datasets.row_types import MAX_ROWS, DatasetError, Opener, Row
from hub.manifest.schema import Dataset


def read_rows(dataset: Dataset, open_file: Opener) -> Iterator[tuple[str, int, Row | DatasetError]]:
    """Yield (file, line, row) for every row, joined if the dataset has `join`. *open_file* opens a file of the bundle.

    `line` is the row's first line in a text file, its number from 1 in parquet or on the Hugging Face hub.
    A DatasetError is yielded in place of a wrong row, and raised if reading cannot continue after it.
    """
    source = dataset.hf or dataset.path or ""
    read = read_hugging_face(dataset) if dataset.hf is not None else read_file(source, open_file, dataset.columns)
    found = _limited((source, line, row) for line, row in read)
    yield from join_rows(found, dataset.join.path, dataset.join.on, open_file) if dataset.join else found


def _limited(
    found: Iterator[tuple[str, int, Row | DatasetError]],
) -> Iterator[tuple[str, int, Row | DatasetError]]:
    for number, item in enumerate(found, 1):
        if number > MAX_ROWS:
            raise DatasetError(item[0], item[1], f"more than {MAX_ROWS:,} rows.", "Split the environment.")
        yield item
