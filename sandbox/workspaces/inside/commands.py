"""Commands of a box. Runs inside the box, in the driver and in its launchers."""

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

from sandbox.workspaces.inside.files import CHUNK, RequestRefused
from sandbox.workspaces.inside.processes import CONFIG, Request, become, with_room

LENGTH = struct.Struct("=I")
MESSAGE = 32 * 1024
LAUNCHER_SECONDS = 10  # for the reply of a launcher
ATTEMPTS = 3
MAX_DESCRIPTORS = 4096


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


class Launcher:
    """A process of the agent's user, or of root, that starts the shells of commands.

    It does not copy its memory for each shell, as a fork of the driver would. The agent can end it: its shell is then a
    child of the driver, and the next command gets another launcher.
    """

    def __init__(self, root: bool) -> None:
        self.root = root
        self.orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = with_room(os.fork)
        if self.pid == 0:
            try:
                serve_orders(theirs, root)
            finally:
                os._exit(1)
        theirs.close()
        self.process = os.pidfd_open(self.pid)
        self.orders.settimeout(1.0)

    def start(self, request: Request, writing: int) -> int:
        """Return the process id of a shell that writes to *writing*.

        Raises ConnectionError if the launcher has ended, TimeoutError if it does not reply, OSError if the shell cannot
        be started.
        """
        data = json.dumps({"command": request["command"], "environment": request.get("environment")}).encode()
        self.wake()
        socket.send_fds(self.orders, [LENGTH.pack(len(data))], [writing])
        for start in range(0, len(data), MESSAGE):
            self.orders.sendall(data[start : start + MESSAGE])
        reply = self.receive()
        if "error" in reply:
            raise OSError(reply["errno"], reply["error"])
        return int(reply["pid"])

    def receive(self) -> Request:
        for _ in range(LAUNCHER_SECONDS):
            self.wake()
            with contextlib.suppress(TimeoutError):
                data = self.orders.recv(MESSAGE)
                if not data:
                    raise ConnectionError("the launcher has ended")
                reply: Request = json.loads(data)
                return reply
        raise TimeoutError("the launcher does not reply")

    def wake(self) -> None:
        """Continue the launcher if the agent has stopped it with a signal."""
        self.signal(signal.SIGCONT)

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.process, number)

    def has_ended(self) -> bool:
        return bool(select.select([self.process], [], [], 0)[0])

    def end(self) -> None:
        """Kill the launcher and wait until its shell, if any, is a child of this process."""
        if LAUNCHERS.pop(self.root, None) is self:
            self.signal(signal.SIGKILL)
            select.select([self.process], [], [])
            os.close(self.process)
            self.orders.close()


LAUNCHERS: "dict[bool, Launcher]" = {}  # by whether its user is root


class Shell:
    """The shell of a command: a child of its launcher or, if that has ended, of the driver."""

    def __init__(self, pid: int, launcher: "Launcher | None") -> None:
        self.pid = pid
        self.launcher = launcher
        self.process = -1  # of an adopted shell
        if launcher is None:
            self.adopt()

    def fileno(self) -> int:
        """Return what can be read when the shell, or its launcher, has ended."""
        return self.process if self.launcher is None else self.launcher.orders.fileno()

    def has_ended(self) -> bool:
        """Return whether the shell has ended, when `fileno` can be read."""
        if self.launcher is None or self.launcher.orders.recv(1, socket.MSG_PEEK):
            return True
        self.adopt()
        return self.process < 0

    def adopt(self) -> None:
        """End the launcher, so that the shell is a child of this process."""
        if self.launcher is not None:
            self.launcher.end()
            self.launcher = None
        with contextlib.suppress(ProcessLookupError):  # the launcher has waited for the shell before
            self.process = os.pidfd_open(self.pid)

    def wait(self) -> int:
        """Return the exit code of the shell, which has ended or was killed."""
        if self.launcher is not None:
            try:
                return int(self.launcher.receive()["code"])
            except OSError:  # it has ended, or does not reply
                self.adopt()
        try:
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:  # the launcher ended between its wait and its reply
            return -signal.SIGKILL
        finally:
            if self.process >= 0:
                os.close(self.process)


def launch(request: Request, writing: int) -> Shell:
    """Start the shell of a command."""
    root = bool(request.get("root"))
    for _ in range(ATTEMPTS):
        since = time.clock_gettime(time.CLOCK_BOOTTIME)
        if root not in LAUNCHERS:
            LAUNCHERS[root] = Launcher(root)
        launcher = LAUNCHERS[root]
        try:
            return Shell(with_room(lambda: launcher.start(request, writing)), launcher)  # noqa: B023 - called at once
        except (ConnectionError, TimeoutError):  # the agent has ended or stopped it
            launcher.end()
            shell = find_adopted(since)
            if shell is not None:
                return shell
        except OSError as error:
            raise RequestRefused("the command cannot be started: " + (error.strerror or str(error))) from None
    raise RequestRefused("the command cannot be started: the agent ends or stops the process that starts it")


def find_adopted(since: float) -> "Shell | None":
    """Return the shell that an ended launcher has started: a child of this process that leads a session."""
    ticks = os.sysconf("SC_CLK_TCK")
    for name in sorted(filter(str.isdigit, os.listdir("/proc")), key=int, reverse=True):
        with contextlib.suppress(OSError), open("/proc/" + name + "/stat") as file:
            fields = file.read().rpartition(")")[2].split()
            parent, session, started = int(fields[1]), int(fields[3]), int(fields[19])
            if parent == os.getpid() and session == int(name) and (started + 1) / ticks >= since:
                return Shell(int(name), None)
    return None


def count_launchers() -> int:
    return sum(not launcher.has_ended() for launcher in LAUNCHERS.values())


def serve_orders(orders: socket.socket, root: bool) -> None:
    """Start shells until the driver ends. Runs in a launcher."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.closerange(3, orders.fileno())
    os.closerange(orders.fileno() + 1, MAX_DESCRIPTORS)
    with open("/proc/self/comm", "w") as file:
        file.write("launcher")
    become(root)
    while True:
        header, descriptors, _, _ = socket.recv_fds(orders, LENGTH.size, 1, socket.MSG_CMSG_CLOEXEC)
        if not header:
            return
        left, data = LENGTH.unpack(header)[0], b""
        while len(data) < left:
            data += orders.recv(MESSAGE)
        try:
            shell = spawn(json.loads(data), descriptors[0])
        except (OSError, ValueError) as error:
            number = error.errno if isinstance(error, OSError) else errno.EINVAL
            orders.send(json.dumps({"error": str(error), "errno": number}).encode())
            continue
        finally:
            os.close(descriptors[0])
        orders.send(json.dumps({"pid": shell}).encode())
        code = os.waitstatus_to_exitcode(os.waitpid(shell, 0)[1])
        orders.send(json.dumps({"code": code}).encode())


def spawn(order: Request, writing: int) -> int:
    try:
        os.chdir(CONFIG["workdir"])
    except OSError as error:  # the agent can change its mode
        os.chdir("/")
        note = "[%s cannot be entered: %s. This command runs in /.]\n" % (CONFIG["workdir"], error.strerror)
        os.write(writing, note.encode())
    shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
    environment = dict(os.environ, HOME="/tmp", USER="agent", SHELL=shell, TERM="dumb", LANG="C.UTF-8")  # noqa: S108
    if CONFIG["packages"]:
        environment["PYTHONPATH"] = ":".join(filter(None, [CONFIG["packages"], environment.get("PYTHONPATH")]))
    environment.update(order["environment"] or {})
    return os.posix_spawn(
        shell,
        [shell, "-c", order["command"]],
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, writing, 1),
            (os.POSIX_SPAWN_DUP2, writing, 2),
        ],
        setsid=True,
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores them
    )


def execute(request: Request) -> Request:
    output = Output(CONFIG["output_kb"] * 1024)
    reading, writing = os.pipe()
    started = time.monotonic()
    try:
        try:
            shell = launch(request, writing)
        finally:
            os.close(writing)
        timed_out = follow(shell, reading, output, started + request["seconds"])
        if timed_out:
            end_session(shell.pid)
        code = shell.wait()
        drain(reading, output)
    finally:
        os.close(reading)
    head, tail, cut = output.parts()
    return {
        "exit_code": code if code >= 0 else 128 - code,
        "head": base64.b64encode(head).decode(),
        "tail": base64.b64encode(tail).decode(),
        "cut": cut,
        "timed_out": timed_out,
        "ms": (time.monotonic() - started) * 1000,
    }


def follow(shell: Shell, reading: int, output: Output, deadline: float) -> bool:
    """Collect output until the shell ends; return whether its time ran out first."""
    watched: list[int | Shell] = [reading, shell]
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
        if shell in ready and shell.has_ended():
            return False


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
