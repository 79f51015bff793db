"""The role that runs a program as `__main__`. Its caller judges the output."""

import atexit
import builtins
import errno
import gc
import os
import sys
import types
import weakref
from typing import NoReturn, TypedDict

from ..protocol import codec, frames
from ..protocol.channel import Channel
from ..protocol.error_reports import describe
from .definitions import compile_source

_FILE = "main.py"
_exit = os._exit  # before code can replace it


def set_stdin(text: bytes, path: str | None = None) -> None:
    """Make descriptor 0 a file that contains `text`. Raises OSError if the file cannot be created or written.

    path  the file that /dev/stdin leads to, if it does not lead to descriptor 0
    """
    try:
        fd = None if path is None else _store(text, path)
        if fd is None:
            fd = _store_without_name(text)
        os.lseek(fd, 0, os.SEEK_SET)
        os.dup2(fd, 0)
        os.close(fd)
    except OSError as error:
        raise OSError(f"the standard input of the program cannot be stored: {error}") from error


def _store(text: bytes, path: str) -> int | None:
    """Return a descriptor of a new file at `path`; None if the text is longer than the files of the run may be."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        _write(fd, text)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        os.close(fd)
        os.unlink(path)
        return None
    return fd


def _store_without_name(text: bytes) -> int:
    try:
        fd = os.memfd_create("stdin")
    except (AttributeError, OSError):
        fd = os.open(".stdin", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.unlink(".stdin")
    _write(fd, text)
    return fd


def _write(fd: int, text: bytes) -> None:
    with os.fdopen(fd, "wb", closefd=False) as file:
        file.write(text)


class ProgramInput(TypedDict):
    """The job of a program."""

    code: str
    argv: list[str]


def run(job: ProgramInput, channel: Channel) -> NoReturn:
    """Run `code` with `argv`, and raise SystemExit. Reports {"raised"} or {"syntax"} if the program fails."""
    gc.freeze()  # so that collections, here and in the code, leave the objects alone that are shared with the zygote
    sys.argv = [_FILE, *job["argv"]]
    _write_file(job["code"])
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=_FILE, __builtins__=builtins)
    sys.modules["__main__"] = module
    code = _execute(job["code"], module.__dict__, channel)
    reference = weakref.ref(module)
    del module
    _finalize(reference)
    raise SystemExit(code)


def _execute(source: str, namespace: dict[str, object], channel: Channel) -> int:
    """Execute the program, report why it failed, and return its exit code."""
    try:
        exec(compile_source(source, _FILE), namespace)
    except SystemExit as error:
        return exit_code(error)
    except SyntaxError as error:
        sys.__excepthook__(type(error), error.with_traceback(None), None)
        channel.send(frames.REPORT, codec.dumps({"syntax": describe(error, _FILE)}))
    except MemoryError as error:
        described = describe(error, _FILE)
        namespace.clear()
        channel.send(frames.REPORT, codec.dumps({"raised": described}))
        print("MemoryError", file=sys.stderr)
    except BaseException as error:
        _print_traceback(error)
        channel.send(frames.REPORT, codec.dumps({"raised": describe(error, _FILE)}))
    else:
        return 0
    return 1


def _write_file(code: str) -> None:
    """Write the code to its file, which tracebacks and `inspect` read, unless it is longer than files may be."""
    try:
        with open(_FILE, "x", encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(code)
    except OSError:
        pass


def _finalize(reference: weakref.ref[types.ModuleType]) -> None:
    """Do what the interpreter does when a program ends: wait for its threads, call exit handlers, delete its objects.

    Programs write results there: in a thread that they do not join, or in a handler that writes collected output.
    """
    try:
        if (threading := sys.modules.get("threading")) is not None:
            threading._shutdown()  # as `multiprocessing` does in its processes; only this ends threads of executors
        atexit._run_exitfuncs()
        flush_output()  # the code can replace the streams by its own, which need its objects
        gc.collect()  # orders objects so that the next collection closes a stream before its buffer
        del sys.modules["__main__"]
        gc.collect()  # calls `__del__` while the module still has its names, and closes files that classes refer to
        if (module := reference()) is not None:
            for name in list(module.__dict__):
                if name != "__builtins__":
                    module.__dict__[name] = None
    except BaseException:
        pass  # the code can replace these modules; the interpreter ignores errors at this point, too


def _print_traceback(error: BaseException) -> None:
    """Print a traceback as the interpreter does, by `sys.excepthook`, without frames of this module."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != _FILE:
        trace = trace.tb_next
    error = error.with_traceback(trace)
    try:
        sys.excepthook(type(error), error, trace)
    except BaseException:
        sys.__excepthook__(type(error), error, trace)


def flush_output() -> None:
    """Write buffered output, also that of streams which the code has replaced."""
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        try:
            getattr(sys, name).flush()
        except BaseException:
            pass


def exit_process(code: int) -> NoReturn:
    """Write buffered output and end this process at once."""
    flush_output()
    _exit(code)


def exit_code(error: SystemExit) -> int:
    """Return the exit code that the interpreter derives from SystemExit."""
    code = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        return int(code) & 0xFF
    print(code, file=sys.stderr)
    return 1


def report_crash(error: BaseException, channel: Channel) -> int:
    """Report that a role failed because the code interfered or memory ran out. Return the exit code."""
    try:
        channel.send(frames.REPORT, codec.dumps({"crashed": describe(error)}))
    except BaseException:
        pass
    return 1
