"""Infrastructure faults: a stopped sandbox service or a lost database delays a run; it never fails because of them."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

import sandbox
from hub import selectors
from hub.common.leases import is_held
from hub.models import archive_storage
from runs import tasks
from runs.execution import database_threads, runner
from runs.execution.faults import InfrastructureFault, find_fault, retry_delay, return_after_fault
from runs.execution.runner import RunSession
from runs.models import Response, Run
from runs.services import cancel_run, create_run, resume_run
from runs.tasks import execute_queued_runs
from tests.endpoint import Answer, completion, endpoint
from tests.factories import stored_run, stored_version
from tests.members import member
from tests.processes import start_eval, wait_until
from tests.runs.capitals import CAPITALS, MANIFEST, answer_capital, config_text, load, statuses
from tests.runs.config.resolution import find_environments
from tests.runs.execution.test_worker import create_queued_run
from tests.services import database_server

pytestmark = pytest.mark.django_db(transaction=True)

SERVE = str(Path(sandbox.__file__).parent / "image" / "serve.py")
Start = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def socket_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "sandbox.sock"
    monkeypatch.setattr(settings, "SANDBOX_SOCKET", str(path))
    return path


@pytest.fixture
def start_service(socket_path: Path) -> Iterator[Start]:
    """Return a function that starts the sandbox service; it is ended with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        service = subprocess.Popen([sys.executable, "-I", SERVE, str(socket_path)])
        started.append(service)
        check = [sys.executable, "-I", SERVE, "--check", str(socket_path)]
        wait_until(lambda: subprocess.run(check, check=False).returncode == 0)
        return service

    yield start
    for service in started:
        service.kill()
        service.wait()


@pytest.fixture
def code_folder(folder: Path) -> Path:
    """Return the folder of the capitals, with tests that the sandbox runs instead of a comparison of texts."""
    rules = '{rules: [{type: python_tests, tests: "def test_f():\\n    assert f() == 1"}]}'
    manifest = MANIFEST.replace("{rules: [{type: exact_match}]}", rules)
    (folder / "capitals" / "environment.yaml").write_text(manifest)
    return folder


def write_code(request: dict[str, object], number: int) -> Answer:
    return completion("```python\ndef f(): return 1\n```")


def code_config(url: str) -> str:
    return config_text(url, sandbox={"backend": "socket", "accept": ["A", "B", "C"]}, concurrency=1)


@pytest.fixture(autouse=True)
def _accept_weak_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SANDBOX_WEAK_ISOLATION_FOR_LIVE_MODELS", True)


def queue_run(folder: Path, text: str) -> Run:
    config = load(folder, text)
    return create_run(config=config, environments=find_environments(config))


def make_ready(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(ready_at=timezone.now())


def test_run_waits_in_the_queue_while_the_sandbox_service_is_stopped(code_folder: Path, start_service: Start) -> None:
    with endpoint(write_code) as server:
        run = queue_run(code_folder, code_config(server.url))
        execute_queued_runs()
        run.refresh_from_db()
        assert (run.status, run.lease_owner, run.faults) == ("queued", "", 1)
        assert "sandbox service does not answer" in run.message
        assert run.retry_at is not None and run.retry_at > timezone.now()
        assert server.requests == []
        execute_queued_runs()  # it is not ready yet
        run.refresh_from_db()
        assert run.faults == 1
        make_ready(run)
        execute_queued_runs()
        run.refresh_from_db()
        assert run.faults == 2
        start_service()
        make_ready(run)
        execute_queued_runs()
        run.refresh_from_db()
    assert (run.status, run.faults, run.message, run.retry_at) == ("completed", 0, "", None)
    assert len(server.requests) == len(CAPITALS)


def test_sandbox_that_stops_in_the_middle_returns_the_run_to_the_queue(code_folder: Path, start_service: Start) -> None:
    service = start_service()

    def script(request: dict[str, object], number: int) -> Answer:
        if number == 3:
            service.terminate()
            service.wait()
        return write_code(request, number)

    with endpoint(script) as server:
        run = queue_run(code_folder, code_config(server.url))
        execute_queued_runs()
        run.refresh_from_db()
        assert (run.status, run.faults) == ("queued", 1), run.message
        assert "sandbox does not work at the moment" in run.message
        assert set(statuses(run).values()) == {"passed"}
        assert len(statuses(run)) < len(CAPITALS)
        start_service()
        make_ready(run)
        execute_queued_runs()
        run.refresh_from_db()
    assert run.status == "completed", run.message
    assert list(statuses(run).values()) == ["passed"] * len(CAPITALS)
    assert len(server.requests) == len(CAPITALS), "a reply that had arrived was requested again"
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("runs-")]


def test_run_is_interrupted_when_its_retries_have_no_success_for_hours(code_folder: Path, socket_path: Path) -> None:
    run = queue_run(code_folder, code_config("http://x/v1"))
    execute_queued_runs()
    past = timezone.now() - timedelta(hours=settings.FAULT_RETRY_HOURS, minutes=1)
    Run.objects.update(failing_since=past, ready_at=timezone.now())
    execute_queued_runs()
    run.refresh_from_db()
    assert (run.status, run.faults, run.lease_owner) == ("interrupted", 0, "")
    assert "retried for 12 hours. Resume the run" in run.message
    assert resume_run(run=run)
    assert run.failing_since is None


@pytest.mark.parametrize("hours", [0, 13])
def test_run_that_is_returned_after_a_fault_keeps_what_it_has_cost(hours: int) -> None:
    since = timezone.now() - timedelta(hours=hours)
    run = stored_run(stored_version(), status="running", failing_since=since, lease_owner="elsewhere:1:a", remaining=0)
    run.cost_usd = 0.5  # known to this process, and to no stored response
    return_after_fault(run, InfrastructureFault("The sandbox does not answer."), "elsewhere:1:a")
    run.refresh_from_db()
    assert (run.status, run.cost_usd) == ("interrupted" if hours else "queued", 0.5)


def test_message_of_a_fault_is_a_sentence() -> None:
    """Other sentences follow it, such as the time of the next retry."""
    fault = find_fault(OperationalError("database or disk is full"))
    assert str(fault) == "The database does not work at the moment: database or disk is full."


def test_time_between_retries_doubles_up_to_five_minutes() -> None:
    for faults, longest in ((1, 5), (2, 10), (3, 20), (6, 160), (7, 300), (5000, 300)):
        delays = [retry_delay(faults) for _ in range(100)]
        assert longest * 0.75 <= min(delays) < max(delays) <= longest


def test_run_that_waits_for_a_retry_can_be_cancelled(code_folder: Path, socket_path: Path) -> None:
    run = queue_run(code_folder, code_config("http://x/v1"))
    execute_queued_runs()
    run.refresh_from_db()
    cancel_run(run=run)
    assert (run.status, run.retry_at) == ("cancelled", None)


def test_page_and_rest_show_why_a_run_waits_and_until_when(
    code_folder: Path, socket_path: Path, client: Client
) -> None:
    run = queue_run(code_folder, code_config("http://x/v1"))
    execute_queued_runs()
    run.refresh_from_db()
    client.force_login(member("Curator", "Runner"))
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "The sandbox service does not answer" in page and "Next try" in page
    shown = client.get(f"/api/v1/runs/{run.pk}/").json()
    assert "The sandbox service does not answer" in shown["message"]
    assert shown["retry_at"] is not None


@pytest.mark.exhaustive
def test_eval_waits_for_the_sandbox_and_names_the_command_that_resumes_the_run(
    code_folder: Path, socket_path: Path
) -> None:
    with endpoint(write_code) as server:
        (code_folder / "run.yaml").write_text(code_config(server.url))
        extra = {"LLMEVAL_SANDBOX_SOCKET": str(socket_path), "LLMEVAL_SANDBOX_WEAK_ISOLATION": "1"}
        process = start_eval(
            code_folder, "--config", str(code_folder / "run.yaml"), extra={**extra, "LLMEVAL_EVAL_RETRY_SECONDS": "1"}
        )
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "next try in" in " ".join(output.split())
    run = Run.objects.get()
    assert f"--resume {run.pk}" in errors
    assert (run.status, run.lease_owner) == ("interrupted", "")


@pytest.mark.exhaustive
def test_eval_continues_when_the_sandbox_service_is_started(code_folder: Path, start_service: Start) -> None:
    with endpoint(write_code) as server:
        (code_folder / "run.yaml").write_text(code_config(server.url))
        extra = {"LLMEVAL_SANDBOX_SOCKET": settings.SANDBOX_SOCKET, "LLMEVAL_SANDBOX_WEAK_ISOLATION": "1"}
        process = start_eval(code_folder, "--config", str(code_folder / "run.yaml"), extra=extra)
        assert process.stdout is not None
        for line in process.stdout:
            if "next try" in line or "when it works" in line:
                break
        start_service()
        _, errors = process.communicate(timeout=90)
    assert process.returncode == 0, errors
    assert len(server.requests) == len(CAPITALS)


def set_database_accessible(accessible: bool) -> None:
    """Let the server accept connections to the test database, or end them all and accept no new ones."""
    name = connection.settings_dict["NAME"]
    with database_server() as admin:
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS {accessible}')  # type: ignore[arg-type]
        if not accessible:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])


def test_run_returns_to_the_queue_when_the_database_is_away_for_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no connections that a server could end")
    monkeypatch.setattr(database_threads, "_RECONNECT_FOR_S", 1.0)
    monkeypatch.setattr(database_threads, "_RECONNECT_EVERY_S", 0.1)
    back = threading.Timer(6.0, set_database_accessible, [True])

    def script(request: dict[str, object], number: int) -> Answer:
        if number == 2:
            set_database_accessible(False)
            back.start()
        return answer_capital(request)

    try:
        with endpoint(script) as server:
            run = create_queued_run(folder, server.url)
            execute_queued_runs()
            back.join()
            connection.close()
            run.refresh_from_db()
            assert run.status in ("queued", "running"), run.message
            Run.objects.filter(pk=run.pk).update(ready_at=timezone.now())
            execute_queued_runs()
            run.refresh_from_db()
    finally:
        back.cancel()
        set_database_accessible(True)
    assert run.status == "completed", run.message
    assert Response.objects.filter(status="passed").count() == len(CAPITALS)
    assert len(server.requests) == len(CAPITALS), "a reply that had arrived was requested again"


def test_run_is_retried_when_the_storage_of_archives_does_not_respond(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    with endpoint(answer_capital) as server:
        run = create_queued_run(folder, server.url)
        shutil.rmtree(settings.ARCHIVE_CACHE, ignore_errors=True)
        selectors._compiled.cache_clear()
        monkeypatch.setattr(archive_storage(), "_open", unreachable)
        execute_queued_runs()
        run.refresh_from_db()
        assert (run.status, run.faults, server.requests) == (Run.Status.QUEUED, 1, [])
        assert "cannot be read or written: ConnectionRefusedError" in run.message
        monkeypatch.undo()
        Run.objects.filter(pk=run.pk).update(ready_at=timezone.now())
        execute_queued_runs()
    run.refresh_from_db()
    assert run.status == Run.Status.COMPLETED


def test_run_is_retried_when_the_storage_of_cached_replies_does_not_respond(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(settings, "LARGE_TRANSCRIPT_BYTES", 1)
    with endpoint(answer_capital) as server:
        create_queued_run(folder, server.url)
        execute_queued_runs()
        run = create_queued_run(folder, server.url)
        monkeypatch.setattr(archive_storage(), "_open", unreachable)
        execute_queued_runs()
        run.refresh_from_db()
        assert (run.status, run.faults) == (Run.Status.QUEUED, 1)
        assert "cannot be read: ConnectionRefusedError" in run.message
        assert statuses(run) == {}
        monkeypatch.undo()
        Run.objects.filter(pk=run.pk).update(ready_at=timezone.now())
        execute_queued_runs()
        assert len(server.requests) == len(CAPITALS), "a cached reply was requested again"
    run.refresh_from_db()
    assert run.status == Run.Status.COMPLETED


def _execute_and_leave_runs(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Execute the queue as a worker that can neither execute a run nor return it to the queue."""

    async def fail(self: RunSession) -> None:
        raise error

    def disconnected(*_: object) -> None:
        raise OperationalError("could not extend file: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(RunSession, "execute", fail)
        patch.setattr(runner, "return_after_fault", disconnected)
        with suppress(SystemExit):
            execute_queued_runs()


def test_worker_that_had_to_leave_a_run_keeps_its_lease_but_no_lock_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = create_queued_run(folder, "http://x/v1")
    locks = Path(settings.VAR_DIR) / "leases"
    before = set(locks.glob("*"))

    _execute_and_leave_runs(monkeypatch, InfrastructureFault("The sandbox does not work."))

    run.refresh_from_db()
    assert run.lease_owner and is_held(run)
    assert set(locks.glob("*")) == before


def test_worker_continues_if_the_lease_cannot_be_released(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def disconnected(**_: object) -> None:
        raise OperationalError("the connection is closed")

    with endpoint(answer_capital) as server:
        runs = [create_queued_run(folder, server.url) for _ in range(2)]
        monkeypatch.setattr(runner, "release_lease", disconnected)
        monkeypatch.setattr(tasks, "release_lease", disconnected)
        execute_queued_runs()
    for run in runs:
        run.refresh_from_db()
        assert run.status == Run.Status.COMPLETED


@pytest.mark.parametrize("error", [InfrastructureFault("The sandbox does not work."), SystemExit()])
def test_run_that_a_worker_had_to_leave_is_executed_by_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    with endpoint(answer_capital) as server:
        run = create_queued_run(folder, server.url)
        _execute_and_leave_runs(monkeypatch, error)
        run.refresh_from_db()
        assert run.status == Run.Status.RUNNING
        Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        execute_queued_runs()
    run.refresh_from_db()
    assert run.status == Run.Status.COMPLETED
