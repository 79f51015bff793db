"""Renderer processes for templates of bundles, kept by the templates that they render.

A renderer renders one set of templates only, so that one that got out of Jinja2's sandbox would find only data
of its own. See `worker` for how a renderer is contained.
"""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings

from hub.templating import worker
from sandbox.errors import SandboxUnavailable

BATCH = 64  # items of one request
_BATCH_BYTES = 4 * 1024 * 1024
_MAX_IDLE = 8
_MAX_ITEMS = 20_000  # of one renderer, which then has used a part of its processor time at most
_PATIENCE_S = 60.0  # for one answer: its processor time is limited, but may take longer on a busy machine
_MAX_ANSWER = worker.MAX_VALUE + 65_536

Key = tuple[str, ...]


class TemplatesUnavailable(SandboxUnavailable):
    """Templates cannot be rendered on this machine at the moment. Neither the bundle nor the model is at fault."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Templates of bundles cannot be rendered here: {reason}")


class ItemError(Exception):
    """One item that does not render: `kind` is undefined, error, memory or time; `pick` numbers the template."""

    def __init__(self, kind: str, message: str, pick: int) -> None:
        super().__init__(message)
        self.kind, self.pick = kind, pick


class _RendererLost(Exception):
    """The renderer has ended or broken the protocol."""


class _RendererProcess:
    """One process and the socket to it."""

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self.pid, self._channel = pid, channel
        self.items = 0

    def send(self, data: bytes) -> None:
        try:
            self._channel.sendall(worker.SIZE.pack(len(data)) + data)
        except OSError as error:
            raise _RendererLost(str(error)) from None

    def receive(self) -> dict[str, object]:
        size = worker.SIZE.unpack(self._read(worker.SIZE.size))[0]
        if size > _MAX_ANSWER:
            raise _RendererLost("an answer that is too long")
        try:
            message = json.loads(self._read(size))
        except (ValueError, RecursionError) as error:
            raise _RendererLost(f"an answer that is not JSON: {error}") from None
        if not isinstance(message, dict):
            raise _RendererLost("an answer of the wrong form")
        return message

    def _read(self, size: int) -> bytes:
        """Read exactly *size* bytes. Raises TimeoutError, and _RendererLost if the process ends."""
        data = bytearray()
        while len(data) < size:
            try:
                piece = self._channel.recv(min(size - len(data), 1 << 20))
            except TimeoutError:
                raise
            except OSError as error:
                raise _RendererLost(str(error)) from None
            if not piece:
                raise _RendererLost("it ended")
            data += piece
        return bytes(data)

    def close(self) -> None:
        self._channel.close()


class Renderers:
    """The renderers of this process. Safe for any number of threads."""

    def __init__(self) -> None:
        self._start_over()
        os.register_at_fork(after_in_child=self._forget)

    def _start_over(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._idle: list[tuple[Key, _RendererProcess]] = []  # the one used last at the end

    def _forget(self) -> None:
        """Give up the renderers in a forked child, because they belong to the parent."""
        idle, control, process = self._idle, self._control, self._process
        self._start_over()
        for _, renderer in idle:
            renderer.close()
        if control is not None:
            control.close()
        if process is not None:
            process.returncode = 0  # not this process's child; keeps Popen from waiting for it

    def close(self) -> None:
        """End all renderers. The next rendering starts new ones."""
        with self._lock:
            for _, renderer in self._idle:
                renderer.close()
            self._idle = []
            self._close_control()

    # ---- rendering ---------------------------------------------------------------------------------------------------

    def render(self, items: Sequence[tuple[Key, Mapping[str, object]]]) -> list[list[object] | ItemError]:
        """Return the values of each item's templates for its variables, in order. Raises TemplatesUnavailable."""
        results: list[list[object] | ItemError] = []
        key = tuple(dict.fromkeys(source for sources, _ in items for source in sources))
        numbers = {source: i for i, source in enumerate(key)}
        while len(results) < len(items):
            batch: list[bytes] = []
            size = 0
            for sources, variables in items[len(results) : len(results) + BATCH]:
                item = _json({"pick": [numbers[source] for source in sources], "variables": variables})
                size += len(item)
                if batch and size > _BATCH_BYTES:
                    break
                batch.append(item)
            counts = [len(sources) for sources, _ in items[len(results) : len(results) + len(batch)]]
            results += self._batch(key, batch, counts)
        return results

    def _batch(self, key: Key, items: Sequence[bytes], counts: Sequence[int]) -> list[list[object] | ItemError]:
        """Return the results of *items*, or of those up to one that ended its renderer.

        *counts*: templates of each item.
        """
        renderer = self._lease(key)
        results: list[list[object] | ItemError] = []
        keep = False
        try:
            renderer.send(b'{"sources":%b,"items":[%b]}' % (_json(key), b",".join(items)))
            for count in counts:
                results.append(_result(renderer.receive(), count))
            renderer.items += len(items)
            keep = True
        except TimeoutError:
            raise TemplatesUnavailable(f"the renderer did not answer within {_PATIENCE_S:g} s.") from None
        except _RendererLost as error:
            status = self._end(renderer)
            keep = True  # ended already
            results.append(_find_cause(status, str(error)))
            return results
        finally:
            if not keep:
                self._end(renderer)
        self._give_back(key, renderer)
        return results

    # ---- processes ---------------------------------------------------------------------------------------------------

    def _lease(self, key: Key) -> _RendererProcess:
        with self._lock:
            for i in reversed(range(len(self._idle))):
                if self._idle[i][0] == key:
                    return self._idle.pop(i)[1]
        return self._new_renderer()

    def _give_back(self, key: Key, renderer: _RendererProcess) -> None:
        if renderer.items >= _MAX_ITEMS:
            self._end(renderer)
            return
        with self._lock:
            self._idle.append((key, renderer))
            surplus = self._idle.pop(0)[1] if len(self._idle) > _MAX_IDLE else None
        if surplus is not None:
            self._end(surplus)

    def _new_renderer(self) -> _RendererProcess:
        ours, theirs = socket.socketpair()
        try:
            with self._lock:
                control = self._open_control()
                try:
                    socket.send_fds(control, [worker.ORDER.pack(worker.FORK, 0)], [theirs.fileno()])
                    pid = worker.ANSWER.unpack(control.recv(worker.ANSWER.size))[0]
                except (OSError, ValueError, struct.error) as error:
                    self._close_control()
                    raise TemplatesUnavailable(f"the process that renders them ended ({error}).") from None
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.settimeout(_PATIENCE_S)
        renderer = _RendererProcess(pid, ours)
        try:
            greeting = renderer.receive()
        except (_RendererLost, TimeoutError) as error:
            self._end(renderer)
            raise TemplatesUnavailable(f"a renderer did not start ({error}).") from None
        problem = greeting.get("problem")
        if problem is None and greeting.get("tier") != "B" and not settings.SANDBOX_WEAK_ISOLATION_FOR_LIVE_MODELS:
            problem = (
                "this machine has no Landlock or no system call filter to contain the renderer (isolation tier C). "
                "Set LLMEVAL_SANDBOX_WEAK_ISOLATION=1 if the bundles here are your own"
            )
        if problem is not None:
            self._end(renderer)
            raise TemplatesUnavailable(f"{problem}.")
        return renderer

    def _end(self, renderer: _RendererProcess) -> int:
        """End a renderer and return its wait status; -1 if it had to be killed or is not known."""
        renderer.close()
        with self._lock:
            if self._control is None:
                return -1
            try:
                self._control.sendall(worker.ORDER.pack(worker.END, renderer.pid))
                return int(worker.ANSWER.unpack(self._control.recv(worker.ANSWER.size))[0])
            except (OSError, struct.error):
                self._close_control()
                return -1

    def _open_control(self) -> socket.socket:
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return self._control
        self._close_control()
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-B", str(Path(worker.__file__).resolve())],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.defpath, "PYTHONUTF8": "1"},
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise TemplatesUnavailable(f"the process that renders them does not start: {error}.") from None
        finally:
            theirs.close()
        ours.settimeout(_PATIENCE_S)
        self._control = ours
        return ours

    def _close_control(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._control = self._process = None


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _result(message: Mapping[str, object], count: int) -> list[object] | ItemError:
    """Return the values or the error in *message*. Raises _RendererLost if it has neither."""
    values, error = message.get("values"), message.get("error")
    if isinstance(values, list) and len(values) == count:
        return values
    pick = message.get("pick")
    if isinstance(error, str) and isinstance(pick, int) and 0 <= pick < max(count, 1):
        return ItemError(error, str(message.get("message")), pick)
    raise _RendererLost("an answer of the wrong form")


def _find_cause(status: int, reason: str) -> ItemError:
    """Return the error of the item during which a renderer ended.

    Raises TemplatesUnavailable if it was killed from outside.
    """
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        raise TemplatesUnavailable("the renderer was killed, perhaps because the machine has no memory left.")
    if status == -1:
        raise TemplatesUnavailable(f"the renderer was lost ({reason}).")
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return ItemError("time", f"it needs more than {worker.CPU_S} s of processor time", 0)
    return ItemError("memory", f"it ended its process; it may need more than {worker.MEMORY_MB} MiB of memory", 0)


RENDERERS = Renderers()
