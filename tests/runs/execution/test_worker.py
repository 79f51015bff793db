"""Runs executed by a real Celery worker, with the filesystem and Redis as brokers."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from hub import selectors
from hub.common.leases import has_ended, new_owner
from hub.models import Environment
from runs import tasks
from runs.leases import LEASE, LeaseLost, RunBusy, release_lease, renew_lease, take_lease
from runs.models import Response, Run
from runs.queue import take_next_lease
from runs.services import cancel_run, create_run, interrupt_run
from runs.tasks import execute_queued_runs
from runs.tracking.stage import TrackingStage
from tests.endpoint import endpoint
from tests.processes import WORKER_ENDS_WITHIN_S, descendants, send_task, start_eval, wait_until, worker
from tests.runs.capitals import CAPITALS, answer_capital, config_text, load
from tests.runs.config.resolution import find_environments
from tests.services import empty_redis_url, redis_url

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("kind", [pytest.param("filesystem", marks=pytest.mark.exhaustive), "redis"])
def test_enqueue_waits_for_the_worker_and_reports(folder: Path, kind: str) -> None:
    broker = empty_redis_url() if kind == "redis" else "filesystem://"
    with endpoint(answer_capital) as server, worker(broker):
        (folder / "run.yaml").write_text(config_text(server.url))
        environment = {"CELERY_BROKER_URL": broker}
        process = start_eval(folder, "--config", str(folder / "run.yaml"), "--enqueue", "--json", extra=environment)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert json.loads(output)["results"][0]["passed"] == len(CAPITALS)
    assert Run.objects.get().lease_owner == ""


def create_queued_run(folder: Path, url: str) -> Run:
    config = load(folder, config_text(url, concurrency=1))
    return create_run(config=config, environments=find_environments(config))


def _end_main_process(worker: "subprocess.Popen[bytes]") -> None:
    worker.send_signal(signal.SIGTERM)


def _end_all_processes(worker: "subprocess.Popen[bytes]") -> None:
    """Send SIGTERM to every process of a worker, as systemd does."""
    for pid in [worker.pid, *descendants(worker.pid)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("pool", "end"),
    [("prefork", _end_main_process), ("prefork", _end_all_processes), ("threads", _end_main_process)],
)
def test_worker_requeues_its_run_on_sigterm_and_another_continues_it(
    folder: Path, pool: str, end: Callable[["subprocess.Popen[bytes]"], None]
) -> None:
    continue_replies = threading.Event()

    def script(request, number):  # type: ignore[no-untyped-def]
        if number == 2:
            continue_replies.wait(30)
        return answer_capital(request)

    try:
        with endpoint(script) as server:
            run = create_queued_run(folder, server.url)
            with worker(empty_redis_url(), pool) as process:
                send_task(empty_redis_url())
                wait_until(lambda: Response.objects.count() == 2)
                end(process)
                process.wait(WORKER_ENDS_WITHIN_S)
            run.refresh_from_db()
            assert (run.status, run.lease_owner) == ("queued", "")
            continue_replies.set()
            with worker(redis_url(), pool):  # the message of the first worker wakes it
                wait_until(lambda: Run.objects.get().status == "completed")
            assert Response.objects.filter(status="passed").count() == len(CAPITALS)
    finally:
        continue_replies.set()


SLOW_TESTS = """\
spec: 1
slug: capitals
version: 1.0.0
title: Capitals
summary: Name the capital.
category: code-generation
dataset: {path: cases.jsonl, fields: {input: "Capital of {{ country }}?", target: capital}}
scoring: {rules: [{type: python_tests, tests: "import time\\ndef test_capital():\\n    time.sleep(1)\\n    assert CAPITAL == '{{ capital }}'"}]}
"""  # noqa: E501


@pytest.mark.exhaustive
def test_code_that_runs_when_all_processes_get_sigterm_is_run_again(folder: Path) -> None:
    (folder / "capitals" / "environment.yaml").write_text(SLOW_TESTS)

    def script(request, number):  # type: ignore[no-untyped-def]
        reply = answer_capital(request)
        message = reply.body["choices"][0]["message"]
        message["content"] = f"```python\nCAPITAL = {message['content']!r}\n```"
        return reply

    with endpoint(script) as server:
        config = load(folder, config_text(server.url, concurrency=2, sandbox={"accept": ["A", "B", "C"]}))
        run = create_run(config=config, environments=find_environments(config))
        with worker(empty_redis_url(), "prefork", LLMEVAL_SANDBOX_WEAK_ISOLATION="1") as process:
            send_task(empty_redis_url())
            wait_until(lambda: len(server.requests) > 2)
            _end_all_processes(process)
            process.wait(WORKER_ENDS_WITHIN_S)
        run.refresh_from_db()
        assert (run.status, run.lease_owner) == ("queued", "")
        with worker(redis_url(), "prefork", LLMEVAL_SANDBOX_WEAK_ISOLATION="1"):
            wait_until(lambda: Run.objects.get().status == "completed", each_second=lambda: send_task(redis_url()))
    assert Response.objects.filter(status="passed").count() == len(CAPITALS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_another_worker_continues_the_run_of_a_killed_worker(folder: Path, pool: str) -> None:
    continue_replies = threading.Event()

    def script(request, number):  # type: ignore[no-untyped-def]
        if number == 2:
            continue_replies.wait(30)
        return answer_capital(request)

    try:
        with endpoint(script) as server:
            run = create_queued_run(folder, server.url)
            broker = empty_redis_url()
            with worker(broker, pool) as process, worker(broker, pool):
                send_task(broker)
                wait_until(lambda: Response.objects.count() == 2)
                run.refresh_from_db()
                executing = int(run.lease_owner.split(":")[1])
                for pid in {executing, process.pid} if pool == "prefork" else {executing}:
                    os.kill(pid, signal.SIGKILL)
                continue_replies.set()
                wait_until(lambda: has_ended(run.lease_owner))
                # as the periodic sweep does
                wait_until(lambda: Run.objects.get().status == "completed", each_second=lambda: send_task(broker))
            assert Response.objects.filter(status="passed").count() == len(CAPITALS)
    finally:
        continue_replies.set()


@pytest.mark.exhaustive
def test_run_of_a_killed_prefork_process_is_delivered_again_by_its_own_worker(folder: Path) -> None:
    killed = threading.Event()

    def script(request, number):  # type: ignore[no-untyped-def]
        if number == 2:
            killed.wait(30)
        return answer_capital(request)

    try:
        with endpoint(script) as server:
            run = create_queued_run(folder, server.url)
            broker = empty_redis_url()
            with worker(broker, "prefork"):
                send_task(broker)
                wait_until(lambda: Response.objects.count() == 2)
                run.refresh_from_db()
                os.kill(int(run.lease_owner.split(":")[1]), signal.SIGKILL)
                killed.set()
                wait_until(lambda: Run.objects.get().status == "completed")
            assert Response.objects.filter(status="passed").count() == len(CAPITALS)
    finally:
        killed.set()


def test_lease_has_one_owner_until_it_is_released_or_expires(folder: Path) -> None:
    run = create_queued_run(folder, "http://x/v1")
    first, second = "elsewhere:1:a", new_owner()
    assert (taken := take_next_lease(owner=first)) is not None and taken.pk == run.pk
    assert take_next_lease(owner=second) is None
    with pytest.raises(RunBusy, match="elsewhere:1:a"):
        take_lease(run=run, owner=second)
    assert renew_lease(run_id=run.pk, owner=first) is False
    Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert (again := take_next_lease(owner=second)) is not None and again.lease_owner == second
    with pytest.raises(LeaseLost):
        renew_lease(run_id=run.pk, owner=first)
    release_lease(run=run, owner=first)
    assert Run.objects.get().lease_owner == second
    assert Run.objects.get().lease_until - timezone.now() > LEASE / 2


def test_run_created_with_an_owner_is_not_taken_by_a_worker(folder: Path) -> None:
    config = load(folder, config_text("http://x/v1"))
    run = create_run(config=config, environments=find_environments(config), owner="elsewhere:1:a")
    assert take_next_lease(owner=new_owner()) is None
    interrupt_run(run=run, owner="elsewhere:1:a")
    assert (run.status, run.lease_owner, take_next_lease(owner=new_owner())) == ("interrupted", "", None)


def test_resuming_a_run_of_another_process_exits_2_and_changes_nothing(folder: Path) -> None:
    run = create_queued_run(folder, "http://x/v1")
    take_lease(run=run, owner="elsewhere:1:a")
    Run.objects.update(status="running", cancel_requested=True)
    process = start_eval(folder, "--resume", str(run.pk), "--json")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "is being executed by elsewhere:1:a. Wait until it ends, or cancel it" in json.loads(output)["message"]
    run.refresh_from_db()
    assert (run.status, run.cancel_requested, run.lease_owner) == ("running", True, "elsewhere:1:a")


def test_lease_of_a_killed_process_is_free_immediately(folder: Path) -> None:
    run = create_queued_run(folder, "http://x/v1")
    killed = _owner_of_a_killed_process()
    take_lease(run=run, owner=killed)
    owner = new_owner()
    take_lease(run=run, owner=owner)
    assert run.lease_owner == owner
    release_lease(run=run, owner=owner)
    take_lease(run=run, owner=_owner_of_a_killed_process())
    assert (taken := take_next_lease(owner="elsewhere:1:a")) is not None and taken.lease_owner == "elsewhere:1:a"


def test_lease_of_a_process_in_another_container_with_the_same_host_name_is_kept(folder: Path) -> None:
    run = create_queued_run(folder, "http://x/v1")
    host, _, token = _owner_of_a_killed_process().split(":")
    elsewhere = f"{host}:{2**22 - 1}:{'0' * len(token)}"  # no such process here, and no lock file of it
    take_lease(run=run, owner=elsewhere)
    with pytest.raises(RunBusy):
        take_lease(run=run, owner=new_owner())


def _owner_of_a_killed_process() -> str:
    code = (
        "import django, os; django.setup(); from hub.common.leases import has_ended, new_owner; "
        "print(new_owner(), flush=True); os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "llmeval_site.settings"}
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return process.stdout.strip()


def test_run_that_cannot_start_fails_with_the_reason(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = create_queued_run(folder, "http://x/v1")
    for path in [*settings.MEDIA_ROOT.rglob("*.zip"), *Path(settings.ARCHIVE_CACHE).glob("*.zip")]:
        path.unlink()
    monkeypatch.setattr("hub.selectors._compiled", selectors._compiled.__wrapped__)
    execute_queued_runs()
    run.refresh_from_db()
    assert (run.status, run.lease_owner) == ("failed", "")
    assert "is missing: the storage of archives has no file" in run.message


@pytest.mark.parametrize("held_out", [False, True])
def test_unexpected_error_that_may_quote_a_held_out_case_is_only_in_the_log(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, held_out: bool
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("invalid target: 'Paris'")

    run = create_queued_run(folder, "http://x/v1")
    Environment.objects.update(held_out=held_out)
    monkeypatch.setattr(tasks, "execute_run", fail)
    execute_queued_runs()
    run.refresh_from_db()
    assert run.status == "failed" and run.message.startswith("ValueError: ")
    assert ("Paris" in run.message) is not held_out
    assert "Paris" in caplog.text


@pytest.mark.parametrize("held_out", [False, True])
def test_unexpected_error_of_a_stage_that_may_quote_a_held_out_case_is_only_in_the_log(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, held_out: bool
) -> None:
    async def fail(*_: object) -> None:
        raise ValueError("invalid target: 'Paris'")

    with endpoint(answer_capital) as server:
        config = load(folder, config_text(server.url, tracking={"mlflow": True}))
        run = create_run(config=config, environments=find_environments(config))
        Environment.objects.update(held_out=held_out)
        monkeypatch.setattr(TrackingStage, "execute", fail)
        execute_queued_runs()
    run.refresh_from_db()
    error = str(run.summaries["tracking"]["error"])
    assert run.status == "completed" and error.startswith("ValueError: ")
    assert ("Paris" in error) is not held_out
    assert "Paris" in caplog.text


def test_cancel_ends_a_queued_run_and_flags_a_running_one(folder: Path) -> None:
    waiting, busy = create_queued_run(folder, "http://x/v1"), create_queued_run(folder, "http://x/v1")
    Run.objects.filter(pk=busy.pk).update(status="running")
    take_lease(run=busy, owner="elsewhere:1:a")
    cancel_run(run=waiting)
    cancel_run(run=busy)
    assert (waiting.status, busy.status, busy.cancel_requested) == ("cancelled", "running", True)
    assert renew_lease(run_id=busy.pk, owner="elsewhere:1:a") is True
