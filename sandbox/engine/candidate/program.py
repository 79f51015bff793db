"""The role that runs a program as `__main__`. Its caller judges the output."""

import atexit
import builtins
import os
import sys
import types
from typing import NoReturn, TypedDict

from ..protocol import codec, frames
from ..protocol.channel import Channel
from ..protocol.error_reports import describe
from .definitions import compile_source

_FILE = "main.py"
_exit = os._exit  # before code can replace it


def set_stdin(text: bytes) -> None:
    """Make descriptor 0 a file that contains `text`."""
    try:
        fd = os.memfd_create("stdin")
    except (AttributeError, OSError):
        fd = os.open(".stdin", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.unlink(".stdin")
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(text)
    os.lseek(fd, 0, os.SEEK_SET)
    os.dup2(fd, 0)
    os.close(fd)


class ProgramInput(TypedDict):
    """The job of a program."""

    code: str
    argv: list[str]


def run(job: ProgramInput, channel: Channel) -> None:
    """Run `code` with `argv`. Reports {"raised"} or {"syntax"} if it fails; SystemExit passes through."""
    sys.argv = [_FILE, *job["argv"]]
    for name in ("exit", "quit"):  # as `site` defines them, which the engine runs without
        setattr(builtins, name, sys.exit)
    module = types.ModuleType("__main__")
    module.__dict__["__file__"] = _FILE
    sys.modules["__main__"] = module
    try:
        exec(compile_source(job["code"], _FILE), module.__dict__)
    except SystemExit:
        raise
    except SyntaxError as error:
        sys.__excepthook__(type(error), error.with_traceback(None), None)
        channel.send(frames.REPORT, codec.dumps({"syntax": describe(error, _FILE)}))
        raise SystemExit(1) from None
    except MemoryError as error:
        described = describe(error, _FILE)
        module.__dict__.clear()
        channel.send(frames.REPORT, codec.dumps({"raised": described}))
        print("MemoryError", file=sys.stderr)
        raise SystemExit(1) from None
    except BaseException as error:
        _print_traceback(error)
        channel.send(frames.REPORT, codec.dumps({"raised": describe(error, _FILE)}))
        raise SystemExit(1) from None
    finally:
        _finalize(module)


def _finalize(module: types.ModuleType) -> None:
    """Do what the interpreter does when a program ends: wait for its threads, call exit handlers, delete its objects.

    Programs write results there: in a thread that they do not join, or in a handler that writes collected output.
    """
    try:
        if (threading := sys.modules.get("threading")) is not None:
            threading._shutdown()  # as `multiprocessing` does in its processes; only this ends threads of executors
        atexit._run_exitfuncs()
        flush_output()  # the code can replace the streams by its own, which need its objects
        for name in list(module.__dict__):
            if name != "__builtins__":
                module.__dict__[name] = None
    except BaseException:
        pass  # the code can replace these modules; the interpreter ignores errors at this point, too


def _print_traceback(error: BaseException) -> None:
    """Print a traceback as the interpreter does, without frames of this module."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != _FILE:
        trace = trace.tb_next
    sys.__excepthook__(type(error), error.with_traceback(trace), trace)


def flush_output() -> None:
    """Write buffered output."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
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
