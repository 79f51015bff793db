"""The engine as a child process of this one."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from sandbox.connections.transports.base import Transport, TransportOptions
from sandbox.engine.isolation import cgroups
from sandbox.errors import EngineFailed, SandboxUnavailable

ENGINE = Path(__file__).resolve().parents[2] / "engine"
_CLOSE_TIMEOUT_S = 5.0
# Resolve the functions of shared libraries at the start; otherwise each forked run does so. See docs/decisions/0012.
# One heap for all threads; otherwise glibc reserves 64 MiB for each, which counts against the memory limit of a run.
# Both are set in sandbox/image/Dockerfile, too.
_ENVIRONMENT = {"LD_BIND_NOW": "1", "MALLOC_ARENA_MAX": "1"}


def interpreter() -> str:
    """Return the Python that engines run with: the base of the virtual environment, without its packages."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


class LocalTransport(Transport):
    """`python -I -S engine` with an empty environment, over its stdin and stdout.

    The engine ends when its stdin is closed, so it ends with this process, also if that is killed. All descriptors are
    closed on exec, and `detach_after_fork` closes them in forks, so nothing else keeps that stdin open.
    """

    backend = "local"
    install_hint = "run `manage.py sandbox_packages install`"

    def __init__(self, options: TransportOptions) -> None:
        super().__init__(options)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def packages_folder(self) -> str:
        return self.options.packages

    def open(self) -> None:
        command = [interpreter(), "-I", "-S", "-X", "utf8", str(ENGINE)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_ENVIRONMENT,
                cwd="/",
                bufsize=0,
            )
        except OSError as error:
            raise SandboxUnavailable(f"The sandbox engine could not be started: {error}.") from error

    def fileno(self) -> int:
        return self._streams()[1]

    def read(self) -> bytes:
        try:
            return os.read(self._streams()[1], 1 << 18)
        except OSError:
            return b""

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._streams()[0], view) :]
        except OSError as error:
            raise EngineFailed(f"The engine stopped reading: {error}.") from error

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        self._close_streams(process)
        try:
            process.wait(_CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()  # its zygote and all runs end with it
            process.wait()
        if sys.platform == "linux" and os.geteuid() == 0:
            cgroups.sweep(process.pid)  # the engine created them as root and has no right to remove them

    def abort(self) -> None:
        process = self._process
        if process is not None:
            process.kill()

    def detach_after_fork(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            self._close_streams(process)
            process.returncode = 0  # the parent process waits for it

    @property
    def pid(self) -> int:
        """The engine's process id."""
        return self._running().pid

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise EngineFailed("The engine is closed.")
        return self._process

    def _streams(self) -> tuple[int, int]:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        return process.stdin.fileno(), process.stdout.fileno()

    @staticmethod
    def _close_streams(process: "subprocess.Popen[bytes]") -> None:
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
