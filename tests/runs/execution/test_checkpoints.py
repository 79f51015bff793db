"""Runs whose process is killed during an episode of a workspace: stored turns are continued."""

import signal
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from runs.models import EpisodeCheckpoint, Response, Run
from runs.retention import episode_checkpoints
from runs.services import create_run
from sandbox.workspaces import shared
from sandbox.workspaces.shared import get_workspaces
from tests.endpoint import Answer, completion, endpoint
from tests.processes import start_eval, wait_until
from tests.runs.capitals import config_text, execute, load, resume
from tests.runs.config.resolution import find_environments
from tests.runs.workspaces import bash, import_journal, remove_box, snapshot_folders
from tests.sandbox.workspaces.engines import make_engine

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.docker]
COMMANDS = ["echo one > log", "echo two >> log; cat /proc/sys/kernel/random/uuid", "echo three >> log"]


class Model:
    """Model that writes three lines, a turn for each, and stops before the turn *waits_at* until it is released."""

    def __init__(self, waits_at: int) -> None:
        self.waits_at = waits_at
        self.waiting = threading.Event()
        self.released = threading.Event()

    def __call__(self, request: dict[str, Any], _: int) -> Answer:
        turn = sum(message["role"] == "assistant" for message in request["messages"])
        if turn == self.waits_at and not self.released.is_set():
            self.waiting.set()
            self.released.wait(60)
        if turn >= len(COMMANDS):
            return completion("Done.")
        return completion(None, finish="tool_calls", tool_calls=bash(COMMANDS[turn])["tool_calls"])


def config(url: str, **changes: Any) -> str:
    return config_text(url, environments=["journal"], **changes)


@pytest.fixture
def native(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Use native boxes, and return the environment of processes that do so as well."""
    make_engine("native")
    settings.WORKSPACES = "native"
    settings.WORKSPACES_DIR = str(settings.BASE_DIR / "var" / "test-workspaces")
    monkeypatch.setattr(shared, "_engine", None)
    yield {"LLMEVAL_WORKSPACES": "native", "LLMEVAL_WORKSPACES_DIR": settings.WORKSPACES_DIR}
    get_workspaces().sweep()


@pytest.mark.parametrize(("turns", "diverged"), [(0, True), pytest.param(1, False, marks=pytest.mark.exhaustive)])
def test_run_continues_its_episodes_after_kill_9(tmp_path: Path, turns: int, diverged: bool) -> None:
    check_kill_9(tmp_path, turns, diverged, {})


@pytest.mark.exhaustive
def test_run_continues_its_episodes_in_native_boxes_after_kill_9(tmp_path: Path, native: dict[str, str]) -> None:
    check_kill_9(tmp_path, 1, False, native)


def check_kill_9(tmp_path: Path, turns: int, diverged: bool, extra: dict[str, str]) -> None:
    import_journal(tmp_path, **({"snapshot_turns": turns} if turns else {}))
    model = Model(waits_at=2)
    with endpoint(model) as server:
        (tmp_path / "run.yaml").write_text(config(server.url))
        process = start_eval(tmp_path, "--config", str(tmp_path / "run.yaml"), "--no-cache", extra=extra)
        try:
            assert model.waiting.wait(60), process.communicate()
            wait_until(lambda: EpisodeCheckpoint.objects.filter(state__turns=2).exists())
        finally:
            process.kill()
            process.communicate()
        model.released.set()
        before = EpisodeCheckpoint.objects.get()
        assert len(list(snapshot_folders())) == bool(turns)
        run = Run.objects.get()
        Run.objects.update(status="interrupted", lease_owner="", lease_until=None)
        run, _ = resume(run)
        asked = [len(request["messages"]) for request in server.requests]
    assert run.status == "completed"
    response = Response.objects.get()
    assert (response.status, response.turns, response.input_tokens) == ("passed", 4, 40), response.reason
    # Turns that were stored are neither asked for nor executed again: the third request is sent twice.
    assert asked == [1, 3, 5, 5, 7]
    assert response.messages[: len(before.state["messages"])] == before.state["messages"]
    note = response.messages[6]["content"].partition("[The box was lost")[2]
    assert note
    assert ("results that differ from those above: bash (turn 2, call 1)" in note) == diverged
    assert response.scores.get().detail["boxes_lost"][0]["from_turn"] == 2 * bool(turns)
    assert (EpisodeCheckpoint.objects.count(), list(snapshot_folders())) == (0, [])
    get_workspaces().sweep()


def test_run_that_is_interrupted_keeps_a_snapshot_of_its_episodes(tmp_path: Path) -> None:
    import_journal(tmp_path, snapshot_turns=10)
    model = Model(waits_at=2)
    with endpoint(model) as server:
        (tmp_path / "run.yaml").write_text(config(server.url))
        process = start_eval(tmp_path, "--config", str(tmp_path / "run.yaml"), "--no-cache")
        assert model.waiting.wait(60), process.communicate()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        model.released.set()
        assert EpisodeCheckpoint.objects.get().state["harness"]["world"]["snapshot"]["turns"] == 2
        resume(Run.objects.get())
    response = Response.objects.get()
    assert (response.status, response.turns) == ("passed", 4), response.reason
    assert "with its files after turn 2]" in response.messages[6]["content"]
    assert list(snapshot_folders()) == []


def test_run_goes_on_after_the_container_of_its_episode_was_removed(tmp_path: Path) -> None:
    import_journal(tmp_path)
    model = Model(waits_at=2)
    with endpoint(model) as server:
        loaded = load(tmp_path, config(server.url))
        run = create_run(config=loaded, environments=find_environments(loaded))

        def remove() -> None:
            model.waiting.wait(60)
            wait_until(lambda: EpisodeCheckpoint.objects.filter(state__turns=2).exists())
            remove_box(EpisodeCheckpoint.objects.get().state["harness"]["world"]["box"]["id"])
            model.released.set()

        removing = threading.Thread(target=remove)
        removing.start()
        execute(run, loaded)
        removing.join()
        assert len(server.requests) == 4
    response = Response.objects.get()
    assert (response.status, response.turns) == ("passed", 4), response.reason
    assert EpisodeCheckpoint.objects.count() == 0


@pytest.mark.exhaustive
def test_twenty_episodes_of_a_run_leave_no_file(tmp_path: Path) -> None:
    import_journal(tmp_path, cases=20, snapshot_turns=1)
    with endpoint(Model(waits_at=-1)) as server:
        loaded = load(tmp_path, config(server.url))
        execute(create_run(config=loaded, environments=find_environments(loaded)), loaded)
    assert list(Response.objects.values_list("status", flat=True)) == ["passed"] * 20
    assert (EpisodeCheckpoint.objects.count(), list(snapshot_folders())) == (0, [])


def test_checkpoints_of_runs_that_ended_long_ago_are_removed(tmp_path: Path, settings: Any) -> None:
    import_journal(tmp_path)
    with endpoint(Model(waits_at=-1)) as server:
        loaded = load(tmp_path, config(server.url))
        execute(create_run(config=loaded, environments=find_environments(loaded)), loaded)
    row = Response.objects.get()
    EpisodeCheckpoint.objects.create(
        run_environment_id=row.run_environment_id, run_model_id=row.run_model_id, case_id=row.case_id
    )
    assert episode_checkpoints().count == 0
    old = timezone.now() - timedelta(days=settings.EPISODE_KEEP_DAYS + 1)
    EpisodeCheckpoint.objects.update(updated_at=old)
    Run.objects.update(status="running")
    assert episode_checkpoints().count == 0
    Run.objects.update(status="interrupted")
    episode_checkpoints().remove()
    assert EpisodeCheckpoint.objects.count() == 0
