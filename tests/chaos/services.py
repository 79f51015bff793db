"""The processes of a chaos run: a database, Redis, a sandbox service, workers and beat, all of its own."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import redis

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_POSTGRES = "postgres://postgres@127.0.0.1:5432/postgres"
SERVE = ROOT / "sandbox" / "image" / "serve.py"


def postgres_url() -> str:
    """Return the URL of the PostgreSQL server of the tests."""
    return os.environ.get("LLMEVAL_TEST_POSTGRES", DEFAULT_POSTGRES)


def has_redis_server() -> bool:
    return shutil.which("redis-server") is not None


@contextmanager
def own_database() -> Iterator[str]:
    """Create an empty database on the server of the tests, and yield its URL; it is dropped at the end."""
    address = postgres_url()
    name = f"llmeval_chaos_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        try:
            yield urlunsplit(urlsplit(address)._replace(path=f"/{name}"))
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def terminate_connections(database_url: str) -> int:
    """End every connection to the database, as a restart of the server does. Return how many there were."""
    parts = urlsplit(database_url)
    query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
    with psycopg.connect(urlunsplit(parts._replace(path="/postgres")), autocommit=True) as admin:
        return admin.execute(query, [parts.path.strip("/")]).rowcount


def command_of(pid: int) -> str:
    """Return the command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


@dataclass(slots=True)
class Service:
    """Process that is started again a second after it ends, as under a supervisor, until it is stopped or paused.

    The output of all its processes goes to *log*.
    """

    name: str
    command: list[str]
    environment: Mapping[str, str]
    log: Path
    paused: bool = False
    process: "subprocess.Popen[bytes] | None" = None
    starts: int = 0
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._launch()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def _launch(self) -> None:
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self.command, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        self.starts += 1

    def _keep(self) -> None:
        while not self._stopped.wait(1.0):
            if self.process is not None and self.process.poll() is not None and not self.paused:
                self._launch()

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill(self, *, also: list[int] | None = None, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the process, and to the processes *also*."""
        for pid in [self.pid, *(also or [])]:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
        if self.process is not None:
            self.process.wait(30)

    def stop(self) -> None:
        """End the process as an operator does, and do not start it again."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


@dataclass(slots=True)
class Cluster:
    """Everything that a chaos run uses. environment: of all its processes."""

    folder: Path
    environment: dict[str, str]
    redis: Service
    sandbox: Service
    beat: Service
    workers: list[Service]
    redis_url: str

    def services(self) -> list[Service]:
        return [self.redis, self.sandbox, self.beat, *self.workers]

    def start(self) -> None:
        self.redis.start()
        self.sandbox.start()
        self.wait_for_redis()
        for service in (self.beat, *self.workers):
            service.start()

    def wait_for_redis(self) -> None:
        deadline = time.monotonic() + 30
        with redis.Redis.from_url(self.redis_url) as client:
            while True:
                try:
                    client.ping()
                    return
                except redis.RedisError:
                    assert time.monotonic() < deadline, "Redis does not start"
                    time.sleep(0.1)

    def restart_redis(self, *, empty: bool, down_s: float) -> None:
        """Kill Redis, and start it again after *down_s* seconds, with what it had stored or *empty*."""
        self.redis.paused = True
        self.redis.kill()
        if empty:
            for path in sorted((self.folder / "redis").rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
        time.sleep(down_s)
        self.redis.paused = False

    def stop(self) -> None:
        for service in (self.beat, *self.workers, self.sandbox, self.redis):
            service.stop()


def make_cluster(folder: Path, database_url: str, shard_responses: int) -> Cluster:
    """Describe the processes: three workers, of which the third has a data folder of its own, as on another machine.

    The first and the third worker have the same Celery name, and all have the same host name, as two containers may.
    """
    port = _free_port()
    redis_url = f"redis://127.0.0.1:{port}/0"
    for name in ("redis", "var", "elsewhere", "archives", "logs"):
        (folder / name).mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("LLMEVAL_", "MLFLOW_"))},
        "DJANGO_SETTINGS_MODULE": "llmeval_site.settings",
        "DATABASE_URL": database_url,
        "CELERY_BROKER_URL": redis_url,
        "LLMEVAL_VAR": str(folder / "var"),
        "LLMEVAL_ARCHIVES": str(folder / "archives"),
        "LLMEVAL_SHARD_RESPONSES": str(shard_responses),
        "LLMEVAL_SANDBOX_SOCKET": str(folder / "sandbox.sock"),
        "LLMEVAL_SANDBOX_WEAK_ISOLATION": "1",
        "LLMEVAL_SANDBOX_WORKERS": "2",
        "LLMEVAL_LOG_LEVEL": "INFO",
        "PYTHONUNBUFFERED": "1",
    }

    def service(name: str, *command: str, **changes: str) -> Service:
        return Service(name, list(command), {**environment, **changes}, folder / "logs" / f"{name}.log")

    def worker(name: str, node: str, pool: str, **changes: str) -> Service:
        celery = [sys.executable, "-m", "celery", "-A", "llmeval_site", "worker", "--pool", pool, "--concurrency", "1"]
        return service(name, *celery, "--hostname", f"{node}@%h", **changes)

    return Cluster(
        folder=folder,
        environment=environment,
        redis_url=redis_url,
        redis=service(
            "redis", "redis-server", "--port", str(port), "--dir", str(folder / "redis"), "--appendonly", "yes"
        ),
        sandbox=service("sandbox", sys.executable, "-I", str(SERVE), str(folder / "sandbox.sock")),
        beat=service("beat", sys.executable, "-m", "celery", "-A", "llmeval_site", "beat", "--pidfile="),
        workers=[
            worker("first", "worker", "prefork", LLMEVAL_SANDBOX_BACKEND="socket"),
            worker("second", "other", "threads", LLMEVAL_SANDBOX_BACKEND="local"),
            worker(
                "third",
                "worker",
                "prefork",
                LLMEVAL_SANDBOX_BACKEND="local",
                LLMEVAL_VAR=str(folder / "elsewhere"),
            ),
        ],
    )


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
