"""Episodes in the Docker sandbox of Inspect AI, for `benchmarks/workspaces.py --inspect`.

Inspect needs Docker Engine 24.0.6 or newer and the Compose plugin 2.21 or newer. It is installed into var/bench/. If
Docker's installed engine is older, start a newer one beside it and set DOCKER_HOST, which both harnesses use.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pipeline import BENCH, PEERS, install

COMPOSE = """
services:
  default:
    image: {image}
    pull_policy: never
    entrypoint: [sleep, infinity]
    working_dir: /tmp
    init: true
    network_mode: none
    stop_grace_period: 1s
    mem_limit: 64m
"""

TASK = """
import time

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.solver import solver
from inspect_ai.util import sandbox

@solver
def run_commands(command: str, count: int):
    async def solve(state, generate):
        state.metadata["commands_ms"] = []
        for number in range(count):
            started = time.perf_counter()
            done = await sandbox().exec(["sh", "-c", command], timeout=30)
            state.metadata["commands_ms"].append((time.perf_counter() - started) * 1000)
            assert done.stdout.strip() == str(number + 1), done
        return state
    return solve

@task
def boxes(episodes: int, command: str, count: int):
    samples = [Sample(id=number + 1, input="none") for number in range(episodes)]
    return Task(dataset=samples, solver=run_commands(command, count), sandbox=("docker", "compose.yaml"))
"""


@dataclass
class InspectRound:
    """Milliseconds of each command, and the seconds from the first reset to the end of the last episode."""

    commands_ms: list[float]
    seconds: float


def run_round(image: str, command: str, *, episodes: int, commands: int, at_once: int) -> InspectRound:
    """Execute *episodes* with no model, *at_once* at a time. The start of Inspect and of its task does not count."""
    install("inspect", PEERS["inspect"])
    with tempfile.TemporaryDirectory(prefix="llmeval-bench-") as folder:
        Path(folder, "compose.yaml").write_text(COMPOSE.format(image=image), encoding="utf-8")
        Path(folder, "boxes.py").write_text(TASK, encoding="utf-8")
        words = [str(BENCH / "inspect" / "bin" / "inspect"), "eval", "boxes.py", "--model", "mockllm/model"]
        words += ["-T", f"episodes={episodes}", "-T", f"count={commands}", "-T", f"command={command}"]
        for limit in ("samples", "sandboxes", "subprocesses"):
            words += [f"--max-{limit}", str(at_once)]
        words += ["--display", "plain", "--log-format", "json", "--log-dir", "logs"]
        done = subprocess.run(words, cwd=folder, env=dict(os.environ), capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"Inspect failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        log = json.loads(next(Path(folder, "logs").glob("*.json")).read_text(encoding="utf-8"))
    if log["status"] != "success":
        sys.exit(f"Inspect's evaluation ended as {log['status']}: {(log.get('error') or {}).get('message', '')}")
    # log["stats"] has whole seconds and includes the task's start. A sample's first event precedes its reset, and
    # it is completed when its container is removed.
    started = min(datetime.fromisoformat(sample["events"][0]["timestamp"]) for sample in log["samples"])
    ended = max(datetime.fromisoformat(sample["completed_at"]) for sample in log["samples"])
    times = [time for sample in log["samples"] for time in sample["metadata"]["commands_ms"]]
    return InspectRound(times, (ended - started).total_seconds())
