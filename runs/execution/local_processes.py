"""Local processes that execute the shards of one run together with the command that started them.

Each is started as `python -m runs.management.local_process` with a job on stdin. It writes a line of JSON for each
response, so that the command can show progress, and stops when its stdin ends: when the command closes it or dies.
"""

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO, TypedDict

logger = logging.getLogger(__name__)


class Job(TypedDict):
    """What a local process executes.

    reserved_for: as in Shard. limits: file of the shared limits. processes: number of processes that execute the run.
    """

    run: int
    reserved_for: str
    limits: str
    processes: int
    use_cache: bool


@dataclass(slots=True)
class LocalProcesses:
    """The local processes of one run."""

    _processes: list[subprocess.Popen[str]] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self, number: int, job: Job, receive: Callable[[str], None], folder: str) -> None:
        """Start *number* processes. *receive* gets each line that they write, in a thread."""
        for _ in range(number):
            process = subprocess.Popen(
                [sys.executable, "-m", "runs.management.local_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                cwd=folder,
                start_new_session=True,  # Ctrl-C reaches the command, which stops them
            )
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            thread = threading.Thread(target=_read, args=[process.stdout, receive], daemon=True)
            thread.start()
            self._processes.append(process)
            self._threads.append(thread)

    def stop(self) -> None:
        """Tell the processes to start nothing more, to store the responses in flight and to end."""
        for process in self._processes:
            if process.stdin is not None and not process.stdin.closed:
                try:
                    process.stdin.close()
                except BrokenPipeError:
                    logger.warning("local process %s has ended early", process.pid)

    def close(self, within_s: float = 15.0) -> None:
        """Stop the processes, and kill those that do not end in time."""
        self.stop()
        for process in self._processes:
            try:
                process.wait(within_s)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for thread in self._threads:
            thread.join(within_s)


def _read(lines: TextIO, receive: Callable[[str], None]) -> None:
    for line in lines:
        receive(line)
