"""Host for escape attempts: secrets in files, sockets, a process and shared memory, by which a leak is detected."""

import ctypes
import os
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from llmeval_site.configuration import private_files

IPC_CREAT, IPC_RMID = 0o1000, 0
LONG_AGO = 1_000_000_000
SETTLE_S = 3.0  # a killed pid namespace takes a moment to be empty


def processes_named(name: str) -> list[int]:
    """The processes of this machine, in containers too, whose command name is `name`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "comm").read_text().rstrip("\n") == name:
                found.append(int(entry.name))
        except OSError:
            continue  # gone since it was listed
    return found


def _peak_mb() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


@dataclass(slots=True)
class Host:
    """What was planted, and what has happened to it since. A context manager; `secret` is in everything readable."""

    secret: str = field(default_factory=lambda: "llmeval-secret-" + secrets.token_hex(8))
    home: Path = Path()
    tcp_port: int = 0
    udp_port: int = 0
    abstract: str = ""
    shm_key: int = 0
    victim: subprocess.Popen[bytes] | None = None
    reached: list[str] = field(default_factory=list)
    memory_mb: int = 0
    cpu_s: float = 0.0
    _undo: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self._plant_files()
        self._plant_environment()
        self._plant_sockets()
        self._plant_process(os.geteuid())
        self._plant_segment()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def begin_row(self) -> None:
        """Measure this process's memory from here on: what other tests once needed is none of this row's."""
        Path("/proc/self/clear_refs").write_text("5")  # the peak becomes what is held now
        self.memory_mb = _peak_mb()
        self.cpu_s = time.process_time()

    def memory_grown_mb(self) -> int:
        """By how much this process's peak of memory has grown since the row began."""
        return _peak_mb() - self.memory_mb

    def cpu_spent_s(self) -> float:
        """The processor time that this process has used since the row began."""
        return time.process_time() - self.cpu_s

    @property
    def secret_file(self) -> Path:
        return self.home / ".env"

    @property
    def var(self) -> Path:
        """The data folder of an installation."""
        return self.home / "var"

    @property
    def owned_file(self) -> Path:
        """A file of the sandbox's own user: mode 0644, last changed long ago."""
        return self.home / "owned"

    @property
    def drop(self) -> Path:
        """A directory anybody may write to."""
        return self.home / "drop"

    @property
    def victim_pid(self) -> int:
        assert self.victim is not None
        return self.victim.pid

    def damage(self) -> str | None:
        """What the sandboxed code did to the host, as a sentence, or None."""
        assert self.victim is not None
        if self.reached:
            return f"A socket of the host was reached: {', '.join(self.reached)}."
        if self.victim.poll() is not None:
            return "A process of the host was killed."
        if list(self.drop.iterdir()):
            return "A file was left on the host."
        state = self.owned_file.stat()
        if state.st_mode & 0o777 != 0o644 or state.st_mtime != LONG_AGO or self.owned_file.read_text() != self.secret:
            return "A file of the host was changed."
        return None

    def processes_left(self, name: str) -> list[int]:
        """The processes that call themselves `name`, once those that are just ending have ended. They are killed then,
        so that one row's failure is not the next row's."""
        deadline = time.monotonic() + SETTLE_S
        while (left := processes_named(name)) and time.monotonic() < deadline:
            pass
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return left

    def belong_to(self, uid: int) -> None:
        """Give what is planted to the user that the engine became, so that no permission bit helps."""
        if os.geteuid() == 0:
            os.chown(self.owned_file, uid, uid)
            os.utime(self.owned_file, (LONG_AGO, LONG_AGO))
            self._plant_process(uid)

    def _plant_files(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="llmeval-host-"))
        self._undo.callback(shutil.rmtree, self.home, ignore_errors=True)
        self.home.chmod(0o755)
        self.drop.mkdir()
        self.drop.chmod(0o777)
        for path in (self.secret_file, self.owned_file):
            path.write_text(self.secret)
            path.chmod(0o644)
        os.utime(self.owned_file, (LONG_AGO, LONG_AGO))
        self._plant_installation()

    def _plant_installation(self) -> None:
        """A data folder as the product makes it, with tests in its database."""
        private_files.make_private_folder(self.var)
        private_files.create_private_file(self.var / "secret_key", self.secret)
        private_files.make_private_database(self.var / "llmeval.sqlite3")
        database = sqlite3.connect(self.var / "llmeval.sqlite3")
        self._undo.callback(database.close)  # what was written last is in the file beside it until then
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE cases (expected TEXT)")
        database.execute("INSERT INTO cases VALUES (?)", [self.secret])
        database.commit()

    def _plant_environment(self) -> None:
        os.environ["LLMEVAL_PLANTED_KEY"] = self.secret
        self._undo.callback(os.environ.pop, "LLMEVAL_PLANTED_KEY", None)

    def _plant_sockets(self) -> None:
        tcp = self._listener(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 0), "TCP")
        udp = self._listener(socket.AF_INET, socket.SOCK_DGRAM, ("0.0.0.0", 0), "UDP")
        self.tcp_port, self.udp_port = tcp.getsockname()[1], udp.getsockname()[1]
        self.abstract = self.secret.replace("secret", "socket")
        self._listener(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + self.abstract, "abstract unix socket")
        self._listener(socket.AF_UNIX, socket.SOCK_STREAM, str(self.home / "control.sock"), "unix socket")
        (self.home / "control.sock").chmod(0o777)

    def _listener(self, family: int, kind: int, address: object, name: str) -> socket.socket:
        server = socket.socket(family, kind)
        server.bind(address)  # type: ignore[arg-type]
        if kind == socket.SOCK_STREAM:
            server.listen()

        def serve() -> None:
            try:
                while True:
                    if kind == socket.SOCK_STREAM:
                        server.accept()[0].close()
                    else:
                        server.recv(64)
                    self.reached.append(name)
            except OSError:
                return  # shut down by the undo below

        def close() -> None:
            try:
                server.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # an unconnected UDP socket says so, and wakes its reader all the same
            server.close()

        threading.Thread(target=serve, daemon=True, name=f"planted {name}").start()
        self._undo.callback(close)
        return server

    def _plant_process(self, uid: int) -> None:
        victim = subprocess.Popen(["sleep", "3600"], cwd="/", env={}, user=uid, group=uid, extra_groups=None)
        self._undo.callback(victim.wait)
        self._undo.callback(victim.send_signal, signal.SIGKILL)
        self.victim = victim

    def _plant_segment(self) -> None:
        if sys.platform != "linux":
            return
        libc = ctypes.CDLL(None, use_errno=True)
        self.shm_key = 0x4C4C0000 + os.getpid() % 0xFFFF
        segment = libc.shmget(self.shm_key, 4096, IPC_CREAT | 0o666)
        libc.shmat.restype = ctypes.c_void_p
        address = libc.shmat(segment, None, 0)
        ctypes.memmove(address, self.secret.encode(), len(self.secret))
        self._undo.callback(libc.shmctl, segment, IPC_RMID, None)
        self._undo.callback(libc.shmdt, ctypes.c_void_p(address))
