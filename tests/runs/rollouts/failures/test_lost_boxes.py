"""Episodes over REST whose box is lost, and the snapshots that they leave."""

import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.core.management import call_command
from django.utils import timezone
from rest_framework.test import APIClient

from llmeval_site.accounts.tokens import create_token
from llmeval_site.tasks import close_workspaces
from runs.models import EpisodeSession
from runs.rollouts.snapshots import remove_unneeded_snapshots, rollout_folder
from sandbox.errors import SandboxUnavailable
from sandbox.workspaces import shared
from sandbox.workspaces.docker_engine import DockerWorkspaces
from tests.runs.workspaces import DONE, bash, import_journal, remove_box, snapshot_folders
from tests.sandbox.second_docker import second_docker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.docker]


@pytest.fixture
def api() -> APIClient:
    client = APIClient()
    key = create_token(user=User.objects.create_user("trainer"), scopes=["train"])[1]
    client.credentials(HTTP_AUTHORIZATION=f"Token {key}")
    return client


def begin(api: APIClient) -> str:
    return str(api.post("/api/v1/episodes/", {"environment": "journal"}, format="json").json()["id"])


def step(api: APIClient, episode: str, turn: int, message: dict[str, Any]) -> Any:
    return api.post(f"/api/v1/episodes/{episode}/step", {"message": message, "turn": turn}, format="json")


def world(episode: str) -> Any:
    return EpisodeSession.objects.get(pk=episode).state["harness"]["world"]


def text_of(answer: Any) -> str:
    return str(answer.json()["observation"]["messages"][0]["content"])


@pytest.mark.parametrize("turns", [0, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_episode_continues_after_its_container_was_removed(api: APIClient, tmp_path: Path, turns: int) -> None:
    import_journal(tmp_path, **({"snapshot_turns": turns} if turns else {}))
    episode = begin(api)
    for turn, line in enumerate(("one", "two", "three")):
        assert step(api, episode, turn, bash(f"echo {line} >> log")).status_code == 200
    assert [rollout_folder(EpisodeSession.objects.get().pk)] * bool(turns) == list(snapshot_folders())
    remove_box(world(episode)["box"]["id"])
    answer = step(api, episode, 3, bash("cat log"))
    assert text_of(answer).startswith("one\ntwo\nthree\n")
    assert f"; {1 if turns else 3} later call" in text_of(answer)
    assert text_of(step(api, episode, 3, bash("cat log"))) == text_of(answer)  # repeated, not executed again
    session = EpisodeSession.objects.get(pk=episode)
    assert (session.revision, session.state["turns"]) == (4, 4)
    remove_box(world(episode)["box"]["id"])
    end = step(api, episode, 4, DONE).json()
    assert (end["done"], end["reward"], len(session.state["messages"])) == (True, 1.0, 9)
    assert list(snapshot_folders()) == []


def test_step_fails_with_the_reason_if_no_other_box_can_be_opened(
    api: APIClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_journal(tmp_path)
    episode = begin(api)
    remove_box(world(episode)["box"]["id"])

    def refuse(*_: object) -> None:
        raise SandboxUnavailable("The image is not on this Docker engine.")

    with monkeypatch.context() as patch:
        patch.setattr(DockerWorkspaces, "open", refuse)
        for message in (bash("true"), DONE):
            answer = step(api, episode, 0, message)
            assert (answer.status_code, "is not on this Docker" in str(answer.json())) == (503, True)
    assert EpisodeSession.objects.get(pk=episode).revision == 0
    assert step(api, episode, 0, bash("true")).status_code == 200
    api.delete(f"/api/v1/episodes/{episode}/")


def test_idle_episode_is_stored_by_the_sweep_and_its_snapshot_removed_when_it_expires(
    api: APIClient, tmp_path: Path, settings: Any
) -> None:
    import_journal(tmp_path, snapshot_turns=10)
    episode = begin(api)
    step(api, episode, 0, bash("echo one > log"))
    close_workspaces()
    assert list(snapshot_folders()) == []
    idle_since = timezone.now() + timedelta(seconds=settings.EPISODE_IDLE_SECONDS - 61)
    EpisodeSession.objects.update(expires_at=idle_since)
    close_workspaces()
    assert world(episode)["snapshot"]["turns"] == 1
    assert EpisodeSession.objects.get().revision == 1
    remove_box(world(episode)["box"]["id"])
    answer = step(api, episode, 1, bash("cat log"))
    assert text_of(answer).startswith("one\n")
    assert "with its files after turn 1]" in text_of(answer)
    EpisodeSession.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    close_workspaces()
    assert list(snapshot_folders()) == []


@pytest.mark.exhaustive
def test_twenty_episodes_leave_no_file_however_they_end(api: APIClient, tmp_path: Path) -> None:
    import_journal(tmp_path, snapshot_turns=1)
    episodes = [begin(api) for _ in range(20)]
    for episode in episodes:
        step(api, episode, 0, bash("echo one > log"))
        step(api, episode, 1, bash("echo two >> log"))
    assert len(list(snapshot_folders())) == 20
    for episode in episodes[:7]:
        assert step(api, episode, 2, DONE).json()["done"]
    for episode in episodes[7:14]:
        assert api.delete(f"/api/v1/episodes/{episode}/").status_code == 204
    assert len(list(snapshot_folders())) == 6
    EpisodeSession.objects.filter(done=False).update(expires_at=timezone.now() - timedelta(seconds=1))
    close_workspaces()
    assert list(snapshot_folders()) == []


def test_snapshots_without_an_episode_are_removed_by_the_sweep_and_by_prune(settings: Any) -> None:
    def leave() -> None:
        for name in ("runs/1-2-3/a", "rollouts/0c9b6a5e-6a52-4bb0-9d2e-000000000000/b"):
            storages["snapshots"].save(name, ContentFile(b"left"))

    leave()
    assert remove_unneeded_snapshots() == 2
    leave()
    call_command("prune", "--rollouts", "--dry-run")
    assert len(list(snapshot_folders())) == 2
    call_command("prune", "--rollouts")
    assert list(snapshot_folders()) == []


@pytest.mark.exhaustive
def test_episodes_are_spread_over_hosts_and_continue_when_one_stops(
    api: APIClient, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with second_docker(Path(tempfile.mkdtemp(prefix="llmeval-docker-", dir="/tmp"))) as second:
        settings.WORKSPACE_HOSTS = ["unix:///var/run/docker.sock", second.address]
        monkeypatch.setattr(shared, "_engine", None)
        import_journal(tmp_path)
        episodes = [begin(api) for _ in range(2)]
        assert len({world(episode)["box"]["host"] for episode in episodes}) == 2
        for turn, line in enumerate(("one", "two", "three")):
            for episode in episodes:
                assert step(api, episode, turn, bash(f"echo {line} >> log")).status_code == 200
        second.stop()
        for episode in episodes:
            assert text_of(step(api, episode, 3, bash("cat log"))).startswith("one\ntwo\nthree")
            assert step(api, episode, 4, DONE).json()["reward"] == 1.0
