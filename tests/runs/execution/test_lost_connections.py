"""Runs survive lost connections to the database, and a process that has lost its lease stores nothing more."""

import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from hub.common import leases
from hub.common.leases import new_owner
from runs.execution import database_threads, runner, storage
from runs.execution.database_threads import retry_if_disconnected
from runs.execution.runner import execute_run
from runs.execution.session import run_budget
from runs.execution.session.context import ExecutionOptions
from runs.execution.storage import Reader
from runs.leases import LeaseLost, take_lease
from runs.models import ModelCall, Response, Run, Shard
from runs.services import config_of
from runs.transitions import change_status
from tests.endpoint import endpoint
from tests.listeners import SilentListener
from tests.processes import wait_until
from tests.runs.capitals import CAPITALS, answer_capital
from tests.runs.execution.test_shards import assert_complete, create_numbers_run, numbers, repeat_number
from tests.runs.execution.test_worker import create_queued_run
from tests.services import database_server

__all__ = ["numbers"]
pytestmark = pytest.mark.django_db(transaction=True)


def terminate_connections() -> None:
    """End every connection to the test database, as a restart of the server does."""
    with database_server() as admin:
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        assert admin.execute(query, [connection.settings_dict["NAME"]]).rowcount > 0


def test_run_completes_although_all_connections_are_terminated(folder: Path) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no connections that a server could end")

    def script(request, number):  # type: ignore[no-untyped-def]
        if number % 2 == 1:
            terminate_connections()
        return answer_capital(request)

    with endpoint(script) as server:
        run = create_queued_run(folder, server.url)
        execute_run(run=run, config=config_of(run), listener=SilentListener())
    connection.close()
    run.refresh_from_db()
    assert run.status == "completed", run.message
    assert Response.objects.filter(status="passed").count() == len(CAPITALS)


def test_shard_is_executed_although_the_connection_was_lost_when_it_was_leased(
    numbers: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SHARD_RESPONSES = 30
    take, leased = leases.take, list[int]()

    def take_and_disconnect(row: Any, *args: Any, **options: Any) -> bool:
        taken = take(row, *args, **options)
        if taken and isinstance(row, Shard):
            leased.append(row.pk)
            if len(leased) == 3:
                message = "server closed the connection unexpectedly"
                raise OperationalError(message) from psycopg.OperationalError(message)
        return taken

    monkeypatch.setattr(leases, "take", take_and_disconnect)
    with endpoint(repeat_number) as server:
        run = create_numbers_run(numbers, server.url)
        options = ExecutionOptions(workers_help=True)
        execute_run(run=run, config=config_of(run), listener=SilentListener(), options=options)
    assert len(leased) == len(set(leased)) == 16
    assert_complete(run)
    assert len(server.requests) == Response.objects.count()


@pytest.mark.parametrize("end", ["completed", "queued"])
def test_run_ends_although_the_connection_was_lost_when_its_status_was_stored(
    folder: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    stored = []

    def change_and_disconnect(run: Run, to: Run.Status, **options: Any) -> None:
        change_status(run, to, **options)
        stored.append(to)
        if stored.count(to) == 1 and to == end:
            run.status = Run.Status.RUNNING
            message = "server closed the connection unexpectedly"
            raise OperationalError(message) from psycopg.OperationalError(message)

    monkeypatch.setattr(runner, "change_status", change_and_disconnect)
    with endpoint(answer_capital) as server:
        run = create_queued_run(folder, server.url)
        options = ExecutionOptions(stopping=lambda: end == "queued")
        execute_run(run=run, config=config_of(run), listener=SilentListener(), options=options)
    assert (run.status, run.lease_owner) == (end, "")
    assert run.results.exists() == (end == "completed")


async def test_query_is_repeated_after_the_connection_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_threads, "_RECONNECT_EVERY_S", 0.0)
    calls = []

    def query() -> int:
        calls.append(connection.alias)
        if len(calls) < 3:
            message = "server closed the connection unexpectedly"
            raise OperationalError(message) from psycopg.OperationalError(message)
        return Run.objects.count()

    reader = Reader()
    assert await reader.run(query) == 0
    await reader.close()
    assert len(calls) == 3


async def test_error_of_a_working_connection_is_not_repeated() -> None:
    calls = []

    def query() -> None:
        calls.append(Run.objects.count())
        raise OperationalError("database or disk is full")

    reader = Reader()
    with pytest.raises(OperationalError, match="disk is full"):
        await reader.run(query)
    await reader.close()
    assert len(calls) == 1


def test_process_that_lost_its_lease_stores_no_responses(folder: Path) -> None:
    taken_over = threading.Event()

    def script(request, number):  # type: ignore[no-untyped-def]
        if number == 2:
            Run.objects.update(lease_owner="elsewhere:1:a")
            connection.close()  # of the endpoint's thread
            taken_over.set()
        return answer_capital(request)

    with endpoint(script) as server:
        run = create_queued_run(folder, server.url)
        owner = new_owner()
        take_lease(run=run, owner=owner)
        with pytest.raises(LeaseLost):
            execute_run(run=run, config=config_of(run), listener=SilentListener(), owner=owner)
    assert taken_over.is_set()
    run.refresh_from_db()
    assert (run.status, run.lease_owner) == ("running", "elsewhere:1:a")
    assert Response.objects.count() <= 2


def test_threads_end_when_a_run_fails_at_its_start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Run) -> tuple[float, bool]:
        raise ValueError("not a cost")

    monkeypatch.setattr(run_budget, "earlier_costs", fail)
    with endpoint(answer_capital) as server, pytest.raises(ValueError, match="not a cost"):
        run = create_queued_run(folder, server.url)
        execute_run(run=run, config=config_of(run), listener=SilentListener())
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("runs-")]


def model_call(key: str) -> ModelCall:
    return ModelCall(key=key, purpose="answer", model="m", message={}, usage={})


def test_runs_that_store_the_same_calls_do_not_wait_for_each_other(caplog: pytest.LogCaptureFixture) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    with transaction.atomic():  # of another run
        ModelCall.objects.bulk_create([model_call("b")])
        batch = [model_call("c"), model_call("b")]
        writer = threading.Thread(target=retry_if_disconnected, args=[in_own_connection, storage._store, batch, False])
        writer.start()
        waits = "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"
        with database_server() as admin:
            wait_until(lambda: admin.execute(waits, [connection.settings_dict["NAME"]]).fetchone() is not None)
        ModelCall.objects.bulk_create([model_call("c")], ignore_conflicts=True)
    writer.join()
    assert sorted(ModelCall.objects.values_list("key", flat=True)) == ["b", "c"]
    assert not caplog.records


def in_own_connection(store: Any, batch: list[ModelCall], replaces: bool) -> None:
    """Store *batch* in a transaction, and close the connection of the thread."""
    try:
        with transaction.atomic():
            store(batch, replaces)
    finally:
        connection.close()


def test_statement_is_repeated_after_a_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_threads, "_RECONNECT_EVERY_S", 0.0)
    causes = [psycopg.errors.DeadlockDetected("deadlock detected")]

    def store() -> str:
        if causes:
            raise OperationalError("deadlock detected") from causes.pop()
        return "stored"

    assert retry_if_disconnected(store) == "stored"
