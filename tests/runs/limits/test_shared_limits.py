"""Limits across processes and runs: real commands, a real endpoint that counts, and a real Redis."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis
from django.db import connections

from runs.execution.runner import execute_run
from runs.limits import limiter as limiter_module
from runs.limits.limiter import EndpointLimiter
from runs.limits.redis_shares import RedisShares
from runs.limits.shares import HOLDER_LIVES_S, Grant, LocalShares, Report, SharesUnavailable
from runs.models import Run
from runs.services import config_of, create_run
from tests.endpoint import Answer, endpoint
from tests.listeners import SilentListener
from tests.processes import start_eval, wait_until
from tests.runs.capitals import CAPITALS, answer_capital, config_text, load, start
from tests.runs.config.resolution import find_environments
from tests.services import empty_redis_url

LIMIT = 5


def slow_capital(request: dict[str, object], number: int) -> Answer:
    time.sleep(0.05)
    return answer_capital(request)


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_two_processes_together_keep_to_the_limit(folder: Path) -> None:
    with endpoint(slow_capital) as server:
        (folder / "run.yaml").write_text(config_text(server.url, concurrency=LIMIT, attempts=20))
        environment = {"CELERY_BROKER_URL": empty_redis_url()}
        words = ["--config", str(folder / "run.yaml"), "--no-cache"]
        processes = [start_eval(folder, *words, extra=environment) for _ in range(2)]
        for process in processes:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
    assert len(server.requests) == 2 * 20 * len(CAPITALS)
    assert server.peak == LIMIT


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_slots_of_a_killed_process_return(folder: Path) -> None:
    continue_replies = threading.Event()

    def script(request: dict[str, object], number: int) -> Answer:
        if number < LIMIT:
            continue_replies.wait(60)
        return answer_capital(request)

    with endpoint(script) as server:
        (folder / "run.yaml").write_text(config_text(server.url, concurrency=LIMIT))
        environment = {"CELERY_BROKER_URL": empty_redis_url()}
        killed = start_eval(folder, "--config", str(folder / "run.yaml"), extra=environment)
        wait_until(lambda: len(server.requests) == LIMIT)
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=30)
        continue_replies.set()
        other = start_eval(folder, "--config", str(folder / "run.yaml"), "--no-cache", extra=environment)
        _, errors = other.communicate(timeout=120)
    assert other.returncode == 0, errors
    assert server.peak == LIMIT


@pytest.mark.django_db(transaction=True)
def test_two_runs_in_one_process_together_keep_to_the_limit(folder: Path) -> None:
    with endpoint(slow_capital) as server:
        config = load(folder, config_text(server.url, concurrency=LIMIT, attempts=10))
        runs = [create_run(config=config, environments=find_environments(config)) for _ in range(2)]

        def execute(run: Run) -> None:
            try:
                execute_run(run=run, config=config_of(run), listener=SilentListener())
            finally:
                connections.close_all()

        threads = [threading.Thread(target=execute, args=[run]) for run in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert {run.status for run in Run.objects.all()} == {"completed"}
    assert server.peak == LIMIT


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_fewer_requests_are_in_flight_after_the_endpoint_rejects_some(folder: Path) -> None:
    """The endpoint accepts four requests at a time. With 12 at a time, most would be rejected again and again."""
    in_flight, rejected, lock = 0, 0, threading.Lock()

    def script(request: dict[str, object], number: int) -> Answer:
        nonlocal in_flight, rejected
        with lock:
            in_flight += 1
            too_many = in_flight > 4
            rejected += too_many
        time.sleep(0.02)
        with lock:
            in_flight -= 1
        return Answer({"error": "slow down"}, 429, {"Retry-After": "1"}) if too_many else answer_capital(request)

    with endpoint(script) as server:
        run, _ = start(folder, config_text(server.url, concurrency=12, attempts=20, limits={"retries": 8}))
    assert run.status == "completed"
    assert set(run.environments.get().responses.values_list("status", flat=True)) == {"passed"}
    assert rejected < 60


@contextmanager
def redis_server(folder: Path) -> Iterator[tuple[str, Callable[[], None], Callable[[], None]]]:
    """Run a Redis of its own; yield its address, and functions that kill it and start it again, empty."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"redis://127.0.0.1:{port}/0"
    running: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        words = ["redis-server", "--port", str(port), "--save", "", "--dir", str(folder)]
        running.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
        client = redis.Redis.from_url(url)

        def answers() -> bool:
            with contextlib.suppress(redis.ConnectionError):
                return bool(client.ping())
            return False

        wait_until(answers)

    def kill() -> None:
        process = running.pop()
        process.kill()
        process.wait()

    try:
        begin()
        yield url, kill, begin
    finally:
        for process in running:
            process.kill()
            process.wait()


@pytest.mark.exhaustive
@pytest.mark.redis
@pytest.mark.django_db(transaction=True)
def test_loss_of_redis_loses_no_response(folder: Path) -> None:
    with redis_server(folder) as (url, kill, begin):

        def script(request: dict[str, object], number: int) -> Answer:
            if number == 10:
                kill()
            if number == 60:
                begin()
            return slow_capital(request, number)

        with endpoint(script) as server:
            (folder / "run.yaml").write_text(config_text(server.url, concurrency=LIMIT, attempts=20))
            process = start_eval(folder, "--config", str(folder / "run.yaml"), extra={"CELERY_BROKER_URL": url})
            _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert errors.count("Redis does not answer") == 1
    assert len(server.requests) == 20 * len(CAPITALS)
    assert server.peak == LIMIT


@pytest.mark.parametrize("kind", ["local", "redis"])
async def test_holders_share_slots_and_return_them_when_they_close(kind: str) -> None:
    url = empty_redis_url() if kind == "redis" else ""
    local = LocalShares(time.monotonic)
    key = f"test-{os.getpid()}"
    limiters = [EndpointLimiter(RedisShares(url) if url else local, key, LIMIT) for _ in range(3)]
    in_flight, peak, done = 0, 0, [0, 0, 0]

    async def send(number: int) -> None:
        nonlocal in_flight, peak
        for _ in range(10):
            async with limiters[number].request():
                in_flight += 1
                peak = max(peak, in_flight)
                await asyncio.sleep(0.005)
                in_flight -= 1
            done[number] += 1

    await asyncio.wait_for(asyncio.gather(*(send(number) for number in range(3) for _ in range(8))), 60)
    assert (peak, done) == (LIMIT, [80, 80, 80])
    await asyncio.gather(*(limiter.aclose() for limiter in limiters[:2]))
    last = limiters[2]
    async with asyncio.timeout(30), contextlib.AsyncExitStack() as stack:
        for _ in range(LIMIT):
            await stack.enter_async_context(last.request())
    await last.aclose()


async def test_cancelled_request_returns_its_place() -> None:
    limiter = EndpointLimiter(LocalShares(time.monotonic), "test", 1)
    async with limiter.request():
        waiting = asyncio.create_task(limiter.request().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(30), limiter.request():
        pass
    await limiter.aclose()


async def test_requests_per_minute_delay_requests() -> None:
    limiter = EndpointLimiter(LocalShares(time.monotonic), "test", 8, requests_per_minute=1200)
    started = time.monotonic()
    for _ in range(40):  # the first 20 may start at once, the others take a second
        async with limiter.request():
            pass
    assert time.monotonic() - started > 0.9
    await limiter.aclose()


@pytest.mark.django_db(transaction=True)
def test_retries_count_in_the_requests_per_minute(folder: Path) -> None:
    sent: list[float] = []

    def fail(request: dict[str, object], number: int) -> Answer:
        sent.append(time.monotonic())
        return Answer({"error": "down"}, 500, {"Retry-After": "0.01"})

    model = {"name": "small", "provider": "openai", "model": "m", "requests_per_minute": 600}
    with endpoint(fail) as server:
        models = [{**model, "base_url": server.url}]
        attempts = -(-10 // len(CAPITALS))
        start(folder, config_text(server.url, models=models, attempts=attempts, limits={"retries": 2}))
    assert len(sent) == 3 * attempts * len(CAPITALS) >= 30
    assert sent[29] - sent[0] > 1.8  # the first 10 may start at once, the others take two seconds


async def test_retry_waits_for_the_pause_that_another_response_asked_for() -> None:
    limiter = EndpointLimiter(LocalShares(time.monotonic), "test", 2)
    async with limiter.request():
        started = time.monotonic()
        limiter.observe(503, {"retry-after": "0.3"})
        cancelled = asyncio.create_task(limiter.wait_for_retry())
        await asyncio.sleep(0)
        cancelled.cancel()
        async with asyncio.timeout(30):
            await limiter.wait_for_retry()
        assert time.monotonic() - started >= 0.3
    await limiter.aclose()


async def test_retry_does_not_wait_behind_a_request_that_needs_a_slot() -> None:
    limiter = EndpointLimiter(LocalShares(time.monotonic), "test", 1, requests_per_minute=600)
    async with asyncio.timeout(30):
        async with limiter.request():
            waiting = asyncio.create_task(limiter.request().__aenter__())
            for _ in range(12):  # more than one second's worth
                await limiter.wait_for_retry()
            assert not waiting.done()
        await waiting
    await limiter.aclose()


async def test_request_that_lacks_a_permit_asks_for_one_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiter_module, "_RENEW_EVERY_S", 600.0)
    limiter = EndpointLimiter(LocalShares(time.monotonic), "test", 1, requests_per_minute=60_000)
    async with asyncio.timeout(30):  # one request at a time: none waits for the next regular report
        for _ in range(5):
            async with limiter.request():
                await asyncio.sleep(0)
    await limiter.aclose()


async def test_holder_that_was_stopped_for_long_waits_for_its_next_grant(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(limiter_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    shares = LocalShares(lambda: now[0])
    first, second = (EndpointLimiter(shares, "endpoint", 2) for _ in range(2))
    started = asyncio.Event()

    async def use_first() -> None:
        async with first.request():
            started.set()

    await use_first()
    started.clear()
    now[0] += HOLDER_LIVES_S + 1
    async with second.request(), second.request():
        using = asyncio.create_task(use_first())
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert not started.is_set()
    await using
    assert started.is_set()
    for holder in (first, second):
        await holder.aclose()


@pytest.mark.redis
async def test_new_holder_waits_while_a_restarted_redis_may_have_lost_the_slots_of_others(folder: Path) -> None:
    with redis_server(folder) as (url, _, _):
        shares = RedisShares(url)
        new = Report(holder="new", limit=LIMIT, held=0, wanted=LIMIT)
        old = Report(holder="old", limit=LIMIT, held=LIMIT, wanted=LIMIT)
        assert (await shares.renew("endpoint", new)).slots == 0
        assert (await shares.renew("endpoint", old)).slots > 0
        assert (await shares.renew("endpoint", new)).slots == 0
        await shares.aclose()


@pytest.mark.redis
async def test_new_holder_waits_if_redis_was_away_until_all_slots_lapsed(folder: Path) -> None:
    with redis_server(folder) as (url, _, _):
        lapsed = {"slots": LIMIT, "wanted": LIMIT, "limit": LIMIT, "until": time.time() - 1, "served": 0.0}
        with redis.Redis.from_url(url) as client:
            client.set("llmeval:limits:endpoint", json.dumps({"holders": {"old": lapsed}}))
        shares = RedisShares(url)
        new = Report(holder="new", limit=LIMIT, held=0, wanted=LIMIT)
        assert (await shares.renew("endpoint", new)).slots == 0
        await shares.aclose()


class LostShares:
    """Back end that answers until it is lost."""

    def __init__(self) -> None:
        self.lost = False
        self.back_end = LocalShares(time.monotonic)

    async def renew(self, key: str, report: Report) -> Grant:
        if self.lost:
            raise SharesUnavailable("lost")
        return await self.back_end.renew(key, report)

    async def aclose(self) -> None:
        pass


async def _is_granted(limiter: EndpointLimiter) -> bool:
    try:
        async with asyncio.timeout(0.3), limiter.request():
            return True
    except TimeoutError:
        return False


async def test_holder_without_a_share_waits_while_redis_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = LostShares()
    holder, new = EndpointLimiter(shares, "endpoint", 4), EndpointLimiter(shares, "endpoint", 4)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(4):
            await stack.enter_async_context(holder.request())
        shares.lost = True
        assert not await _is_granted(new)
        monkeypatch.setattr(limiter_module, "_WAIT_FOR_REDIS_S", 0.0)
        assert await _is_granted(new)
    assert await _is_granted(holder)
    for limiter in (holder, new):
        await limiter.aclose()


async def test_holder_gets_a_share_as_soon_as_redis_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiter_module, "_REDIS_AGAIN_S", 0.05)
    shares = LostShares()
    shares.lost = True
    limiter = EndpointLimiter(shares, "endpoint", 4)
    assert not await _is_granted(limiter)
    shares.lost = False
    async with asyncio.timeout(30), limiter.request():
        pass
    await limiter.aclose()


async def test_requests_that_wait_together_do_not_start_beyond_the_tokens_per_minute() -> None:
    limiter = EndpointLimiter(LocalShares(lambda: 0.0), "key", 16, tokens_per_minute=3000)
    started: list[int] = []

    async def send(number: int) -> None:
        async with limiter.request(estimated_tokens=100) as request:
            started.append(number)
            await asyncio.sleep(0.3)
            request.tokens = 100

    sent = [asyncio.create_task(send(number)) for number in range(10)]
    await asyncio.sleep(0.2)
    assert started == [0, 1, 2]  # five seconds' worth is 250 tokens
    sent[3].cancel()  # while it waits
    await asyncio.sleep(0.3)
    assert started == [0, 1, 2]  # the clock stands still, so nothing was refilled
    for task in sent:
        task.cancel()
    await asyncio.gather(*sent, return_exceptions=True)
    await limiter.aclose()
