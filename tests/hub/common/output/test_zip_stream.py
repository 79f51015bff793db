"""A .zip that is sent while it is made: its pieces are a valid archive, and the first comes before the last part."""

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hub.common.output.zip_stream import ZipStream


def test_pieces_are_an_archive_and_come_before_all_parts_are_read(tmp_path: Path) -> None:
    on_disk = tmp_path / "café.bin"
    on_disk.write_bytes(os.urandom(300_000))
    read = 0

    def parts() -> Iterator[bytes]:
        nonlocal read
        for _ in range(20):
            read += 1
            yield os.urandom(20_000)

    def made() -> Iterator[bytes]:
        with ZipStream() as archive:
            yield from archive.add("data.bin", parts())
            yield from archive.add_file(on_disk)
            yield from archive.add("empty.txt", [])
        yield archive.take()

    pieces = made()
    content = next(pieces)
    assert content
    assert read == 0
    content += next(pieces)
    assert 0 < read < 10
    content += b"".join(pieces)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["data.bin", "café.bin", "empty.txt"]
        assert len(archive.read("data.bin")) == 400_000
        assert archive.read("café.bin") == on_disk.read_bytes()


def test_pieces_before_an_error_are_no_archive() -> None:
    def parts() -> Iterator[bytes]:
        yield os.urandom(200_000)
        raise OSError("gone")

    found = b""
    with pytest.raises(OSError, match="gone"), ZipStream() as archive:
        for piece in archive.add("data.bin", parts()):
            found += piece
    assert found
    with pytest.raises(zipfile.BadZipFile):
        zipfile.ZipFile(io.BytesIO(found))
