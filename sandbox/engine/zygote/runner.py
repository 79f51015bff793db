"""A fork of the zygote: locks itself down, reads its job, and takes the role that the job names."""

import os
import signal
import sys
from collections.abc import Callable

from ..candidate import function_call, program
from ..candidate import role as candidate_role
from ..candidate.definitions import imported_modules_named_like
from ..isolation import attacks, limits
from ..isolation.lockdown import Isolation, RunOptions
from ..protocol import channel, codec, frames
from ..test_judge import role as test_judge_role
from ..test_judge import shared_process

ROLES: dict[str, Callable[..., None]] = {  # each takes the job of its role, and the pipe to the engine
    "candidate": candidate_role.run,
    "test_judge": test_judge_role.run,
    "program": program.run,
    "call": function_call.run,
    "shared": shared_process.run,
    "attacks": attacks.run,
}

_exit = os._exit


def main(isolation: Isolation, request: RunOptions, descriptors: list[int]) -> None:
    """Run one job and end the process.

    descriptors  the pipe to the engine, stdout, stderr, the control groups to join, the pipe to the judge if any
    """
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        if request.processes:  # others have no children that would send the signal
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for group in descriptors[3 : 3 + request.groups]:
            os.write(group, b"0")
        link = descriptors[3 + request.groups :]
        for fd, low in zip(descriptors[:3] + link, (channel.FD, 1, 2, channel.LINK), strict=False):
            os.dup2(fd, low)
        isolation.close_descriptors(linked=bool(link))
        pipe = channel.Channel()
        os.setsid()
        isolation.lock_down(request)
        kind, payload = pipe.receive()
        if kind != frames.JOB:
            raise ValueError(f"expected a job, got kind {kind}")
        head, bodies = frames.split_head(payload)
        if head.get("stdin"):
            program.set_stdin(bodies.pop(), isolation.stdin_path)
        names = codec.of_type(list, head.get("files", []))
        _write_files(names, bodies)
        if head["role"] != "shared":  # which does not run such code
            for name in imported_modules_named_like(names):  # files take precedence, as in a new interpreter
                del sys.modules[name]
        isolation.limit(limits.limits_of(head))
        pipe.send(frames.BEGUN)
    except BaseException as error:  # not a failure of the code, which has not run yet
        _report_fault(error)
        _exit(code)
    try:
        ROLES[codec.of_type(str, head["role"])](head, pipe)
        code = 0
    except SystemExit as error:  # a program that ends itself
        code = program.exit_code(error)
    except channel.Closed:
        pass
    except BaseException as error:
        code = program.report_crash(error, pipe)
    finally:
        program.exit_process(code)


def _write_files(names: list[str], contents: list[bytes]) -> None:
    """Write the job's files below the working directory; the pool has checked that their paths stay there."""
    for name, content in zip(names, contents, strict=True):
        folder = os.path.dirname(name)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(name, "wb") as file:
            file.write(content)
    if names:
        sys.path.insert(0, os.getcwd())


def _report_fault(error: BaseException) -> None:
    text = f"{type(error).__name__}: {error}"[:500]
    try:
        os.write(channel.FD, frames.to_run(frames.REPORT, codec.dumps({"fault": text})))
    except OSError:
        pass
