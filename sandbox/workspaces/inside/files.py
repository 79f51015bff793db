"""Files that are copied out of a box or into one: artifacts for scoring, and snapshots of the writable folders.

Runs inside the box as the agent's user. Links are never followed. A snapshot is a compressed tar archive. Its members
are named `N/path`, with the number of their folder. The host stores archives and never unpacks them. `Unpacker` fails
if a member could leave its folder, or is of a kind that `Packer` does not write.
"""

# mypy: allow-any-generics

import base64
import os
import stat
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    import tarfile  # slow to import, and only snapshots need it

CHUNK = 192 * 1024
BLOCK = 64 * 1024  # blocks of zeros are not written, so that sparse files stay sparse
GZIP = 31  # the format of zlib: with a header without name and time, so that equal folders have equal archives
LNKTYPE, SYMTYPE, DIRTYPE, FIFOTYPE = b"1", b"2", b"5", b"6"  # types of members, as in tarfile
NAMED = 20  # entries that are left out are named up to this number


class RequestRefused(Exception):
    """A request that cannot be carried out; the message is the reply."""


def open_regular(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        raise RequestRefused("it is a folder" if stat.S_ISDIR(kind) else "it is not a regular file")
    return descriptor


def open_own(path: str, mode: int) -> int:
    """Open a file of this user, whose processes have ended or are stopped, also if its *mode* forbids reading."""
    if not mode & 0o400:
        os.chmod(path, mode | 0o400)
    try:
        return open_regular(path, os.O_RDONLY | os.O_NOFOLLOW)
    finally:
        if not mode & 0o400:
            os.chmod(path, mode)


class Folders:
    """Folders that their owner may not enter or list, and now may until `lock` is called."""

    def __init__(self) -> None:
        self.unlocked: list = []  # with their modes

    def unlock(self, path: str, mode: int) -> None:
        if mode & 0o500 != 0o500:
            os.chmod(path, mode | 0o500)
            self.unlocked.append((path, mode))

    def lock(self) -> None:
        for path, mode in reversed(self.unlocked):
            os.chmod(path, mode)


class Export:
    """Sends files below the declared paths. Links are never followed, and only regular files and folders are sent.

    What the agent's user may not read is sent too: otherwise files that were made unreadable would count as removed.
    """

    def __init__(self, request: dict, send: Callable[[dict], None]) -> None:
        self.id = request["id"]
        self.paths = request["paths"]
        self.bytes_left = request["max_bytes"]
        self.entries_left = request["max_entries"]
        self.write = send
        self.folders = Folders()

    def run(self) -> dict:
        try:
            for path in self.paths:
                self.send_below(path)
        finally:
            self.folders.lock()
        return {}

    def send_below(self, path: str) -> None:
        if not os.path.lexists(path):
            self.send("missing", path)
            return
        waiting = [path]
        while waiting:
            path = waiting.pop()
            waiting += [os.path.join(path, name) for name in reversed(self.visit(path))]

    def visit(self, path: str) -> list:
        """Send one entry; return the names in it if it is a folder."""
        self.entries_left -= 1
        if self.entries_left < 0:
            raise RequestRefused("too large")
        try:
            path.encode()
            kind = os.lstat(path).st_mode
        except (UnicodeEncodeError, OSError):  # its path may be too long for the system
            self.send("refused", ascii(path)[1:-1])
            return []
        if stat.S_ISREG(kind):
            self.copy(path, stat.S_IMODE(kind))
        elif not stat.S_ISDIR(kind):
            self.send("refused", path)
        else:
            self.send("folder", path, mode=stat.S_IMODE(kind))
            try:
                self.folders.unlock(path, stat.S_IMODE(kind))
                return sorted(os.listdir(path))
            except OSError:
                self.send("refused", path)
        return []

    def copy(self, path: str, mode: int) -> None:
        try:
            descriptor = open_own(path, mode)
        except (OSError, RequestRefused):
            self.send("refused", path)
            return
        with os.fdopen(descriptor, "rb") as file:
            self.send("file", path, mode=mode)
            while True:
                data = file.read(CHUNK)
                if not data:
                    return
                self.bytes_left -= len(data)
                if self.bytes_left < 0:
                    raise RequestRefused("too large")
                self.send("data", path, data=base64.b64encode(data).decode())

    def send(self, kind: str, path: str, **values: object) -> None:
        self.write(dict(values, id=self.id, part=kind, path=path))


# ---- snapshots -------------------------------------------------------------------------------------------------------


class Compressed:
    """Compresses what is written and passes it on in parts."""

    def __init__(self, emit: Callable[[bytes], None]) -> None:
        self.emit = emit
        self.compressor = zlib.compressobj(1, zlib.DEFLATED, GZIP)
        self.waiting = bytearray()

    def write(self, data: bytes) -> int:
        self.waiting += self.compressor.compress(data)
        while len(self.waiting) >= CHUNK:
            self.emit(bytes(self.waiting[:CHUNK]))
            del self.waiting[:CHUNK]
        return len(data)

    def close(self) -> None:
        self.waiting += self.compressor.flush()
        if self.waiting:
            self.emit(bytes(self.waiting))


class Decompressed:
    """Reads from a file that is compressed."""

    def __init__(self, source: BinaryIO) -> None:
        self.source = source
        self.decompressor = zlib.decompressobj(GZIP)

    def read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size and not self.decompressor.eof:
            more = self.decompressor.unconsumed_tail or self.source.read(CHUNK)
            if not more:
                break
            data += self.decompressor.decompress(more, size - len(data))
        return bytes(data)


class Archive:
    """Folders that are packed or unpacked. Counts the length of files, so that sparse ones cannot be huge."""

    def __init__(self, folders: Sequence[str], max_bytes: int, max_entries: int) -> None:
        self.folders = folders
        self.max_bytes = max_bytes
        self.max_entries = max_entries
        self.bytes = 0
        self.entries = 0

    def count_entry(self) -> None:
        self.entries += 1
        if self.entries > self.max_entries:
            raise RequestRefused("there are more than %d files and folders" % self.max_entries)

    def count_bytes(self, size: int, path: str) -> None:
        self.bytes += size
        if self.bytes > self.max_bytes:
            named = "; %s alone has %.1f MB" % (path, size / 2**20) if size > self.max_bytes else ""
            raise RequestRefused("the files have more than %d MB%s" % (self.max_bytes // 2**20, named))


class Packer(Archive):
    """Writes the folders of the agent to an archive."""

    def __init__(self, folders: Sequence[str], max_bytes: int, max_entries: int) -> None:
        super().__init__(folders, max_bytes, max_entries)
        self.left_out: list = []
        self.links: dict = {}  # device and inode -> name of the first member
        self.unlocked = Folders()

    def pack(self, emit: Callable[[bytes], None]) -> dict:
        import tarfile

        output = Compressed(emit)
        try:
            with tarfile.open(fileobj=output, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8") as archive:  # type: ignore[call-overload]
                for number, folder in enumerate(self.folders):
                    if os.path.isdir(folder) and not os.path.islink(folder):
                        self.add_below(archive, folder, str(number))
        finally:
            self.unlocked.lock()
        output.close()
        return {"bytes": self.bytes, "entries": self.entries, "left_out": self.left_out[:NAMED]}

    def add_below(self, archive: "tarfile.TarFile", folder: str, number: str) -> None:
        waiting = [("", number)]
        while waiting:
            below, name = waiting.pop()
            children = self.add(archive, os.path.join(folder, below) if below else folder, name, top=not below)
            waiting += [(os.path.join(below, child), name + "/" + child) for child in reversed(children)]

    def add(self, archive: "tarfile.TarFile", path: str, name: str, top: bool) -> list:
        """Add one entry; return the names in it if it is a folder."""
        facts = os.lstat(path)
        if facts.st_uid != os.getuid() and not top:
            self.left_out.append(ascii(path))
            return []
        self.count_entry()
        member = archive.tarinfo(name)
        member.mode, member.mtime = stat.S_IMODE(facts.st_mode), facts.st_mtime
        member.uid, member.gid = facts.st_uid, facts.st_gid
        if stat.S_ISDIR(facts.st_mode):
            member.type = DIRTYPE
            archive.addfile(member)
            if facts.st_uid == os.getuid():
                self.unlocked.unlock(path, member.mode)
            return sorted(os.listdir(path))
        if stat.S_ISLNK(facts.st_mode):
            member.type, member.linkname = SYMTYPE, os.readlink(path)
            archive.addfile(member)
        elif stat.S_ISFIFO(facts.st_mode):
            member.type = FIFOTYPE
            archive.addfile(member)
        elif stat.S_ISREG(facts.st_mode):
            self.add_file(archive, path, member, facts)
        else:
            self.left_out.append(ascii(path))
        return []

    def add_file(self, archive: "tarfile.TarFile", path: str, member: "tarfile.TarInfo", facts: os.stat_result) -> None:
        first = self.links.setdefault((facts.st_dev, facts.st_ino), member.name)
        if first != member.name:
            member.type, member.linkname = LNKTYPE, first
            archive.addfile(member)
            return
        self.count_bytes(facts.st_size, ascii(path))
        with os.fdopen(open_own(path, member.mode), "rb") as file:
            member.size = facts.st_size
            archive.addfile(member, file)


class Unpacker(Archive):
    """Makes the entries of an archive in folders that are empty."""

    def __init__(self, folders: Sequence[str], max_bytes: int, max_entries: int) -> None:
        super().__init__(folders, max_bytes, max_entries)
        self.made: dict = {}  # name -> path of each folder
        self.files: dict = {}  # name -> path of each regular file
        self.after: list = []  # folders with the mode and time that they get at the end

    def unpack(self, source: BinaryIO) -> dict:
        import tarfile

        try:
            with tarfile.open(fileobj=Decompressed(source), mode="r|", encoding="utf-8") as archive:  # type: ignore[call-overload]
                for member in archive:
                    self.add(archive, member)
        except (tarfile.TarError, zlib.error, ValueError) as error:
            raise RequestRefused("the snapshot cannot be read: %s" % error) from None
        for path, mode, time in reversed(self.after):
            if os.lstat(path).st_uid == os.getuid():
                os.chmod(path, mode)
                os.utime(path, (time, time))
        return {"bytes": self.bytes, "entries": self.entries}

    def add(self, archive: "tarfile.TarFile", member: "tarfile.TarInfo") -> None:
        self.count_entry()
        name = member.name
        path = self.path_of(name)
        mode, times = member.mode & 0o7777, (member.mtime, member.mtime)
        if member.isdir():
            if "/" in name:
                os.mkdir(path, 0o700)
            self.made[name] = path
            self.after.append((path, mode, member.mtime))
        elif member.issym():
            os.symlink(member.linkname, path)
            os.utime(path, times, follow_symlinks=False)
        elif member.islnk():
            if member.linkname not in self.files:
                raise RequestRefused("the snapshot has a hard link to %r, which is not in it" % member.linkname)
            os.link(self.files[member.linkname], path, follow_symlinks=False)
        elif member.isfifo():
            os.mkfifo(path, mode)
            os.chmod(path, mode)
            os.utime(path, times)
        elif member.isreg() and not member.issparse():
            self.write(archive, member, path)
            os.chmod(path, mode)
            os.utime(path, times)
            self.files[name] = path
        else:
            raise RequestRefused("the snapshot has %r, which is not a file, folder or link" % name)

    def path_of(self, name: str) -> str:
        """Return where the member *name* goes. Its folder must come before it, so no link is in the path."""
        number, _, below = name.partition("/")
        parts = below.split("/") if below else []
        known = number.isdigit() and str(int(number)) == number and int(number) < len(self.folders)
        if not known or any(part in ("", ".", "..") for part in parts):
            raise RequestRefused("the snapshot has %r, which is outside of its folders" % name)
        if not parts:
            return self.folders[int(number)]
        above, _, last = name.rpartition("/")
        if above not in self.made:
            raise RequestRefused("the snapshot has %r, whose folder is not in it" % name)
        return os.path.join(self.made[above], last)

    def write(self, archive: "tarfile.TarFile", member: "tarfile.TarInfo", path: str) -> None:
        self.count_bytes(member.size, ascii(path))
        source = archive.extractfile(member)
        assert source is not None
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            while True:
                block = source.read(BLOCK)
                if not block:
                    break
                if block.strip(b"\0"):
                    file.write(block)
                else:
                    file.seek(len(block), os.SEEK_CUR)
            file.truncate(member.size)
