"""Reader of .parquet files that limits the size of unpacked rows."""

import tempfile
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from hub.datasets.row_types import (
    MAX_DATA_BYTES,
    MAX_ROW_BYTES,
    MAX_ROWS,
    DatasetError,
    check_columns,
    to_json_value,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_PARQUET_ROWS = 256  # read at a time
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_REFERENCE = 4  # bytes of a reference to a text


def read_parquet(path: str, stream: IO[bytes]) -> Iterator[tuple[int, object]]:
    """Yield (number, row) of a parquet file, from 1. Raises DatasetError.

    Encodings can repeat a value many times in a few bytes, so the unpacked size is computed before data is unpacked.
    """
    import pyarrow as pa  # slow to import, and only this format needs it
    import pyarrow.parquet as pq

    with tempfile.TemporaryFile() as file:  # parquet needs a seekable file, which a zip member or a .gz is not
        size = 0
        while chunk := stream.read(1 << 20):
            size += len(chunk)
            if size > MAX_DATA_BYTES:
                raise DatasetError(path, None, f"the data is more than {MAX_DATA_BYTES:,} bytes.")
            file.write(chunk)
        file.seek(0)
        try:
            metadata = pq.read_metadata(file)
            _check_parquet_size(path, metadata)
            check_columns(path, metadata.schema.to_arrow_schema().names)
            columns = [metadata.schema.column(i) for i in range(metadata.num_columns)]
            # Texts stay references to a dictionary until their row is converted.
            texts = [column.path for column in columns if _is_text(column)]
            file.seek(0)
            table = pq.ParquetFile(file, read_dictionary=texts)
            number = unpacked_bytes = 0
            for group in range(table.num_row_groups):
                for batch in table.iter_batches(batch_size=_PARQUET_ROWS, row_groups=[group]):
                    for part in _split_large_batch(batch, path, number):
                        unpacked_bytes += sum(map(_unpacked_size, part.columns))
                        if unpacked_bytes > MAX_DATA_BYTES:
                            limit = f"{MAX_DATA_BYTES:,} bytes unpacked"
                            raise DatasetError(path, number + 1, f"the data is more than {limit}.")
                        for row in _rows(part, path, number):
                            number += 1
                            yield number, to_json_value(row, path, number)
        except (pa.ArrowException, OSError) as error:
            raise DatasetError(path, None, f"not parquet: {' '.join(str(error).split())[:200]}") from None


def _rows(part: "pa.RecordBatch", path: str, before: int) -> list[dict[str, object]]:
    """Return the rows of *part*; *before* rows were read earlier. Raises DatasetError for values Python cannot have."""
    try:
        rows: list[dict[str, object]] = part.to_pylist()
    except (ValueError, OverflowError):  # texts that are not UTF-8, times after the year 9999
        for index in range(part.num_rows):
            try:
                part.slice(index, 1).to_pylist()
            except (ValueError, OverflowError) as error:
                raise DatasetError(path, before + index + 1, f"a value of the row cannot be read: {error}.") from None
        raise
    return rows


def _split_large_batch(batch: "pa.RecordBatch", path: str, before: int) -> Iterator["pa.RecordBatch"]:
    """Yield *batch*, or each of its rows if it is large; *before* rows were read earlier. Raises DatasetError."""
    if sum(map(_unpacked_size, batch.columns)) <= MAX_ROW_BYTES:
        yield batch
        return
    for index in range(batch.num_rows):
        row = batch.slice(index, 1)
        if sum(map(_unpacked_size, row.columns)) > MAX_ROW_BYTES:
            limit = f"{MAX_ROW_BYTES:,} bytes unpacked"
            raise DatasetError(path, before + index + 1, f"the row is more than {limit}.")
        yield row


def _is_text(column: "pq.ColumnSchema") -> bool:
    return bool(column.physical_type == "BYTE_ARRAY" and column.logical_type.type != "DECIMAL")


def _check_parquet_size(path: str, metadata: "pq.FileMetaData") -> None:
    """Raise DatasetError if the metadata announces too much data, by the pages or by the number of values."""
    pages = values = 0
    for group in (metadata.row_group(i) for i in range(metadata.num_row_groups)):
        pages += group.total_byte_size
        for i in range(group.num_columns):
            column = metadata.schema.column(i)
            values += group.column(i).num_values * (_WIDTHS.get(column.physical_type) or column.length or _REFERENCE)
    if max(pages, values) > MAX_DATA_BYTES:
        raise DatasetError(path, None, f"the data is more than {MAX_DATA_BYTES:,} bytes unpacked.")
    if metadata.num_rows > MAX_ROWS:
        raise DatasetError(path, None, f"more than {MAX_ROWS:,} rows.", "Split the environment.")


def _unpacked_size(array: "pa.Array") -> int:
    """Return the bytes of *array* after every reference to a text is replaced by the text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_dictionary(kind):
        lengths = pc.binary_length(array.dictionary)
        return int(pc.sum(lengths.take(array.indices)).as_py() or 0) + 8 * len(array)
    if pa.types.is_map(kind):
        first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
        entries = (array.keys.slice(first, last - first), array.items.slice(first, last - first))
        return sum(map(_unpacked_size, entries)) + 8 * len(array)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return int(_unpacked_size(array.flatten())) + 8 * len(array)
    if pa.types.is_struct(kind):
        return sum(map(_unpacked_size, array.flatten())) + 8 * len(array)
    return int(max(array.nbytes, 8 * len(array)))
