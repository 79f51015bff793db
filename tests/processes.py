"""Commands in separate processes that use the database of the tests, and environments with other packages."""

import hashlib
import os
import subprocess
import sys
import time
import uuid
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from celery import Celery
from django.conf import settings


def database_environment() -> dict[str, str]:
    """Return environment variables with which another process uses the database of the tests."""
    database = settings.DATABASES["default"]
    url = f"sqlite:///{database['NAME']}"
    if database["ENGINE"] != "django.db.backends.sqlite3":
        url = f"postgres://{database['USER']}:{database['PASSWORD']}@{database['HOST']}:{database['PORT']}/{database['NAME']}"
    return {**os.environ, "LLMEVAL_VAR": str(settings.VAR_DIR), "DATABASE_URL": url}


def python_with(requirements: Path, *, alone: bool = True) -> Path:
    """Return the interpreter of a virtual environment with *requirements*, which is created once for their content.

    alone  the file lists all packages, so that no others are installed
    """
    digest = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = settings.BASE_DIR / "var" / "adapters" / f"{requirements.stem}-{digest}"
    python: Path = folder / "bin" / "python"
    if not (folder / "installed").exists():
        venv.create(folder, with_pip=True, clear=True)
        # Few modules of these packages are imported, and most of the time would be spent on compiling all of them.
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        install += ["--no-deps"] if alone else []
        done = subprocess.run([*install, "-r", requirements], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        (folder / "installed").touch()
    return python


def start_eval(folder: Path, *arguments: str, extra: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return start_command("eval", *arguments, extra=extra)


def start_command(*arguments: str, extra: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """Start `manage.py` with *arguments* on the database of the tests."""
    return subprocess.Popen(
        [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**database_environment(), **(extra or {})},
    )


def child_processes(pid: int) -> list[int]:
    """Return the processes that the threads of *pid* started. A thread or process that ends meanwhile has none."""
    found = []
    with suppress(FileNotFoundError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                found += map(int, (thread / "children").read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    """Return all processes below *pid*, parents first."""
    found = []
    for child in child_processes(pid):
        found += [child, *descendants(child)]
    return found


def wait_until(condition: Callable[[], bool], each_second: Callable[[], object] | None = None) -> None:
    """Wait until *condition* returns True because of another process, for at most two minutes.

    each_second  called each second until then
    """
    deadline = time.monotonic() + 120
    due = time.monotonic()
    while not condition():
        assert time.monotonic() < deadline, "the condition is still false after two minutes"
        if each_second is not None and time.monotonic() >= due:
            each_second()
            due += 1
        time.sleep(0.02)


# A process of a pool waits up to 30 s until the main process has read its last result. The main process no longer reads
# it if SIGTERM came just before.
WORKER_ENDS_WITHIN_S = 60


@contextmanager
def worker(
    broker: str, pool: str = "threads", queues: str = "", log: int | None = None, **more: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker with one process or thread.

    queues  as in `--queues`
    log     descriptor for its stderr
    more    environment variables
    """
    environment = {**database_environment(), "CELERY_BROKER_URL": broker, **more}
    command = [sys.executable, "-m", "celery", "-A", "llmeval_site", "worker", "--pool", pool]
    command += [
        "--concurrency",
        "1",
        "--without-gossip",
        "--without-mingle",
        "--without-heartbeat",
    ]
    command += ["--hostname", f"{uuid.uuid4().hex}@%h"]
    command += ["--queues", queues] if queues else []
    process = subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(WORKER_ENDS_WITHIN_S)


def send_task(broker: str, name: str = "runs.execute_queued", queue: str = "runs") -> None:
    """Send the message of a task to the workers of a broker.

    It is lost if it reaches a worker that was just killed: processes which that worker started keep its connection open
    for a moment. Workers are woken regularly for that reason; tests that kill one send the message each second.
    """
    with Celery(broker=broker) as app:
        app.send_task(name, queue=queue, ignore_result=True)
