"""Large runs divided into shards: several workers, or several local processes of one command, execute one run."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from hub.common.leases import has_ended, new_owner
from runs.execution.runner import execute_run
from runs.execution.session.context import ExecutionOptions
from runs.execution.shards import divide_run, held_by_others, release_shards, take_any_shard, take_shard
from runs.limits.budget import Part, SharedBudget, grant_part, return_rest, start_budget
from runs.models import Response, Run, RunModel, Score, Shard
from runs.services import cancel_run, config_of, create_run, resume_run
from tests.endpoint import Answer, completion, endpoint
from tests.listeners import SilentListener
from tests.processes import send_task, start_eval, wait_until, worker
from tests.runs.capitals import MANIFEST, config_text, load
from tests.runs.config.resolution import find_environments
from tests.services import empty_redis_url

pytestmark = pytest.mark.django_db(transaction=True)

CASES = 120
MODELS = [("one", 1.0), ("two", 2.0)]
ENVIRONMENT = {"LLMEVAL_SHARD_RESPONSES": "10"}


@pytest.fixture
def numbers(folder: Path) -> Path:
    """An environment with many cases, in the folder of configs."""
    bundle = folder / "numbers"
    bundle.mkdir()
    manifest = MANIFEST.replace("slug: capitals", "slug: numbers").replace(
        "Capital of {{ country }}?", "{{ question }}"
    )
    (bundle / "environment.yaml").write_text(manifest)
    rows = [{"id": f"n{i}", "question": f"Repeat {i}.", "capital": str(i)} for i in range(CASES)]
    (bundle / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def repeat_number(request: dict[str, Any], _: int = 0) -> Answer:
    """Answer after 20 ms; every seventh answer is wrong."""
    time.sleep(0.02)
    number = int(request["messages"][-1]["content"].split()[1].rstrip("."))
    return completion(str(number if number % 7 else -1))


def numbers_config(url: str, **changes: Any) -> str:
    models = [
        {"name": name, "provider": "openai", "model": name, "base_url": url, "price": {"input": price, "output": price}}
        for name, price in MODELS
    ]
    defaults = {"environments": [{"path": "numbers"}], "attempts": 2}
    return config_text(url, **{**defaults, "models": models, **changes})


def create_numbers_run(folder: Path, url: str, **changes: Any) -> Run:
    config = load(folder, numbers_config(url, **changes))
    return create_run(config=config, environments=find_environments(config))


@contextmanager
def workers(folder: Path, broker: str, number: int, **more: str) -> Iterator[list[Any]]:
    with ExitStack() as stack:
        yield [stack.enter_context(worker(broker, **{**ENVIRONMENT, **more})) for _ in range(number)]


def stored_rows() -> list[tuple[object, ...]]:
    """Return what is stored of each response, without times and ids."""
    rows = Response.objects.order_by("run_model__label", "case__position", "attempt")
    return list(
        rows.values_list(
            "run_model__label", "case__external_id", "attempt", "seed", "status", "score", "text", "cost_usd"
        )
    )


def assert_complete(run: Run) -> None:
    run.refresh_from_db()
    assert run.status == "completed", run.message
    assert Response.objects.filter(run_environment__run=run).count() == CASES * len(MODELS) * run.attempts
    assert Score.objects.filter(response__run_environment__run=run).count() == CASES * len(MODELS) * run.attempts
    assert not run.shards.exists()
    assert run.lease_owner == ""


def holders(run: Run) -> set[str]:
    return set(run.shards.exclude(lease_owner="").values_list("lease_owner", flat=True))


@pytest.mark.exhaustive
def test_three_workers_execute_one_run_together(numbers: Path) -> None:
    broker = empty_redis_url()
    with endpoint(repeat_number) as server:
        run = create_numbers_run(numbers, server.url)
        seen: set[str] = set()
        with workers(numbers, broker, 3):
            wait_until(lambda: _workers_answer(broker, 3))
            send_task(broker)

            def ended() -> bool:
                seen.update(holders(run))
                return Run.objects.get().status == "completed"

            wait_until(ended)
    assert_complete(run)
    assert len({holder.split(":")[1] for holder in seen}) == 3
    assert len(server.requests) == CASES * len(MODELS) * 2
    assert server.peak <= 4 * len(MODELS)
    counts = Counter(Response.objects.values_list("status", flat=True))
    assert counts == {"failed": 18 * 4, "passed": (CASES - 18) * 4}
    known = sum(cost for cost in Response.objects.values_list("cost_usd", flat=True))
    assert run.cost_usd == pytest.approx(known)


def _workers_answer(broker: str, number: int) -> bool:
    from celery import Celery

    with Celery(broker=broker) as app:
        return len(app.control.inspect(timeout=0.5).ping() or {}) == number


@pytest.mark.exhaustive
def test_shards_of_a_killed_worker_are_executed_by_another(numbers: Path) -> None:
    broker = empty_redis_url()
    with endpoint(repeat_number) as server:
        run = create_numbers_run(numbers, server.url, attempts=4)
        with workers(numbers, broker, 2):
            send_task(broker)
            send_task(broker)
            wait_until(lambda: len(holders(run)) == 2 and Response.objects.count() > 50)
            run.refresh_from_db()
            killed = next(iter(holders(run) - {run.lease_owner}))
            stored = Response.objects.count()
            os.kill(int(killed.split(":")[1]), signal.SIGKILL)
            not_stored = len(server.requests) - stored  # of both workers; the killed one loses its share
            wait_until(lambda: Run.objects.get().status == "completed")
    assert_complete(run)
    in_flight = 2 * 4 * len(MODELS)
    assert len(server.requests) <= CASES * len(MODELS) * 4 + not_stored + in_flight


@pytest.mark.exhaustive
def test_another_worker_leads_after_the_leading_one_was_killed(numbers: Path) -> None:
    broker = empty_redis_url()
    with endpoint(repeat_number) as server:
        run = create_numbers_run(numbers, server.url, attempts=4)
        with workers(numbers, broker, 2):
            send_task(broker)
            send_task(broker)
            wait_until(lambda: len(holders(run)) == 2 and Response.objects.count() > 50)
            run.refresh_from_db()
            leading = run.lease_owner
            os.kill(int(leading.split(":")[1]), signal.SIGKILL)
            wait_until(lambda: has_ended(leading))
            wait_until(lambda: Run.objects.get().status == "completed")
    assert_complete(run)


@pytest.mark.exhaustive
def test_cancel_stops_all_workers_within_seconds(numbers: Path) -> None:
    broker = empty_redis_url()
    with endpoint(repeat_number) as server:
        run = create_numbers_run(numbers, server.url, attempts=20)
        with workers(numbers, broker, 2):
            send_task(broker)
            send_task(broker)
            wait_until(lambda: len(holders(run)) == 2 and Response.objects.count() > 50)
            cancel_run(run=run)
            wait_until(lambda: Run.objects.get().status == "cancelled")
            requests = len(server.requests)
            time.sleep(1)
            assert len(server.requests) == requests
    assert not run.shards.exists()


@pytest.mark.exhaustive
def test_workers_together_keep_the_budget(numbers: Path) -> None:
    broker = empty_redis_url()
    with endpoint(repeat_number) as server:
        run = create_numbers_run(numbers, server.url, attempts=20, limits={"budget_usd": 0.01, "retries": 0})
        with workers(numbers, broker, 2):
            send_task(broker)
            send_task(broker)
            wait_until(lambda: Run.objects.get().status == "stopped")
    run.refresh_from_db()
    costs = list(Response.objects.values_list("cost_usd", flat=True))
    in_flight = 2 * 4 * len(MODELS)
    assert sum(costs) <= 0.01 + in_flight * max(costs)
    assert sum(costs) >= 0.009
    assert "of the budget of $0.0100 is spent" in run.message


def test_budget_that_a_killed_worker_was_granted_is_granted_again(numbers: Path, settings: Any) -> None:
    settings.SHARD_RESPONSES = 30

    def script(request: dict[str, Any], number: int) -> Answer:
        if number == 20:  # as if another worker had been granted half of the budget, and killed
            Run.objects.update(budget_granted=F("budget_granted") + 0.002)
            connection.close()
        return repeat_number(request)

    with endpoint(script) as server:
        run = create_numbers_run(numbers, server.url, limits={"budget_usd": 0.004, "retries": 0})
        options = ExecutionOptions(workers_help=True)
        execute_run(run=run, config=config_of(run), listener=SilentListener(), options=options)
    costs = list(Response.objects.values_list("cost_usd", flat=True))
    assert run.status == "stopped"
    assert 0.96 * 0.004 <= sum(costs) <= 0.004 + 8 * max(costs)
    assert run.cost_usd == pytest.approx(sum(costs))


def test_raised_budget_is_available_to_all_workers(numbers: Path, settings: Any) -> None:
    settings.SHARD_RESPONSES = 30
    with endpoint(repeat_number) as server:
        run = create_numbers_run(numbers, server.url, limits={"budget_usd": 0.004, "retries": 0})
        options = ExecutionOptions(workers_help=True)
        execute_run(run=run, config=config_of(run), listener=SilentListener(), options=options)
        assert run.status == "stopped"
        # As if a reply without token counts had stopped it: then the whole budget counts as granted.
        Run.objects.update(budget_granted=1.0)
        run = Run.objects.get()
        resume_run(run=run, budget_usd=1.0)
        assert Run.objects.get().budget_granted == pytest.approx(run.cost_usd)
        execute_run(run=run, config=config_of(run), listener=SilentListener(), options=options)
    assert run.status == "completed"


def test_leading_process_that_lost_a_shard_returns_the_run_to_the_queue(numbers: Path, settings: Any) -> None:
    settings.SHARD_RESPONSES = 30

    def script(request: dict[str, Any], number: int) -> Answer:
        if number == 20:  # as if this process had been paused, and another worker had taken its shards
            Shard.objects.exclude(lease_owner="").update(lease_owner="elsewhere:1:a")
            connection.close()
        return repeat_number(request)

    with endpoint(script) as server:
        run = create_numbers_run(numbers, server.url)
        options = ExecutionOptions(workers_help=True)
        execute_run(run=run, config=config_of(run), listener=SilentListener(), options=options)
        run.refresh_from_db()
        assert (run.status, run.lease_owner) == ("queued", "")
        assert "was stopped for longer than its lease on shards lives" in run.message
        Shard.objects.update(lease_owner="", lease_until=None)
        execute_run(run=run, config=config_of(run), listener=SilentListener(), options=options)
    assert_complete(run)


@pytest.mark.exhaustive
def test_a_small_run_does_not_wait_for_a_large_one(numbers: Path) -> None:
    broker = empty_redis_url()
    with endpoint(repeat_number) as server:
        large = create_numbers_run(numbers, server.url, attempts=30)
        with workers(numbers, broker, 2, LLMEVAL_RUN_SLICE_SECONDS="1"):
            send_task(broker)
            send_task(broker)
            wait_until(lambda: len(holders(large)) == 2 and Response.objects.count() > 50)
            small = create_numbers_run(numbers, server.url, environments=[{"path": "numbers", "limit": 5}])
            wait_until(lambda: Run.objects.get(pk=small.pk).status == "completed")
            large.refresh_from_db()
            assert large.status in ("running", "queued")
            cancel_run(run=large)
            wait_until(lambda: Run.objects.get(pk=large.pk).status == "cancelled")


@pytest.mark.exhaustive
def test_local_processes_store_the_same_rows_as_one(numbers: Path) -> None:
    with endpoint(repeat_number) as server:
        (numbers / "run.yaml").write_text(numbers_config(server.url))
        rows = []
        for processes in ("1", "2"):
            words = ["--config", str(numbers / "run.yaml"), "--no-cache", "--json", "--processes", processes]
            process = start_eval(numbers, *words, extra=ENVIRONMENT)
            output, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
            assert json.loads(output)["results"][0]["cases"] == CASES
            assert_complete(Run.objects.get())
            rows.append(stored_rows())
            Run.objects.all().delete()
    assert rows[0] == rows[1]
    assert len(server.requests) == 2 * CASES * len(MODELS) * 2
    assert server.peak <= 4 * len(MODELS)


@pytest.mark.exhaustive
def test_interrupted_local_processes_are_resumed(numbers: Path) -> None:
    with endpoint(repeat_number) as server:
        (numbers / "run.yaml").write_text(numbers_config(server.url, attempts=6))
        words = ["--config", str(numbers / "run.yaml"), "--processes", "2"]
        process = start_eval(numbers, *words, extra=ENVIRONMENT)
        wait_until(lambda: Run.objects.exists() and len(holders(Run.objects.get())) == 2)
        wait_until(lambda: Response.objects.count() > 50)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130, errors
        run = Run.objects.get()
        assert run.status == "interrupted"
        stored = set(Response.objects.values_list("pk", flat=True))
        assert 50 < len(stored) < CASES * len(MODELS) * 6
        resumed = start_eval(numbers, "--resume", str(run.pk), "--processes", "2", extra=ENVIRONMENT)
        _, errors = resumed.communicate(timeout=120)
        assert resumed.returncode == 0, errors
    assert_complete(run)
    assert stored <= set(Response.objects.values_list("pk", flat=True))


@pytest.mark.exhaustive
def test_local_processes_of_a_killed_command_finish_their_calls(numbers: Path) -> None:
    with endpoint(repeat_number) as server:
        (numbers / "run.yaml").write_text(numbers_config(server.url, attempts=20))
        process = start_eval(numbers, "--config", str(numbers / "run.yaml"), "--processes", "2", extra=ENVIRONMENT)
        wait_until(lambda: Run.objects.exists() and len(holders(Run.objects.get())) == 2)
        started = Response.objects.count()
        wait_until(lambda: Response.objects.count() > started + 200)  # both have calls in flight
        process.kill()
        _, errors = process.communicate(timeout=60)  # until the local process has ended, too
    assert "Traceback" not in errors
    held = Shard.objects.filter(done=False).exclude(lease_owner="").values_list("lease_owner", flat=True)
    assert {owner.split(":")[1] for owner in held} <= {str(process.pid)}


@pytest.fixture
def divided(numbers: Path, settings: Any) -> Run:
    settings.SHARD_RESPONSES = 30
    run = create_numbers_run(numbers, "http://x/v1")
    Run.objects.update(status="running")
    run.refresh_from_db()
    assert divide_run(run, reserved_for="", resumed=False)
    return run


def test_blocks_cover_each_selected_case_once(numbers: Path, settings: Any) -> None:
    settings.SHARD_RESPONSES = 10
    chosen = [f"n{i}" for i in range(0, CASES, 3)]
    run = create_numbers_run(numbers, "http://x/v1", environments=[{"path": "numbers", "cases": chosen}])
    assert divide_run(run, reserved_for="", resumed=False)
    for model in run.models.all():
        blocks = list(run.shards.filter(run_model=model).values_list("first", "last"))
        covered = [i for first, last in blocks for i in range(first, last + 1) if i % 3 == 0]
        assert covered == list(range(0, CASES, 3))
        assert all(len([i for i in range(first, last + 1) if i % 3 == 0]) <= 5 for first, last in blocks)


def test_small_run_is_not_divided(numbers: Path, settings: Any) -> None:
    settings.SHARD_RESPONSES = CASES * len(MODELS) * 2 // 2 + 1
    assert not divide_run(create_numbers_run(numbers, "http://x/v1"), reserved_for="", resumed=False)
    assert not Shard.objects.exists()


def test_shard_has_one_owner_and_is_fresh_once(divided: Run) -> None:
    model = divided.models.get(label="one").pk
    count = divided.shards.filter(run_model=model).count()
    first, second = new_owner(), "elsewhere:1:b"
    taken = [take_shard(divided.pk, model, owner=first if i % 2 else second, reserved_for="") for i in range(count)]
    assert len({shard.pk for shard in taken if shard}) == count
    assert all(shard.fresh for shard in taken if shard)
    assert take_shard(divided.pk, model, owner=first, reserved_for="") is None
    assert held_by_others(divided.pk, first)
    release_shards(divided.pk, second)
    assert not held_by_others(divided.pk, first)
    again = take_shard(divided.pk, model, owner=first, reserved_for="")
    assert again is not None and not again.fresh


@pytest.mark.parametrize("stopped", ["", "401: bad key"])
def test_resume_of_a_killed_run_repeats_finished_shards_if_a_role_model_was_stopped(divided: Run, stopped: str) -> None:
    owner = new_owner()
    RunModel.objects.create(run=divided, label="grader", role="rubric", position=0, spec={}, stopped=stopped)
    Run.objects.update(lease_owner=owner, lease_until=timezone.now() + timedelta(minutes=1))
    divided.shards.update(done=True, lease_owner="elsewhere:1:a", lease_until=timezone.now() + timedelta(minutes=1))
    assert resume_run(run=divided, owner=owner)
    assert divided.shards.filter(done=bool(stopped)).count() == 0
    shard = take_shard(divided.pk, divided.models.get(label="one").pk, owner=owner, reserved_for="")
    assert (shard is not None) == bool(stopped)


def test_worker_takes_shards_of_running_runs_only(divided: Run) -> None:
    owner = new_owner()
    assert take_any_shard(owner=owner, without=[divided.pk]) is None
    divided.shards.update(reserved_for="command:1:a")
    assert take_any_shard(owner=owner) is None
    divided.shards.update(reserved_for="")
    Run.objects.update(cancel_requested=True)
    assert take_any_shard(owner=owner) is None
    Run.objects.update(cancel_requested=False)
    shard = take_any_shard(owner=owner)
    assert shard is not None and shard.lease_until is not None and shard.lease_until > timezone.now()


def test_parts_of_the_budget_never_exceed_it(divided: Run) -> None:
    start_budget(divided.pk, 1.0)
    parts = [grant_part(divided.pk, 10.0, 0.0) for _ in range(200)]
    assert parts[-1] == 0.0
    assert sum(parts) == pytest.approx(9.0)
    assert sum(part > 0 for part in parts) < 40

    async def request(beyond: float) -> Part:
        return Part(0.0)

    budget = SharedBudget(limit=10.0, request=request, own=1.0, granted=3.0)
    return_rest(divided.pk, budget)
    assert sum(grant_part(divided.pk, 10.0, 0.0) for _ in range(200)) == pytest.approx(2.0)
    assert grant_part(divided.pk, 10.0, 1.0) == 0.0
