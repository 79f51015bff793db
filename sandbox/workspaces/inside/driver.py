"""The driver: process 1 of a box. Carries out requests from standard input and replies on standard output.

Runs inside the box with any Python from 3.9 on, started with `python3 -I -S -c`: it imports only the standard library
and the modules beside it, which are sent with it.
Requests and replies are lines of JSON; a line that cannot be parsed is ignored. In a native box, requests come from the
connections of a socket, and replies go to them. The driver is root without capabilities except those to change its user
and to kill. Commands and file operations of the agent run as the agent's user, so the agent can neither kill the driver
nor write to its streams.
"""

# mypy: allow-any-generics

import base64
import json
import os
import select
import signal
import socket
import struct
import time

from sandbox.workspaces.inside.commands import count_launchers, execute
from sandbox.workspaces.inside.files import CHUNK, Export, Packer, RequestRefused, Unpacker, open_regular
from sandbox.workspaces.inside.processes import (
    CONFIG,
    Request,
    as_user,
    end_processes,
    finish_as_user,
    reached_limits,
    reap,
    signal_all,
    start_as_user,
)

MAX_LINE = 8 * 1024 * 1024
SEND_SECONDS = 30
MAX_CONNECTIONS = 64


def send(message: Request) -> None:
    data = json.dumps(dict(message, generation=CONFIG["generation"])).encode() + b"\n"
    while data:
        data = data[os.write(CONFIG.get("output", 1), data) :]


# ---- files -----------------------------------------------------------------------------------------------------------


def absolute(path: str) -> str:
    return os.path.normpath(os.path.join(CONFIG["workdir"], path))


def read(request: Request) -> Request:
    descriptor = open_regular(absolute(request["path"]), os.O_RDONLY)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(request["max_bytes"])
        return {"data": base64.b64encode(data).decode(), "size": os.fstat(descriptor).st_size}


def write(request: Request) -> Request:
    """Write files, and make folders, which are entries without data."""
    for entry in request["entries"]:
        try:
            write_entry(absolute(entry["path"]), entry)
        except (OSError, RequestRefused) as error:
            raise RequestRefused("%s: %s" % (entry["path"], getattr(error, "strerror", None) or error)) from None
    return {}


def write_entry(path: str, entry: Request) -> None:
    if entry.get("data") is None:
        os.makedirs(path, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if entry.get("append") else os.O_TRUNC)
    with os.fdopen(open_regular(path, flags), "wb") as file:
        file.write(base64.b64decode(entry["data"]))
        if entry.get("mode") is not None:
            os.fchmod(file.fileno(), entry["mode"] & 0o3777)


def change_modes(request: Request) -> Request:
    for entry in request["entries"]:
        os.chmod(entry["path"], entry["mode"] & 0o3777)
    return {}


# ---- snapshots -------------------------------------------------------------------------------------------------------


def snapshot(request: Request) -> Request:
    """Send an archive of the writable folders. The agent's processes are stopped meanwhile and continued afterwards."""

    def emit(data: bytes) -> None:
        send({"id": request["id"], "part": "data", "data": base64.b64encode(data).decode()})

    processes = signal_all(signal.SIGSTOP) - count_launchers()
    try:
        packer = Packer(request["folders"], request["max_bytes"], request["max_entries"])
        reply = as_user(False, lambda: packer.pack(emit), request["seconds"], make_room=False)
    finally:
        signal_all(signal.SIGCONT)
    return dict(reply, processes=processes)


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
    child, reading = RESTORING.pop("child")
    return finish_as_user(child, reading, request["seconds"])


# ---- requests --------------------------------------------------------------------------------------------------------

OPERATIONS = {"execute": execute, "snapshot": snapshot, "restore": restore}
FILE_OPERATIONS = {"read": read, "write": write, "change_modes": change_modes}


def carry_out(request: Request) -> Request:
    operation = request["operation"]
    if operation in OPERATIONS:
        return OPERATIONS[operation](request)
    if operation == "expire_in":
        expire_in(request["seconds"])
        return {}
    if operation == "end_processes":
        end_processes()
        return {}
    if operation == "reached_limits":
        return {"limits": reached_limits()}
    if operation == "export":
        end_processes()
        return as_user(False, Export(request, send).run, request["seconds"])
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
    expire_in(CONFIG["expires_s"])
    if "listen" in CONFIG:
        serve_socket(socket.socket(fileno=CONFIG["listen"]))
    else:
        serve_streams()


def expire_in(seconds: float) -> None:
    """End the driver, and with it the box, after *seconds*."""
    CONFIG["expires"] = time.monotonic() + seconds


def serve_streams() -> None:
    """Carry out requests from standard input until it ends."""
    received = bytearray()
    while time.monotonic() < CONFIG["expires"]:
        if not select.select([0], [], [], 1.0)[0]:
            reap()
            continue
        data = os.read(0, CHUNK)
        if not data:
            return
        carry_out_lines(received, data)


def serve_socket(listener: socket.socket) -> None:
    """Carry out the requests of each connection, one at a time, and reply to the connection."""
    received: dict[socket.socket, bytearray] = {}
    while time.monotonic() < CONFIG["expires"]:
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
