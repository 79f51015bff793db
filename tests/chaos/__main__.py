"""`python -m tests.chaos`: one run on three workers while processes are killed and services fail, then checks.

    make chaos                        800 responses with 7 faults, about a minute
    make chaos ARGS=--full            5,000 cases x 2 models with 20 faults
    make chaos ARGS="--seed 7"        the same faults again, at the same progress of the run

It uses an own database on the PostgreSQL server of the tests (LLMEVAL_TEST_POSTGRES), and an own Redis server, sandbox
service, endpoint, beat and workers. The exit code is 1 if something is wrong; the logs of all processes are then kept.
"""

import argparse
import ctypes
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import django

from tests.chaos.faults import Chaos
from tests.chaos.services import ROOT, Cluster, command_of, make_cluster, own_database
from tests.chaos.workload import FULL, SHORT, CountingScript, Size, write_work
from tests.endpoint import endpoint
from tests.processes import descendants

_PR_SET_CHILD_SUBREAPER = 36


def main() -> int:
    """Run the chaos and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="5,000 cases and 20 faults")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--faults", type=int, help="another number of faults")
    parser.add_argument("--keep", action="store_true", help="keep the logs of all processes")
    options = parser.parse_args()
    size = FULL if options.full else SHORT
    print(f"seed {options.seed}: {size.responses} responses", flush=True)
    # Processes whose parent is killed become children of this process, so that none is overlooked at the end.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    folder = Path(tempfile.mkdtemp(prefix="llmeval-chaos-"))
    with own_database() as database_url:
        cluster = make_cluster(folder, database_url, size.shard_responses)
        os.environ.update(cluster.environment)
        subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=ROOT, check=True)
        django.setup()
        chooser = random.Random(options.seed)
        problems = _run(cluster, size, chooser, options.faults or size.faults, options.full)
    for problem in problems[:40]:
        print(f"WRONG: {problem}")
    if problems:
        print(f"{len(problems)} problems with seed {options.seed}")
    if problems or options.keep:
        print(f"The logs are in {folder / 'logs'}.")
    else:
        shutil.rmtree(folder)
    return int(bool(problems))


def _run(cluster: Cluster, size: Size, chooser: random.Random, faults: int, full: bool) -> list[str]:
    from django.db import connection

    from runs.execution.database_threads import retry_if_disconnected
    from runs.execution.dispatch import dispatch_run
    from runs.models import Response, Run
    from runs.services import create_run
    from tests.chaos.checks import check_all
    from tests.runs.capitals import load
    from tests.runs.config.resolution import find_environments

    script = CountingScript(size.latency_s)
    chaos = Chaos(cluster, script, chooser, full, lambda: retry_if_disconnected(_holders))
    schedule = chaos.schedule(faults)
    problems = []
    with endpoint(script) as server:
        try:
            cluster.start()
            config = load(cluster.folder, write_work(cluster.folder, server.url, size))
            run = create_run(config=config, environments=find_environments(config))
            dispatch_run(run=run)
            started = shown = time.monotonic()
            while time.monotonic() - started < size.within_s:
                stored = retry_if_disconnected(Response.objects.count)
                retry_if_disconnected(run.refresh_from_db)
                now = time.monotonic()
                if now - shown > 10:
                    shown = now
                    print(f"{now - started:6.1f} s  {stored:6} stored, {run.status} {run.message}", flush=True)
                if run.status not in (Run.Status.QUEUED, Run.Status.RUNNING):
                    break
                while schedule and stored >= schedule[0][0] * size.responses:
                    fault = chaos.cause(schedule.pop(0)[1])
                    print(f"{time.monotonic() - started:6.1f} s  {stored:6} stored: {fault.description}", flush=True)
                    connection.close()
                time.sleep(0.2)
            else:
                problems.append(f"The run has not ended within {size.within_s:.0f} s.")
            seconds = time.monotonic() - started
            retry_if_disconnected(run.refresh_from_db)
            problems += check_all(run, size, script, chaos.happened)
        finally:
            chaos.go_on()
            cluster.stop()
            connection.close()
    problems += _left_processes()
    kills = sum(fault.kills for fault in chaos.happened)
    repeated = sum(len(times) - 1 for times in script.answered.values())
    print(
        f"{run.status} after {seconds:.0f} s: {len(chaos.happened)} faults, {kills} kills, {repeated} replies lost and "
        f"requested again, {script.rejected} requests rejected, at most {dict(script.peaks)} in flight, "
        f"{run.takeovers} takeovers of the lead, {[service.starts for service in cluster.workers]} starts of workers"
    )
    return problems


def _holders() -> set[int]:
    """Return the processes that hold a lease on the run or a shard."""
    from runs.models import Run, Shard

    owners = [owner for rows in (Run, Shard) for owner in rows.objects.values_list("lease_owner", flat=True)]
    return {int(owner.split(":")[1]) for owner in owners if owner}


def _left_processes() -> list[str]:
    """Return the processes that are left although all services were stopped; wait a few seconds for their end."""
    deadline = time.monotonic() + 15
    while True:
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break
        left = descendants(os.getpid())
        if not left or time.monotonic() > deadline:
            return [f"Process {pid} is left: {command_of(pid)}" for pid in left]
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
