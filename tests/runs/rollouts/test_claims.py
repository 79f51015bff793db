"""Claims of steps over HTTP: concurrent requests execute a step once, and a killed process blocks nobody."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import OperationalError
from django.utils import timezone

from hub.common import leases
from hub.environments.episodes import Episode, Step
from hub.models import Environment
from hub.protocols.messages import Message
from hub.services import import_bundle
from llmeval_site.accounts.tokens import create_token
from runs.models import EpisodeSession
from runs.rollouts import claims, steps
from sandbox.errors import SandboxUnavailable
from tests.processes import database_environment, wait_until
from tests.runs.rollouts.test_turns import Client, begin, say

pytestmark = pytest.mark.django_db(transaction=True)

_SLOW_STEP = """
import asyncio, sys, django
django.setup()
from runs.models import EpisodeSession
from runs.rollouts import steps
async def sleep(episode, message):
    await asyncio.sleep(120)
steps._step = sleep
steps.step_rollout(session=EpisodeSession.objects.get(), message={"role": "assistant", "content": "Lima"}, turn=0)
"""


@pytest.fixture
def http(live_server: Any, folder: Path) -> Client:
    import_bundle(bundle=folder / "capitals")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    _, key = create_token(user=User.objects.create_user("trainer"), scopes=["train"])
    return Client(f"{live_server.url}/api/v1/episodes/", {"Authorization": f"Token {key}"})


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make every step last half a second, and return the list of executed messages."""
    contents: list[str] = []

    async def slow(episode: Episode, message: Message) -> Step:
        contents.append(str(message["content"]))
        await asyncio.sleep(0.5)
        return await episode.step(message)

    monkeypatch.setattr(steps, "_step", slow)
    return contents


def test_step_repeated_while_executed_waits_and_executes_once(http: Client, executed: list[str]) -> None:
    episode = begin(http)
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(lambda _: http.post(f"{episode}/step", json=say("Lima", 0)), range(3)))
    assert [answer.status_code for answer in answers] == [200] * 3
    assert len({answer.text for answer in answers}) == 1
    assert executed == ["Lima"]
    assert EpisodeSession.objects.get().lease_owner == ""


def test_another_message_for_a_turn_in_progress_is_not_executed(http: Client, executed: list[str]) -> None:
    episode = begin(http)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(http.post, f"{episode}/step", say("Lima", 0))
        wait_until(lambda: executed == ["Lima"])
        second = http.post(f"{episode}/step", json=say("Cusco", 0))
        without_turn = http.post(f"{episode}/step", json={"message": {"role": "assistant", "content": "Cusco"}})
        assert first.result().status_code == 200
    assert (second.status_code, second.json()["code"]) == (409, "different_message")
    assert (without_turn.status_code, without_turn.json()["code"]) == (409, "ended")
    assert executed == ["Lima"]


@pytest.mark.parametrize("query", ["", "?wait=30"])
def test_step_repeated_after_the_episode_expired_during_it_returns_its_answer(
    http: Client, executed: list[str], query: str
) -> None:
    episode = begin(http)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(http.post, f"{episode}/step", say("Lima", 0))
        wait_until(lambda: executed == ["Lima"])
        EpisodeSession.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        second = http.post(f"{episode}/step{query}", json=say("Lima", 0))
    assert (second.status_code, second.json()) == (200, first.result().json())
    assert executed == ["Lima"]


def test_step_without_turn_does_not_wait(http: Client, executed: list[str]) -> None:
    episode = begin(http)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(http.post, f"{episode}/step", say("Lima", 0))
        wait_until(lambda: executed == ["Lima"])
        second = http.post(f"{episode}/step", json={"message": {"role": "assistant", "content": "Cusco"}})
        assert (second.status_code, second.json()["code"]) == (409, "conflict")
        assert first.result().status_code == 200


def test_waiting_is_bounded_and_lapsed_claim_is_taken_over(http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_WAIT_S", 0.2)
    episode = begin(http)
    until = timezone.now() + timedelta(minutes=1)
    EpisodeSession.objects.update(lease_owner="another-machine:1:0123456789abcdef", lease_until=until)
    answer = http.post(f"{episode}/step", json=say("Lima", 0))
    assert (answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) == (409, "in_progress", "2")
    EpisodeSession.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert http.post(f"{episode}/step", json=say("Lima", 0)).json()["reward"] == 1.0


def test_failed_step_releases_its_claim(http: Client) -> None:
    episode = begin(http)
    assert http.post(f"{episode}/step", json=say("Lima", 0) | {"message": {"role": "user"}}).status_code == 400
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "_step", _unavailable)
        assert http.post(f"{episode}/step", json=say("Lima", 0)).status_code == 503
    assert EpisodeSession.objects.get().lease_owner == ""
    assert http.post(f"{episode}/step", json=say("Lima", 0)).status_code == 200


def test_lease_of_long_step_is_renewed(http: Client, executed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LEASE", timedelta(seconds=0.3))
    monkeypatch.setattr(claims, "_RENEW_EVERY_S", 0.05)
    episode = begin(http)
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda _: http.post(f"{episode}/step", json=say("Lima", 0)), range(2)))
    assert [answer.status_code for answer in answers] == [200, 200]
    assert executed == ["Lima"]


def test_lease_is_renewed_after_an_error_of_the_database(http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    renew, calls = leases.renew, []

    def fails_once(*args: Any, **changes: object) -> None:
        calls.append(args)
        if len(calls) == 1:
            raise OperationalError("server closed the connection unexpectedly")
        renew(*args, **changes)

    begin(http)
    session = EpisodeSession.objects.get()
    monkeypatch.setattr(claims, "_RENEW_EVERY_S", 0.02)
    monkeypatch.setattr(leases, "renew", fails_once)
    with claims.claim_step(session, wait=False):
        until = EpisodeSession.objects.get().lease_until
        wait_until(lambda: EpisodeSession.objects.filter(lease_until__gt=until).exists())


def test_step_of_killed_process_can_be_repeated_at_once(http: Client) -> None:
    episode = begin(http)
    process = subprocess.Popen(
        [sys.executable, "-c", _SLOW_STEP],
        env={**database_environment(), "DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"]},
        cwd=settings.BASE_DIR,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: process.poll() is not None or EpisodeSession.objects.get().lease_owner != "")
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    lapses = EpisodeSession.objects.get().lease_until
    answer = http.post(f"{episode}/step", json=say("Lima", 0))
    assert (answer.status_code, answer.json()["reward"]) == (200, 1.0), json.dumps(answer.json())
    assert timezone.now() < lapses


async def _unavailable(episode: Episode, message: Message) -> Step:
    raise SandboxUnavailable("The sandbox does not answer.")
