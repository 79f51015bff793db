"""Local process that executes shards of one run, started by runs/execution/local_processes.py."""

import json
import os
import sys
import threading
from typing import TYPE_CHECKING

import django

from hub.common.garbage_collection import loading
from runs.execution.local_processes import Job

if TYPE_CHECKING:  # models can be imported only after Django is set up
    from runs.models import Response


class _PrintingListener:
    """Listener that writes what happens as lines of JSON."""

    def response_finished(self, response: "Response") -> None:
        _print([response.status, response.cost_usd, response.role_cost_usd])

    def model_stopped(self, label: str, reason: str) -> None:
        _print([label, reason])

    def run_delayed(self, reason: str, seconds: float) -> None:
        """Do nothing: the command retries."""


def _print(line: list[object]) -> None:
    try:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the command was killed; stdin ends as well, and then the replies in flight are stored
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Execute shards as the job on stdin says, until none is left or stdin ends."""
    with loading():
        django.setup()
        from hub.common.leases import new_owner
        from runs.execution.runner import execute_shards
        from runs.execution.session.context import ExecutionOptions
        from runs.limits.limiter import share_limits_in_file
        from runs.models import Run
        from runs.services import config_of

    job: Job = json.loads(sys.stdin.readline())
    ended = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    share_limits_in_file(job["limits"])
    run = Run.objects.get(pk=job["run"])
    options = ExecutionOptions(use_cache=job["use_cache"], processes=job["processes"], stopping=ended.is_set)
    listener = _PrintingListener()
    execute_shards(
        run=run,
        config=config_of(run),
        listener=listener,
        options=options,
        owner=new_owner(),
        reserved_for=job["reserved_for"],
    )


if __name__ == "__main__":
    main()
