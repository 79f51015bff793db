"""A .zip that is sent while it is made, so that neither memory nor disk hold it."""

import io
import time
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_PART = 64 * 1024  # bytes of a file that are read at once


class ZipStream:
    """Writer of a .zip; each method yields the pieces that are ready. The last one is taken after the `with` block.

        with ZipStream() as archive:
            yield from archive.add("data.jsonl", lines)
        yield archive.take()

    If the block ends with an error, what was yielded is no complete .zip, which every reader notices.
    """

    def __init__(self) -> None:
        self._output = _Output()
        self._archive = zipfile.ZipFile(self._output, "w")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._archive.close()

    def add(self, name: str, parts: Iterable[bytes]) -> Iterator[bytes]:
        """Add the file *name*, whose content is *parts*. The first piece comes before the first part is read."""
        info = zipfile.ZipInfo(name, time.localtime()[:6])
        info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
        with self._archive.open(info, "w", force_zip64=True) as file:
            yield self.take()
            for part in parts:
                file.write(part)
                if self._output.ready:  # the compressor holds back small amounts
                    yield self.take()

    def add_file(self, path: Path) -> Iterator[bytes]:
        """Add a file under its name."""
        with path.open("rb") as file:
            yield from self.add(path.name, iter(lambda: file.read(_PART), b""))

    def take(self) -> bytes:
        """Return what is ready and was not taken yet."""
        return self._output.take()


class _Output(io.RawIOBase):
    """The file that zipfile writes to."""

    def __init__(self) -> None:
        super().__init__()
        self.ready = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: "ReadableBuffer", /) -> int:
        self.ready += data
        return memoryview(data).nbytes

    def take(self) -> bytes:
        taken = bytes(self.ready)
        self.ready.clear()
        return taken
