"""Episodes over REST on two hosts that LLMEVAL_WORKSPACE_HOSTS names."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from llmeval_site.accounts.tokens import create_token
from runs.models import EpisodeSession
from sandbox.workspaces import shared
from tests.runs.workspaces import DONE, bash, import_journal
from tests.sandbox.second_docker import second_docker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.docker, pytest.mark.exhaustive]


def test_episodes_are_spread_over_the_hosts_and_continue_when_one_stops(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = APIClient()
    key = create_token(user=User.objects.create_user("trainer"), scopes=["train"])[1]
    api.credentials(HTTP_AUTHORIZATION=f"Token {key}")

    def step(episode: str, turn: int, message: dict[str, Any]) -> Any:
        answer = api.post(f"/api/v1/episodes/{episode}/step", {"message": message, "turn": turn}, format="json")
        assert answer.status_code == 200, answer.content
        return answer.json()

    with second_docker(Path(tempfile.mkdtemp(prefix="llmeval-docker-", dir="/tmp"))) as second:
        settings.WORKSPACE_HOSTS = ["unix:///var/run/docker.sock", second.address]
        monkeypatch.setattr(shared, "_engine", None)
        import_journal(tmp_path)
        started = [api.post("/api/v1/episodes/", {"environment": "journal"}, format="json") for _ in range(2)]
        episodes = [answer.json()["id"] for answer in started]
        worlds = [EpisodeSession.objects.get(pk=pk).state["harness"]["world"] for pk in episodes]
        assert len({world["box"]["host"] for world in worlds}) == 2
        for turn, line in enumerate(("one", "two", "three")):
            for episode in episodes:
                step(episode, turn, bash(f"echo {line} >> log"))
        second.stop()
        for episode in episodes:
            lines = step(episode, 3, bash("cat log"))["observation"]["messages"][0]["content"]
            assert lines.startswith("one\ntwo\nthree")
            assert step(episode, 4, DONE)["reward"] == 1.0
        monkeypatch.setattr(shared, "_engine", None)  # the next test uses one engine again
