"""Scaling of one run over Celery workers, on a PostgreSQL database and a Redis server of its own.

    .venv/bin/python benchmarks/scaling.py [--workers 1,2,4,8] [--postgres URL] [--long 20000]

1. Processor time per case of a worker at 128 requests in flight, beside that of `manage.py eval` in one process.
2. A run on 1, 2, 4 and 8 workers, against an endpoint that answers after half a second, with 16 requests in flight for
   each worker. A worker that takes no time would answer 32 cases a second; prints the part of that pace which the run
   reached.
3. A run of 10 cases that is queued behind a long one: seconds until it has ended.
4. Two runs at the same time with a limit of 16 requests in flight: the most that the endpoint saw.

Needs redis-server, and a PostgreSQL server where a database may be created. A worker here is a process, so with more
workers than free cores the first figures show the machine, not the product.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import LiteralString
from urllib.parse import urlsplit, urlunsplit

import psycopg
from processes import processor_seconds

ROOT = Path(__file__).resolve().parent.parent
PYTHON = [sys.executable]
LATENCY_S, PER_WORKER = 0.5, 16
PACE = PER_WORKER / LATENCY_S  # cases a second of one worker that takes no time
SECONDS = 20  # of each measured run, at that pace


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="1,2,4,8")
    parser.add_argument("--postgres", default="postgres://postgres@127.0.0.1:5432/postgres")
    parser.add_argument("--long", type=int, default=20_000, help="cases of the long run")
    options = parser.parse_args()
    numbers = [int(number) for number in options.workers.split(",")]
    with Installation.start(options.postgres) as installation:
        print(f"{len(os.sched_getaffinity(0))} cores, endpoint {LATENCY_S:g} s, {PER_WORKER} in flight per worker")
        installation.measure_processor_time()
        for number in numbers:
            installation.measure_workers(number)
        installation.measure_queue(options.long)
        installation.measure_shared_limit()


class Installation:
    """Database, broker and endpoint, all new. environment: of every process of the product."""

    def __init__(self, folder: Path, environment: dict[str, str], endpoint: str) -> None:
        self.folder = folder
        self.environment = environment
        self.endpoint = endpoint

    @classmethod
    @contextmanager
    def start(cls, postgres: str) -> Iterator["Installation"]:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="llmeval-scaling-")))
            redis_port, endpoint_port = free_port(), free_port()
            redis = ["redis-server", "--port", str(redis_port), "--dir", str(folder), "--save", ""]
            stack.enter_context(_process(redis))
            endpoint = [*PYTHON, str(ROOT / "benchmarks" / "endpoint.py"), "--port", str(endpoint_port)]
            stack.enter_context(_process([*endpoint, "--latency", str(LATENCY_S)]))
            environment = {
                **{name: value for name, value in os.environ.items() if not name.startswith("LLMEVAL_")},
                "DATABASE_URL": stack.enter_context(_database(postgres)),
                "CELERY_BROKER_URL": f"redis://127.0.0.1:{redis_port}/0",
                "LLMEVAL_VAR": str(folder / "var"),
                "LLMEVAL_SHARD_RESPONSES": "50",
                "OPENAI_API_KEY": "x",
            }
            installation = cls(folder, environment, f"http://127.0.0.1:{endpoint_port}")
            installation.manage("prepare")
            yield installation

    def manage(self, *arguments: str) -> str:
        command = [*PYTHON, str(ROOT / "manage.py"), *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    @contextmanager
    def workers(self, number: int, *, niceness: int = 0) -> Iterator[list[int]]:
        """Start workers with one process each, and yield their process ids once all have connected to the broker.

        niceness: of their processes, as for the command `nice`.
        """
        command = ["nice", "-n", str(niceness), *PYTHON, "-m", "celery", "-A", "llmeval_site", "worker"]
        command += ["--pool", "prefork", "--concurrency", "1"]
        processes = [
            subprocess.Popen(
                [*command, "--beat", "--schedule", str(self.folder / f"beat-{i}"), "--hostname", f"w{i}@%h"]
                if i == 0
                else [*command, "--hostname", f"w{i}@%h"],
                cwd=ROOT,
                env=self.environment,
                stderr=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            for i in range(number)
        ]
        try:
            inspect = [*PYTHON, "-m", "celery", "-A", "llmeval_site", "inspect", "ping", "--json"]
            while True:
                done = subprocess.run(
                    inspect, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False
                )
                with suppress(ValueError):
                    if len(json.loads(done.stdout)) == number:
                        break
                if any(process.poll() is not None for process in processes):
                    sys.exit(f"A worker has ended: {' '.join(command)}")
            yield [process.pid for process in processes]
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()

    def write_config(self, name: str, cases: int, in_flight: int) -> str:
        """Write an environment of text cases and a config for it, and return the config's name."""
        folder = self.folder / name
        folder.mkdir()
        rows = [{"id": str(i), "input": f"{name}: repeat the number {i}", "target": str(i)} for i in range(cases)]
        (folder / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "environment.yaml").write_text(
            f"spec: 1\nslug: {name}\nversion: 1.0.0\ntitle: Scaling\nsummary: Echoed numbers.\ncategory: reasoning\n"
            "dataset: {path: cases.jsonl}\nscoring: {rules: [{type: number}]}\n"
        )
        (self.folder / f"{name}.yaml").write_text(
            f"name: {name}\nenvironments: [{{path: {name}}}]\nconcurrency: {in_flight}\ntracking: {{mlflow: false}}\n"
            f"models: [{{name: local, provider: openai, model: echo, base_url: '{self.endpoint}/v1'}}]\n"
        )
        return f"{name}.yaml"

    def measure_processor_time(self) -> None:
        sizes = {"few": 1, "many": 5000, "busy": 5000}
        few, many, config = (self.write_config(name, cases, 128) for name, cases in sizes.items())
        start, total = (self._eval_alone(name) for name in (few, many))
        alone = (total - start) / 5000
        with self.workers(1) as pids:
            before = sum(map(processor_seconds, pids))
            self._execute(config)
            worker = (sum(map(processor_seconds, pids)) - before) / 5000
        print(
            f"processor time a case: {alone * 1000:.2f} ms in one process without its start, "
            f"{worker * 1000:.2f} ms on a worker ({worker / alone:.2f} times)"
        )

    def _eval_alone(self, config: str) -> float:
        """Return the processor time of `manage.py eval` in one process, in seconds."""
        before = os.times()
        self.manage("eval", "--config", config, "--processes", "1", "--json")
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    def measure_workers(self, number: int) -> None:
        cases = int(PACE * number * SECONDS)
        config = self.write_config(f"workers-{number}", cases, PER_WORKER * number)
        with self.workers(number):
            first, last = self._execute(config)
        pace = cases / (last - first)
        print(f"{number} workers: {pace:6.1f} cases a second, {pace / (PACE * number):4.0%} of linear")

    def _execute(self, config: str) -> tuple[float, float]:
        """Let the workers execute a run, and return when its first response was stored and when its last one was."""
        self.manage("eval", "--config", config, "--enqueue", "--json")
        first, last = self.query(
            """SELECT extract(epoch FROM min(r.created_at)), extract(epoch FROM max(r.created_at))
            FROM runs_response r JOIN runs_runenvironment e ON e.id = r.run_environment_id WHERE e.run_id = %s""",
            self._latest_run(config.removesuffix(".yaml")),
        )
        return first - LATENCY_S, last

    def _latest_run(self, name: str) -> int:
        return int(self.query("SELECT max(id) FROM runs_run WHERE name = %s", name)[0])

    def query(self, query: LiteralString, value: str | int) -> list[float]:
        with psycopg.connect(self.environment["DATABASE_URL"]) as connection:
            row = connection.execute(query, [value]).fetchone()
        return [float(item) for item in row or ()]

    def execute(self, statement: LiteralString) -> None:
        with psycopg.connect(self.environment["DATABASE_URL"]) as connection:
            connection.execute(statement)

    def measure_queue(self, cases: int) -> None:
        long, short = self.write_config("long", cases, PER_WORKER), self.write_config("short", 10, PER_WORKER)
        with self.workers(2):
            background = subprocess.Popen(
                [*PYTHON, str(ROOT / "manage.py"), "eval", "--config", long, "--enqueue"],
                cwd=self.folder,
                env=self.environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(20)
            started = time.monotonic()
            self.manage("eval", "--config", short, "--enqueue", "--json")
            took = time.monotonic() - started
            running = background.poll() is None
            self.manage("runs", "cancel", str(self._latest_run("long")))
            background.wait()
        print(
            f"10 cases behind {cases:,}: ended after {took:.1f} s; the long run was {'' if running else 'not '}running"
        )

    def measure_shared_limit(self) -> None:
        configs = [self.write_config(f"shared-{i}", 320, PER_WORKER) for i in range(2)]
        self._stats(reset=True)
        with self.workers(2):
            both = [
                subprocess.Popen(
                    [*PYTHON, str(ROOT / "manage.py"), "eval", "--config", config, "--enqueue"],
                    cwd=self.folder,
                    env=self.environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                for config in configs
            ]
            for process in both:
                process.wait()
        print(f"two runs with a limit of {PER_WORKER}: at most {self._stats()['peak']} requests in flight")

    def _stats(self, *, reset: bool = False) -> dict[str, float]:
        with urllib.request.urlopen(f"{self.endpoint}/stats{'?reset' if reset else ''}") as answer:
            stats: dict[str, float] = json.load(answer)
        return stats


@contextmanager
def _database(server: str) -> Iterator[str]:
    name = f"llmeval_scaling_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        try:
            yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def _process(command: list[str]) -> Iterator[None]:
    if shutil.which(command[0]) is None:
        sys.exit(f"There is no {command[0]}.")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    time.sleep(1)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    main()
