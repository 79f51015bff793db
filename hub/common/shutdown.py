"""Whether this Celery worker shuts down: one flag for all of its processes.

Celery reports a shutdown only in the main process of a worker. The memory of the flag is shared with the processes that
it forks (pool `prefork`) and with its threads (pool `threads`), so tasks can hand their work back.
"""

import mmap

from celery.signals import worker_shutting_down

_flag = mmap.mmap(-1, 1)  # anonymous memory that forked processes share


def is_shutting_down() -> bool:
    """Return whether the worker of this process has been asked to shut down."""
    return _flag[0] != 0


def _note_shutdown(**_: object) -> None:
    _flag[0] = 1


worker_shutting_down.connect(_note_shutdown)
