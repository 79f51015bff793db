"""Archives of bundles: limits on their content, reading of untrusted archives, reproducible writing.

A .zip is checked completely, in constant memory, before any of it is used. Nothing is unpacked to disk: a bundle is
read from its archive.
"""

import hashlib
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import IO

from hub.common.problems import Problem
from hub.manifest.problems import BundleError

MAX_ENTRIES = 10_000
MAX_UNPACKED = 512 * 1024 * 1024
MAX_RATIO = 200
MAX_DIRECTORY = 8 * 1024 * 1024  # bytes of the central directory: 10,000 entries with long names and extra fields
MAX_PATH = 400
JUNK = frozenset({"__pycache__", "__MACOSX", ".DS_Store", ".git", ".hg", ".svn", ".idea", "Thumbs.db", "desktop.ini"})

# Compress-Archive of Windows PowerShell 5 writes backslashes between folders.
_SLASHES = "If it separates folders, pack again with another program, such as the menu of Windows Explorer or zip."
_EPOCH = (1980, 1, 1, 0, 0, 0)
_END, _END_SIZE = b"PK\x05\x06", 22
_LOCAL = struct.Struct("<4s5H3I2H")
_CHUNK = 256 * 1024


class ArchiveError(BundleError):
    """Rejected archive."""

    def __init__(self, message: str, remedy: str = "", *, entry: str = "") -> None:
        super().__init__(Problem(file=entry or "the archive", message=message, remedy=remedy))


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file of a bundle: its unpacked size in bytes and its SHA-256 in hexadecimal."""

    size: int
    sha256: str


# ---- names -----------------------------------------------------------------------------------------------------------


def is_junk(path: str) -> bool:
    """Return whether the file is a by-product of tools (caches, version control) and not part of a bundle."""
    return path.endswith(".pyc") or not JUNK.isdisjoint(path.split("/"))


def check_names(paths: Iterable[str], folders: Container[str] = ()) -> None:
    """Check that no path leaves the bundle and that all are distinct on every file system. Raises ArchiveError.

    *folders* are the paths that are folders.
    """
    seen: dict[str, str] = {}
    for path in paths:
        problem = _name_problem(path)
        if problem:
            remedy = _SLASHES if "\\" in path else "Rename it and pack again."
            raise ArchiveError(problem, remedy, entry=ascii(path)[1:-1][:MAX_PATH])
        key = _folded(path)
        if key in seen:
            raise ArchiveError(
                f"the name occurs twice (also as {seen[key]!r}), or differs only in case or encoding of accents.",
                "Keep one of the two.",
                entry=path,
            )
        seen[key] = path
    for key, path in seen.items():
        parts = key.split("/")
        for end in range(1, len(parts)):
            parent = seen.get("/".join(parts[:end]))
            if parent is not None and parent not in folders:
                raise ArchiveError(
                    "a folder of its path is also the name of a file.", "Rename one of the two.", entry=path
                )


def _folded(path: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())


def _name_problem(path: str) -> str:
    if not path or len(path) > MAX_PATH:
        return f"the name is empty or longer than {MAX_PATH} characters."
    if path.startswith("/") or (len(path) > 1 and path[1] == ":"):
        return "the path is absolute."
    if "\\" in path or not path.isprintable():
        return "the name has a backslash or characters that are not printable."
    if any(part in ("", ".", "..") for part in path.split("/")):
        return "the path leaves the bundle, or has empty parts."
    return ""


# ---- reading ---------------------------------------------------------------------------------------------------------


class Archive:
    """A checked .zip: `files` by path without by-products of tools, each readable with `open`."""

    def __init__(self, file: IO[bytes]) -> None:
        """*file* is seekable and stays open as long as the archive is used. Raises ArchiveError."""
        self._zip = _open(file)
        entries = self._zip.infolist()
        directory = self._zip.start_dir
        for entry in entries:
            _check_entry(entry)
        named = {entry.orig_filename.rstrip("/"): entry for entry in entries}
        if len(named) != len(entries):
            names = Counter(entry.orig_filename.rstrip("/") for entry in entries)
            twice = ascii(names.most_common(1)[0][0])[1:-1][:MAX_PATH]
            raise ArchiveError("two entries have this name.", "Pack it again.", entry=twice)
        folders = {path for path, entry in named.items() if _is_folder(entry)}
        check_names(named, folders)
        _check_sizes(entries)
        _check_overlaps(file, entries, directory)
        self._entries = {p: e for p, e in named.items() if p not in folders and not is_junk(p)}
        self.files: dict[str, FileInfo] = {p: _examine(file, e) for p, e in sorted(self._entries.items())}

    def open(self, path: str) -> IO[bytes]:
        """Open a file of the archive. Raises FileNotFoundError."""
        if path not in self._entries:
            raise FileNotFoundError(path)
        return self._zip.open(self._entries[path])

    def close(self) -> None:
        self._zip.close()


def _open(file: IO[bytes]) -> zipfile.ZipFile:
    """Open the .zip after checking its end record and directory. Raises ArchiveError."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_SIZE - 0xFFFF))
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_SIZE:
        raise ArchiveError("this is not a .zip archive, or its end is missing.", "Pack the bundle's folder with zip.")
    disk, start_disk, here, entries, length, offset, _ = struct.unpack_from("<4H2IH", tail, at + 4)
    if 0xFFFF in (here, entries) or 0xFFFFFFFF in (length, offset):
        raise ArchiveError(f"it has more than {MAX_ENTRIES:,} entries, or is a zip64 archive.", "Pack fewer files.")
    if disk or start_disk or here != entries:
        raise ArchiveError("it is one part of a multi-part archive.", "Pack it as one file.")
    if entries > MAX_ENTRIES or length > MAX_DIRECTORY:
        raise ArchiveError(f"it has more than {MAX_ENTRIES:,} entries.", "Put the cases into one data file.")
    if offset + length != size - len(tail) + at:
        raise ArchiveError("its directory is not at the announced offset, or other data precedes it.", "Pack it again.")
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, UnicodeDecodeError, NotImplementedError, struct.error, ValueError) as error:
        raise ArchiveError(f"its directory cannot be read: {error}.", "Pack it again.") from None
    if len(archive.infolist()) != entries:
        raise ArchiveError("its directory has a different number of entries than announced.", "Pack it again.")
    return archive


def _is_folder(entry: zipfile.ZipInfo) -> bool:
    return entry.orig_filename.endswith("/")


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name = entry.orig_filename
    shown = ascii(name)[1:-1][:MAX_PATH]
    if entry.flag_bits & (0x1 | 0x40 | 0x2000):
        raise ArchiveError("the entry is encrypted.", "Pack it without a password.", entry=shown)
    if not entry.flag_bits & 0x800 and not name.isascii():
        raise ArchiveError("the name is not ASCII and not marked as UTF-8.", "Rename it and pack again.", entry=shown)
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise ArchiveError("the entry is a link or a device.", "Pack the file itself.", entry=shown)
    if _is_folder(entry) and (entry.file_size or kind == stat.S_IFREG):
        raise ArchiveError("the entry is a folder with content.", "Pack it again.", entry=shown)
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ArchiveError("the entry is compressed by another method than deflate.", "Pack it with zip.", entry=shown)


def _check_sizes(entries: list[zipfile.ZipInfo]) -> None:
    total = sum(entry.file_size for entry in entries)
    if total > MAX_UNPACKED:
        raise ArchiveError(f"it unpacks to {total:,} bytes; at most {MAX_UNPACKED:,} are allowed.", "Leave files out.")
    for entry in entries:
        if entry.file_size > MAX_RATIO * entry.compress_size:
            raise ArchiveError(
                f"the entry unpacks to more than {MAX_RATIO} times its size.",
                "If that is right, pack it without compression (zip -0).",
                entry=entry.orig_filename,
            )


def _check_overlaps(file: IO[bytes], entries: list[zipfile.ZipInfo], directory: int) -> None:
    end = 0
    for entry in sorted(entries, key=lambda e: e.header_offset):
        if entry.header_offset < end:
            raise ArchiveError(
                "the data of the entry overlaps another entry.", "Pack it again.", entry=entry.orig_filename
            )
        end = _data_offset(file, entry) + entry.compress_size
        if end > directory:
            raise ArchiveError(
                "the data of the entry overlaps the directory.", "Pack it again.", entry=entry.orig_filename
            )


def _data_offset(file: IO[bytes], entry: zipfile.ZipInfo) -> int:
    """Return the offset of the entry's data. Its local header must agree with the directory."""
    file.seek(entry.header_offset)
    raw = file.read(_LOCAL.size)
    if len(raw) == _LOCAL.size:
        mark, _, flags, method, _, _, _, _, _, name_size, extra_size = _LOCAL.unpack(raw)
        encoding = "utf-8" if flags & 0x800 else "cp437"
        name = file.read(name_size)
        same = flags == entry.flag_bits and method == entry.compress_type
        if mark == b"PK\x03\x04" and same and name == entry.orig_filename.encode(encoding, "replace"):
            return int(entry.header_offset + _LOCAL.size + name_size + extra_size)
    raise ArchiveError(
        "the local header of the entry differs from the directory.", "Pack it again.", entry=entry.filename
    )


def _examine(file: IO[bytes], entry: zipfile.ZipInfo) -> FileInfo:
    """Check the entry by unpacking it without storing the data: size and checksum must match its header."""
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS) if entry.compress_type == zipfile.ZIP_DEFLATED else None
    file.seek(_data_offset(file, entry))
    left, size, crc, sha256 = entry.compress_size, 0, 0, hashlib.sha256()
    complete = unpacker is None
    try:
        while left > 0 or (unpacker and unpacker.unconsumed_tail):
            packed = unpacker.unconsumed_tail if unpacker else b""
            if not packed:
                packed = file.read(min(left, _CHUNK))
                left -= len(packed)
                if not packed:
                    break
            data = unpacker.decompress(packed, _CHUNK) if unpacker else packed
            size += len(data)
            if size > entry.file_size:
                break
            crc = zlib.crc32(data, crc)
            sha256.update(data)
        if unpacker:
            complete = unpacker.eof and not unpacker.unused_data
    except zlib.error:
        complete = False
    if not complete or left or size != entry.file_size or crc != entry.CRC:
        raise ArchiveError(
            "the content of the entry does not match its header.", "Pack it again.", entry=entry.filename
        )
    return FileInfo(size, sha256.hexdigest())


# ---- writing ---------------------------------------------------------------------------------------------------------


def write_archive(file: IO[bytes], files: Mapping[str, FileInfo], opener: Callable[[str], IO[bytes]]) -> None:
    """Write *files* as a .zip into *file* (empty, seekable), reproducibly: sorted, without times and owners.

    Files that deflate would shrink beyond MAX_RATIO are stored uncompressed, so that `Archive` accepts the result.
    """
    stored: set[str] = set()
    while True:
        file.seek(0)
        file.truncate()
        with zipfile.ZipFile(file, "w") as archive:
            for path in sorted(files):
                entry = zipfile.ZipInfo(path, _EPOCH)
                entry.create_system = 3
                entry.external_attr = (stat.S_IFREG | 0o644) << 16
                entry.compress_type = zipfile.ZIP_STORED if path in stored else zipfile.ZIP_DEFLATED
                entry.file_size = files[path].size  # so that zipfile does not use zip64
                with opener(path) as source, archive.open(entry, "w") as target:
                    while chunk := source.read(_CHUNK):
                        target.write(chunk)
            over = {e.filename for e in archive.infolist() if e.file_size > MAX_RATIO * e.compress_size} - stored
        if not over:
            return
        stored |= over
