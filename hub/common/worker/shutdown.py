"""Flag that says whether this Celery worker shuts down, shared by all of its processes.

Celery reports a shutdown only in the main process of a worker. The memory of the flag is shared with the processes that
it forks (pool `prefork`) and with its threads (pool `threads`), so tasks can hand their work back.

A service manager such as systemd sends SIGTERM to all processes of a worker. In a process of the pool, the signal would
end the task at once by an exception; here the task hands its work back instead.
"""

import mmap
import os
import signal
import threading

from celery.signals import task_postrun, task_prerun, worker_init, worker_shutting_down

_flag = mmap.mmap(-1, 1)  # anonymous memory that forked processes share
_main_process = 0  # of the worker, 0 if this is no worker
_process_ends = False  # this process of the pool received SIGTERM during its task


def is_shutting_down() -> bool:
    """Return whether the task of this process should hand back its work."""
    return _process_ends or _flag[0] != 0


def _note_shutdown(**_: object) -> None:
    _flag[0] = 1


def _note_main_process(**_: object) -> None:
    global _main_process
    _main_process = os.getpid()


def _handle_sigterm(**_: object) -> None:
    # The pool restores its own handler when it starts a process, so this is set for each task.
    if _main_process not in (0, os.getpid()) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _note_end_of_process)


def _forget_end_of_process(**_: object) -> None:
    global _process_ends
    _process_ends = False


def _note_end_of_process(*_: object) -> None:
    global _process_ends
    _process_ends = True


worker_shutting_down.connect(_note_shutdown)
worker_init.connect(_note_main_process)
task_prerun.connect(_handle_sigterm)
task_postrun.connect(_forget_end_of_process)
