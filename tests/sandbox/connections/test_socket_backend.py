"""The socket backend and its service, here as a plain process; the conformance table runs it in a container."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sandbox
from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from sandbox.connections.transports import TransportOptions
from sandbox.errors import SandboxUnavailable
from sandbox.verdicts.results import Status
from tests.processes import child_processes, wait_until
from tests.sandbox.conformance.case import ADD_TESTS, function_job

SERVE = str(Path(sandbox.__file__).parent / "image" / "serve.py")
JOB = function_job("def add(a, b): return a + b\n", ADD_TESTS["judged"])


Service = subprocess.Popen[bytes]
Start = Callable[..., Service]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sandbox.sock"


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    """Starts services at the path; every one is ended with the test."""
    started: list[Service] = []

    def begin(*more: str) -> Service:
        service = subprocess.Popen([sys.executable, "-I", SERVE, str(path), *more])
        started.append(service)
        while check(path) != 0:
            assert service.poll() is None, "The service ended by itself."
        while child_processes(service.pid):
            assert service.poll() is None, "The service ended by itself."
        return service

    yield begin
    for service in started:
        service.kill()
        service.wait()


@pytest.fixture
def service(start: Start) -> Service:
    return start()


def open_pool(path: Path, workers: int = 1) -> Pool:
    return Pool.open(PoolOptions(backend="socket", workers=workers, transport=TransportOptions(socket=str(path))))


def runs(pid: int) -> bool:
    """Whether a process exists and is more than a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def check(path: Path) -> int:
    return subprocess.run([sys.executable, "-I", SERVE, "--check", str(path)], check=False).returncode


def test_job_runs_over_the_socket(service: Service, path: Path) -> None:
    with open_pool(path) as pool:
        outcome = pool.run(JOB)
    assert (outcome.status, outcome.backend) == (Status.PASSED, "socket")


def test_each_connection_has_its_own_engine_that_ends_with_it(service: Service, path: Path) -> None:
    with open_pool(path) as first, open_pool(path) as second:
        assert len(child_processes(service.pid)) == 2
        assert first.run(JOB).status is second.run(JOB).status is Status.PASSED
    while child_processes(service.pid):
        assert service.poll() is None


def test_service_that_restarts_is_used_again(start: Start, service: Service, path: Path) -> None:
    with open_pool(path) as pool:
        assert pool.run(JOB).status is Status.PASSED
        service.terminate()
        service.wait()
        start()
        assert pool.run(JOB).status is Status.PASSED


def test_lost_service_is_infra_error(service: Service, path: Path) -> None:
    with open_pool(path) as pool:
        service.terminate()
        service.wait()
        outcome = pool.run(JOB)
    assert outcome.status is Status.INFRA_ERROR and str(path) in outcome.message


def test_stopped_service_removes_socket_and_engines(service: Service, path: Path) -> None:
    with open_pool(path):
        (engine,) = child_processes(service.pid)
        service.send_signal(signal.SIGTERM)
        service.wait()
        assert not path.exists()
        while runs(engine):
            pass


def test_socket_left_by_a_killed_service_is_replaced(start: Start, service: Service, path: Path) -> None:
    service.kill()
    service.wait()
    assert path.is_socket() and check(path) == 1
    start()
    assert check(path) == 0


def test_connections_beyond_the_limit_wait_for_one_to_end(start: Start, path: Path) -> None:
    service = start("1")
    first = open_pool(path)
    assert len(child_processes(service.pid)) == 1
    waiting = subprocess.Popen([sys.executable, "-I", SERVE, "--check", str(path)])
    assert first.run(JOB).status is Status.PASSED
    assert waiting.poll() is None and len(child_processes(service.pid)) == 1
    first.close()
    assert waiting.wait() == 0


# Runs the service; it can start no process until the file `ready` exists.
WITHOUT_PROCESSES = """
import os, runpy, subprocess, sys
start = subprocess.Popen

def start_later(*args, **options):
    if not os.path.exists(ready):
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return start(*args, **options)

subprocess.Popen = start_later
script, ready, path = sys.argv[1:]
sys.argv = [script, path]
runpy.run_path(script, run_name="__main__")
"""


def test_service_that_cannot_start_an_engine_goes_on(path: Path, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    service = subprocess.Popen([sys.executable, "-c", WITHOUT_PROCESSES, SERVE, str(ready), str(path)])
    try:
        wait_until(path.exists)
        assert check(path) == 1
        ready.touch()
        assert check(path) == 0
    finally:
        service.kill()
        service.wait()


def test_check_option_reports_whether_an_engine_answers(service: Service, path: Path) -> None:
    assert check(path) == 0
    assert check(path.with_name("nowhere.sock")) == 1


def test_wrong_arguments_print_usage() -> None:
    run = subprocess.run([sys.executable, "-I", SERVE], capture_output=True, text=True, check=False)
    assert run.returncode == 2 and "serve.py SOCKET" in run.stderr


def test_missing_service_is_reported_with_path_and_remedy(path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match=r"sandbox\.sock.*docker-compose\.yml"):
        open_pool(path)


def test_socket_mode_allows_other_users(service: Service, path: Path) -> None:
    assert os.stat(path).st_mode & 0o777 == 0o666


def test_service_with_engine_of_another_release_is_rejected(tmp_path: Path, path: Path) -> None:
    package = Path(sandbox.__file__).parent
    for folder in ("engine", "image"):
        shutil.copytree(package / folder, tmp_path / folder)
    with (tmp_path / "engine" / "frames.py").open("a") as file:
        file.write("# as released before\n")
    service = subprocess.Popen([sys.executable, "-I", tmp_path / "image" / "serve.py", path])
    try:
        while check(path) != 0:
            assert service.poll() is None, "The service ended by itself."
        with pytest.raises(
            SandboxUnavailable, match=r"sandbox\.sock contains the engine \w{12}, .* restart the service\."
        ):
            open_pool(path)
    finally:
        service.kill()
        service.wait()
