"""Process that renders templates of bundles, started as `python -I worker.py` with a control socket as its input.

It forks a renderer for each FORK command. A renderer gives up root, files, network and other processes by the sandbox
engine's own means, limits its memory and processor time, and answers requests on the socket that came with the order.

A request is {"sources": [template], "items": [{"pick": [index], "variables": {}}]}; each item is answered by a message
of its own, {"values": []} or {"error": kind, "message": text, "pick": place}. Messages are JSON after their length.
"""

import os
import socket
import struct
import sys
from pathlib import Path

if __name__ == "__main__":
    _ROOT = str(Path(__file__).resolve().parents[2])
    sys.path.insert(0, _ROOT)

import codecs
import json
import pprint  # this and textwrap are imported by filters when they are first used
import resource
import signal
import textwrap
import time
from collections.abc import Iterable, Mapping
from typing import NoReturn, TypedDict, cast

import jinja2.debug  # used for errors only; imported now since a renderer can open no files
from jinja2 import TemplateError, UndefinedError
from jinja2.exceptions import SecurityError

from hub.templating.environment import CompiledTemplate, TemplateEnvironment, TooLong
from sandbox import containment

if __name__ == "__main__":
    sys.path.remove(_ROOT)

CPU_S = 2  # of one rendering
MEMORY_MB = 512  # beyond what the process has at the start
MAX_VALUE = 16 * 1024 * 1024  # characters of JSON
SESSION_CPU_S = 600
END_S = 5.0  # for a renderer to end by itself

ORDER = struct.Struct("!ci")  # FORK, with a socket, or END and the renderer's pid
ANSWER = struct.Struct("!i")  # a pid, or the wait status of an ended renderer
SIZE = struct.Struct("!I")
FORK, END = b"F", b"E"


class Item(TypedDict):
    """Templates of a request to render, by their index, with the variables."""

    pick: list[int]
    variables: dict[str, object]


class Request(TypedDict):
    sources: list[str]
    items: list[Item]


class _TooSlow(BaseException):
    """The rendering has used its processor time. Not an `Exception`, so that Jinja2 and filters do not catch it."""


# ---- the control process ---------------------------------------------------------------------------------------------


def serve(control: socket.socket) -> NoReturn:
    """Fork and end renderers on command, until the other side closes the socket."""
    renderers: set[int] = set()
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, ORDER.size, 1)
        if len(data) < ORDER.size:
            break
        kind, pid = ORDER.unpack(data)
        if kind == FORK:
            pid = _fork(control, descriptors[0])
            renderers.add(pid)
            control.sendall(ANSWER.pack(pid))
        elif pid in renderers:
            renderers.remove(pid)
            control.sendall(ANSWER.pack(_end(pid)))
        else:
            control.sendall(ANSWER.pack(0))
    for pid in renderers:
        _end(pid)
    os._exit(0)


def _fork(control: socket.socket, descriptor: int) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            control.close()
            os.dup2(descriptor, 0)
            os.closerange(3, 256)
            _render_requests()
        finally:
            os._exit(1)
    os.close(descriptor)
    return pid


def _end(pid: int) -> int:
    """Return the wait status of a renderer whose socket is closed, so that it should end; -1 if it was killed."""
    deadline, pause = time.monotonic() + END_S, 0.0005
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -1


# ---- a renderer ------------------------------------------------------------------------------------------------------


def _render_requests() -> None:
    try:
        tier = contain()
    except OSError as error:
        _send({"problem": str(error)})
        return
    _send({"tier": tier})
    env = TemplateEnvironment()
    templates: dict[str, CompiledTemplate] = {}
    while (request := _receive()) is not None:
        for item in request["items"]:
            _answer(_rendered(env, templates, [request["sources"][i] for i in item["pick"]], item["variables"]))


def contain() -> str:
    """Give up all access that rendering does not need; return the isolation tier. Raises OSError."""
    tier = containment.contain(memory_mb=MEMORY_MB, cpu_s=SESSION_CPU_S)
    signal.signal(signal.SIGPROF, _too_slow)
    return tier


def _too_slow(*_: object) -> NoReturn:
    raise _TooSlow


def _rendered(
    env: TemplateEnvironment,
    templates: dict[str, CompiledTemplate],
    sources: list[str],
    variables: Mapping[str, object],
) -> bytes:
    """Return the answer to one item, as JSON. Never raises."""
    place = 0
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    try:
        try:
            _start_clock()
            values = []
            for place, source in enumerate(sources):  # noqa: B007 (named in errors)
                if source not in templates:
                    templates[source] = CompiledTemplate(env, source)
                values.append(templates[source].render(variables))
            return _encoded(values)
        except MemoryError:
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
            kind, message = "memory", f"it needs more than {MEMORY_MB} MiB of memory"
        except UndefinedError as error:
            kind, message = "undefined", str(error)
        except (SecurityError, TemplateError, TooLong) as error:
            kind, message = "error", str(error)
        except Exception as error:
            # Filters may raise any error (KeyError, ValueError, OverflowError); each is a mistake of the bundle.
            kind, message = "error", str(error) or type(error).__name__
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except _TooSlow:
        kind, message = "time", f"it needs more than {CPU_S} s of processor time"
    values = []
    answer = json.dumps({"error": kind, "message": message[:2000], "pick": place}).encode()
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    return answer


def _start_clock() -> None:
    """Interrupt the rendering after CPU_S; one that cannot be interrupted is ended by the system soon after."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + CPU_S + 2
    resource.setrlimit(resource.RLIMIT_CPU, (min(soft, SESSION_CPU_S), SESSION_CPU_S))
    signal.setitimer(signal.ITIMER_PROF, CPU_S)


def _encoded(values: list[object]) -> bytes:
    pieces, size = [], 0
    for piece in json.JSONEncoder(ensure_ascii=False, default=_as_list).iterencode({"values": values}):
        size += len(piece)
        if size > MAX_VALUE:
            raise ValueError(f"the value has more than {MAX_VALUE:,} characters")
        pieces.append(piece)
    return "".join(pieces).encode("utf-8", "surrogatepass")


def _as_list(value: object) -> list[object]:
    """Return iterators, views of mappings and ranges, which filters and methods may return, as lists."""
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return list(value)
    raise TypeError(f"the value is a {type(value).__name__}, which is not data")


def _send(message: Mapping[str, object]) -> None:
    _answer(json.dumps(message).encode())


def _answer(data: bytes) -> None:
    data = SIZE.pack(len(data)) + data
    view = memoryview(data)
    while view:
        view = view[os.write(0, view) :]


def _receive() -> Request | None:
    """Return the next request, or None if the other side has closed the socket."""
    head = _read(SIZE.size)
    return cast(Request, json.loads(_read(SIZE.unpack(head)[0]))) if head else None


def _read(size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = os.read(0, min(size - len(data), 1 << 20))
        if not piece:
            return b""
        data += piece
    return bytes(data)


def preload() -> None:
    """Load modules and codecs that Python and Jinja2 load at first use, since a renderer can open no files."""
    assert jinja2.debug and pprint and textwrap
    for name in ("ascii", "latin-1", "utf-8", "utf-16", "utf-32", "unicode-escape", "raw-unicode-escape", "idna"):
        codecs.lookup(name)
    env = TemplateEnvironment()
    CompiledTemplate(env, "{{ 'x' | upper }}").render({})
    try:
        CompiledTemplate(env, "{% for x in y %}{{ x + loop.index }}{% endfor %}").render({"y": ["a"]})
    except TypeError as error:
        str(error)


if __name__ == "__main__":
    preload()
    serve(socket.socket(fileno=os.dup(0)))
