"""The driver: process 1 of a box. Carries out requests from standard input and replies on standard output.

Runs inside the box with any Python from 3.9 on, started with `python3 -I -S -c`: it imports only the standard library
and `files.py`, which is sent with it.
Requests and replies are lines of JSON; a line that cannot be parsed is ignored. In a native box, requests come from the
connections of a socket, and replies go to them. The driver is root without capabilities except those to change its user
and to kill. Commands and file operations of the agent run as the agent's user, so the agent can neither kill the driver
nor write to its streams.
"""

# mypy: allow-any-generics

import base64
import contextlib
import errno
import json
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Callable
from typing import TypeVar

from sandbox.workspaces.inside.files import CHUNK, Export, Packer, RequestRefused, Unpacker, open_regular

T = TypeVar("T")
Request = dict  # as JSON
CONFIG: Request = {}  # set by `main`
MAX_LINE = 8 * 1024 * 1024
FILE_SECONDS = 30
SEND_SECONDS = 30
MAX_CONNECTIONS = 64


def send(message: Request) -> None:
    data = json.dumps(dict(message, generation=CONFIG["generation"])).encode() + b"\n"
    while data:
        data = data[os.write(CONFIG.get("output", 1), data) :]


def become(root: bool) -> None:
    """Give up root permanently, unless *root*. Processes of the box are killed before the driver if memory is full."""
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    os.umask(0o022)
    if not root:
        os.setgroups([])
        os.setgid(CONFIG["user"])
        os.setuid(CONFIG["user"])


def end_processes() -> None:
    try:
        os.kill(-1, signal.SIGKILL)  # all but this process
    except ProcessLookupError:
        pass
    reap()


def reap() -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def with_room(start: Callable[[], T]) -> T:
    """Call *start*, which starts a process. If the box is full, end all its processes and report it."""
    try:
        return start()
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.ENOMEM):
            raise
        end_processes()
        raise RequestRefused("full") from None


# ---- commands --------------------------------------------------------------------------------------------------------


class Output:
    """The first and the last bytes of what a command writes."""

    def __init__(self, limit: int) -> None:
        self.half = max(limit // 2, 1)
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self.half - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > 2 * self.half:
            del self.tail[: -self.half]

    def parts(self) -> tuple[bytes, bytes, int]:
        tail = self.tail[-self.half :]
        return bytes(self.head), bytes(tail), self.total - len(self.head) - len(tail)


def execute(request: Request) -> Request:
    output = Output(CONFIG["output_kb"] * 1024)
    reading, writing = os.pipe()
    failed, failing = os.pipe()
    started = time.monotonic()
    try:
        child = with_room(os.fork)
        if child == 0:
            become_shell(request, writing, failing)
    except BaseException:
        os.close(reading)
        os.close(failed)
        raise
    finally:
        os.close(writing)
        os.close(failing)
    timed_out = follow(child, reading, output, started + request["seconds"])
    if timed_out:
        end_session(child)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    drain(reading, output)
    os.close(reading)
    with os.fdopen(failed, "rb") as file:  # the shell has closed the other end
        failure = file.read()
    if failure:
        raise RequestRefused("the command cannot be started: " + failure.decode())
    head, tail, cut = output.parts()
    return {
        "exit_code": code if code >= 0 else 128 - code,
        "head": base64.b64encode(head).decode(),
        "tail": base64.b64encode(tail).decode(),
        "cut": cut,
        "timed_out": timed_out,
        "ms": (time.monotonic() - started) * 1000,
    }


def become_shell(request: Request, writing: int, failing: int) -> None:
    """Turn a fork of the driver into the shell of a command. `subprocess` would take twice the processor time."""
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
            signal.signal(number, signal.SIG_DFL)
        become(bool(request.get("root")))
        try:
            os.chdir(CONFIG["workdir"])
        except OSError:
            os.chdir("/")
        environment = dict(os.environ, HOME="/tmp", USER="agent", TERM="dumb", LANG="C.UTF-8")  # noqa: S108
        environment.update(request.get("environment") or {})
        shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
        os.execve(shell, [shell, "-c", request["command"]], environment)  # noqa: S606
    except BaseException as error:
        os.write(failing, str(error).encode())
    finally:
        os._exit(127)


def follow(shell: int, reading: int, output: Output, deadline: float) -> bool:
    """Collect output until the shell ends; return whether its time ran out first."""
    ended = os.pidfd_open(shell)
    watched = [reading, ended]
    try:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return True
            ready = select.select(watched, [], [], left)[0]
            if reading in ready:
                data = os.read(reading, CHUNK)
                output.add(data)
                if not data:
                    watched.remove(reading)
            if ended in ready:
                return False
    finally:
        os.close(ended)


def drain(reading: int, output: Output) -> None:
    """Collect what is left in the pipe. Background processes may hold it open, so nothing is waited for."""
    os.set_blocking(reading, False)
    try:
        for _ in range(64):
            data = os.read(reading, CHUNK)
            if not data:
                return
            output.add(data)
    except BlockingIOError:
        pass


def end_session(leader: int) -> None:
    """Kill the command's process group, and the other groups of its session."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.getsid(int(name)) == leader:
                os.kill(int(name), signal.SIGKILL)
        except OSError:
            pass


# ---- files -----------------------------------------------------------------------------------------------------------


def as_user(root: bool, work: Callable[[], Request], seconds: int = FILE_SECONDS, make_room: bool = True) -> Request:
    """Return what *work* returns in a child process of the agent's user (of root if *root*)."""
    return finish_as_user(*start_as_user(root, work, seconds, make_room))


def start_as_user(root: bool, work: Callable[[], Request], seconds: int, make_room: bool = True) -> "tuple[int, int]":
    """Start a child that carries out *work*, for at most *seconds*; return it and where its reply is read.

    make_room: whether all processes of a full box are ended, so that the child can be started.
    """
    reading, writing = os.pipe()
    try:
        child = with_room(os.fork) if make_room else os.fork()
    except BaseException as error:
        os.close(reading)
        os.close(writing)
        if isinstance(error, BlockingIOError):
            raise RequestRefused("the box has no room for another process") from None
        raise
    if child == 0:
        try:
            os.close(reading)
            signal.alarm(seconds)
            become(root)
            os.chdir("/")
            try:
                reply = work()
            except RequestRefused as refusal:
                reply = {"error": str(refusal)}
            except OSError as error:
                reply = {"error": error.strerror or str(error)}
            except Exception as error:
                reply = {"error": type(error).__name__}
            left = json.dumps(reply).encode()
            while left:
                left = left[os.write(writing, left) :]
        finally:
            os._exit(0)
    os.close(writing)
    return child, reading


def finish_as_user(child: int, reading: int) -> Request:
    with os.fdopen(reading, "rb") as file:
        data = file.read()
    with contextlib.suppress(ChildProcessError):  # it was reaped before
        os.waitpid(child, 0)
    if not data:
        raise RequestRefused("the operation took too long or used too much memory")
    found: Request = json.loads(data)
    return found


def absolute(path: str) -> str:
    return os.path.normpath(os.path.join(CONFIG["workdir"], path))


def read(request: Request) -> Request:
    descriptor = open_regular(absolute(request["path"]), os.O_RDONLY)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(request["max_bytes"])
        return {"data": base64.b64encode(data).decode(), "size": os.fstat(descriptor).st_size}


def write(request: Request) -> Request:
    path = absolute(request["path"])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if request.get("append") else os.O_TRUNC)
    with os.fdopen(open_regular(path, flags), "wb") as file:
        file.write(base64.b64decode(request["data"]))
        if request.get("mode") is not None:
            os.fchmod(file.fileno(), request["mode"] & 0o3777)
    return {}


def make_folder(request: Request) -> Request:
    os.makedirs(request["path"], exist_ok=True)
    return {}


def change_mode(request: Request) -> Request:
    os.chmod(request["path"], request["mode"] & 0o3777)
    return {}


# ---- snapshots -------------------------------------------------------------------------------------------------------


def snapshot(request: Request) -> Request:
    """Send an archive of the writable folders. The agent's processes are stopped meanwhile and go on afterwards."""

    def emit(data: bytes) -> None:
        send({"id": request["id"], "part": "data", "data": base64.b64encode(data).decode()})

    processes = signal_all(signal.SIGSTOP)
    try:
        packer = Packer(request["folders"], request["max_bytes"], request["max_entries"])
        reply = as_user(False, lambda: packer.pack(emit), request["seconds"], make_room=False)
    finally:
        signal_all(signal.SIGCONT)
    return dict(reply, processes=processes)


def signal_all(number: signal.Signals) -> int:
    """Send a signal to every process but this one, and return how many there are."""
    reap()
    try:
        os.kill(-1, number)
    except ProcessLookupError:
        return 0
    return sum(name.isdigit() and name != "1" for name in os.listdir("/proc"))


RESTORING: Request = {}  # the child that unpacks an archive, from its first part to its last


def restore(request: Request) -> Request:
    """Pass one part of an archive to a child that unpacks it; its reply is that of the last part, or an error."""
    if request["first"]:
        reading, writing = os.pipe()

        def unpack() -> Request:
            os.close(writing)
            unpacker = Unpacker(request["folders"], request["max_bytes"], request["max_entries"])
            with os.fdopen(reading, "rb") as source:
                return unpacker.unpack(source)

        RESTORING.update(child=start_as_user(False, unpack, request["seconds"]), writing=writing)
        os.close(reading)
    failed = False
    try:
        left = base64.b64decode(request["data"])
        while left:
            left = left[os.write(RESTORING["writing"], left) :]
    except BrokenPipeError:
        failed = True
    if not (failed or request["last"]):
        return {}
    os.close(RESTORING.pop("writing"))
    return finish_as_user(*RESTORING.pop("child"))


# ---- requests --------------------------------------------------------------------------------------------------------

OPERATIONS = {"execute": execute, "snapshot": snapshot, "restore": restore}
FILE_OPERATIONS = {"read": read, "write": write, "make_folder": make_folder, "change_mode": change_mode}


def carry_out(request: Request) -> Request:
    operation = request["operation"]
    if operation in OPERATIONS:
        return OPERATIONS[operation](request)
    if operation == "end_processes":
        end_processes()
        return {}
    if operation == "export":
        end_processes()
        return as_user(False, Export(request, send).run)
    if operation in FILE_OPERATIONS:
        return as_user(bool(request.get("root")), lambda: FILE_OPERATIONS[operation](request))
    return {}


def answer(line: bytes) -> None:
    try:
        request = json.loads(line)
        identity = request["id"]
    except (ValueError, TypeError, KeyError):
        return
    try:
        reply = carry_out(request)
    except RequestRefused as refusal:
        reply = {"error": str(refusal)}
    except Exception as error:
        reply = {"error": type(error).__name__ + ": " + str(error)}
    send(dict(reply, id=identity, done=True))


def main(config: str) -> None:
    CONFIG.update(json.loads(config))
    os.umask(0o022)
    expires = time.monotonic() + CONFIG["expires_s"]
    if "listen" in CONFIG:
        serve_socket(socket.socket(fileno=CONFIG["listen"]), expires)
    else:
        serve_streams(expires)


def serve_streams(expires: float) -> None:
    """Carry out requests from standard input until it ends."""
    received = bytearray()
    while time.monotonic() < expires:
        if not select.select([0], [], [], 1.0)[0]:
            reap()
            continue
        data = os.read(0, CHUNK)
        if not data:
            return
        carry_out_lines(received, data)


def serve_socket(listener: socket.socket, expires: float) -> None:
    """Carry out the requests of each connection, one at a time, and reply to the connection."""
    received: dict[socket.socket, bytearray] = {}
    while time.monotonic() < expires:
        watched = [*received, *([listener] if len(received) < MAX_CONNECTIONS else [])]
        ready = select.select(watched, [], [], 1.0)[0]
        reap()
        for connection in ready:
            if connection is listener:
                accepted = listener.accept()[0]
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
                received[accepted] = bytearray()
                continue
            CONFIG["output"] = connection.fileno()
            try:
                data = connection.recv(CHUNK)
                if data:
                    carry_out_lines(received[connection], data)
            except OSError:  # the other side has ended
                data = b""
            if not data:
                del received[connection]
                connection.close()


def carry_out_lines(received: bytearray, data: bytes) -> None:
    """Carry out the requests that are complete with *data*, and keep the rest in *received*."""
    received += data
    while b"\n" in data:
        line, _, rest = bytes(received).partition(b"\n")
        received[:] = rest
        data = rest
        answer(line)
        reap()
    if len(received) > MAX_LINE:
        received.clear()
