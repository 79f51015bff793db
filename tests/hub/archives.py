"""Archives for tests: valid ones, and ones with a single defect."""

import io
import stat
import struct
import zipfile
from collections.abc import Mapping

GOOD = {
    "environment.yaml": b"spec: 1\n",
    "cases.jsonl": b'{"input": "one"}\n{"input": "two"}\n',
    "data/a.txt": b"text" * 50,
}


def packed(files: Mapping[str, bytes] = GOOD, *, stored: bool = False) -> bytes:
    """A plain archive of *files*."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return out.getvalue()


def with_entries(*entries: tuple[zipfile.ZipInfo, bytes]) -> bytes:
    """The good archive and *entries* as they are."""
    out = io.BytesIO(packed())
    with zipfile.ZipFile(out, "a") as archive:
        for info, content in entries:
            archive.writestr(info, content)
    return out.getvalue()


def named(name: str, content: bytes = b"x") -> bytes:
    """Return the valid archive with an entry called *name*, also if zipfile would change the name."""
    stand_in = "N" * len(name.encode())
    return with_entries((zipfile.ZipInfo(stand_in), content)).replace(stand_in.encode(), name.encode())


def link(name: str = "link", target: str = "/etc/passwd") -> bytes:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return with_entries((info, target.encode()))


def device() -> bytes:
    info = zipfile.ZipInfo("device")
    info.create_system = 3
    info.external_attr = (stat.S_IFCHR | 0o666) << 16
    return with_entries((info, b""))


def patched_directory(data: bytes, offset: int, form: str, value: int, *, entry: int = 0) -> bytes:
    """*data* with a field of a central directory entry overwritten: *offset* within the entry, *form* as struct's."""
    changed = bytearray(data)
    at = -1
    for _ in range(entry + 1):
        at = data.index(b"PK\x01\x02", at + 1)
    struct.pack_into(form, changed, at + offset, value)
    return bytes(changed)
