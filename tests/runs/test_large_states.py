"""Episodes whose state is many megabytes: over REST with restarts of the server, in evaluations, beyond the limit."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.storage import storages
from django.db import connection, transaction
from django.utils import timezone

from hub.common.fields import delete_files, file_names, update_row
from hub.models import Environment, EnvironmentVersion
from hub.protocols.cases import CaseData
from hub.services import import_bundle
from llmeval_site.accounts.tokens import create_token
from runs.execution import storage as writing
from runs.models import EpisodeCheckpoint, EpisodeSession, Response
from runs.retention import old_rollouts
from runs.rollouts.creation import RolloutOptions, create_rollout
from runs.rollouts.errors import EnvironmentFailed
from runs.rollouts.sessions import delete_rollout
from runs.rollouts.steps import step_rollout
from sandbox.client.settings import get_pool_options
from sandbox.client.shared_pools import get_shared_pool
from tests.endpoint import Answer, completion, endpoint
from tests.factories import stored_run
from tests.hub.playing import calls, episode
from tests.processes import database_environment, wait_until
from tests.runs.capitals import config_text, start
from tests.runs.rollouts.test_turns import Client, say
from tests.sandbox import containers
from tests.site.server.web_server import answers, free_port

pytestmark = pytest.mark.django_db(transaction=True)

MANIFEST = """\
spec: 1
slug: warehouse
version: 1.0.0
title: Warehouse
summary: Take three items off the shelves.
category: tool-use
dataset: {path: cases.jsonl, fields: {input: task}}
harness: {type: custom, path: harness.py, call_seconds: 60}
scoring: {rules: [{type: state, path: check.py}]}
"""
HARNESS = """
def reset(case, seed):
    items = [{"id": i, "name": "item %d" % i, "shelf": "%048d" % (i * 7919), "taken": False} for i in range(ITEMS)]
    return {"state": {"items": items, "taken": 0}, "messages": [{"role": "user", "content": case["input"]}]}


def step(state, message):
    item = state["items"][int(message["content"])]
    item["taken"] = True
    state["taken"] += 1
    shelf = [{"role": "user", "content": item["shelf"]}]
    return {"state": state, "messages": shelf, "done": state["taken"] == 3}
"""
CHECK = """
def check(case, state, transcript):
    taken = [item["id"] for item in state["items"] if item["taken"]]
    return len(state["items"]) == ITEMS and taken == [5, ITEMS // 2, ITEMS - 1]
"""
LARGE, SMALL, TOO_LARGE = 130_000, 200, 150_000
TAKEN = (5, LARGE // 2, LARGE - 1)
Write = Callable[[int], Path]


@pytest.fixture(autouse=True)
def no_files_of_other_tests() -> None:
    delete_files(stored_files())


@pytest.fixture
def bundle(tmp_path: Path) -> Write:
    def write(items: int) -> Path:
        folder = tmp_path / "warehouse"
        folder.mkdir()
        (folder / "environment.yaml").write_text(MANIFEST)
        (folder / "cases.jsonl").write_text('{"id": "one", "task": "Take three items."}\n')
        (folder / "harness.py").write_text(f"ITEMS = {items}\n{HARNESS}")
        (folder / "check.py").write_text(f"ITEMS = {items}\n{CHECK}")
        return folder

    return write


def version_of(folder: Path) -> EnvironmentVersion:
    version = import_bundle(bundle=folder)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    return version


@contextmanager
def site(token: str) -> Iterator[Client]:
    """Start a server on the database of the tests, and kill it at the end of the block."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "llmeval_site.wsgi", "--bind", f"127.0.0.1:{port}"]
    process = subprocess.Popen(
        [*command, "--config", "gunicorn.conf.py", "--log-level", "warning"],
        env=database_environment(),
        cwd=settings.BASE_DIR,
    )
    try:
        wait_until(lambda: process.poll() is not None or answers(f"http://127.0.0.1:{port}/healthz"))
        yield Client(f"http://127.0.0.1:{port}/api/v1/episodes/", {"Authorization": f"Token {token}"})
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def stored_files() -> list[str]:
    root = Path(storages["archives"].path("transcripts"))  # type: ignore[attr-defined]
    return sorted(f"transcripts/{path.relative_to(root)}" for path in root.rglob("*") if path.is_file())


def characters_of_row(session: EpisodeSession) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT length(state) FROM runs_episodesession WHERE id = %s", [_key(session)])
        return int(cursor.fetchone()[0])


def _key(session: EpisodeSession) -> str:
    return session.pk.hex if connection.vendor == "sqlite" else str(session.pk)


# ---- 15 MB -----------------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_state_of_15_mb_survives_restarts_of_the_server_over_rest(bundle: Write) -> None:
    version_of(bundle(LARGE))
    _, token = create_token(user=User.objects.create_user("trainer"), scopes=["train"])
    with site(token) as http:
        begun = http.post("", json={"environment": "warehouse", "case": "one"})
        assert begun.status_code == 201, begun.text
        session = EpisodeSession.objects.get()
        assert 14_500_000 < len(json.dumps(session.state)) < 16_000_000
        assert characters_of_row(session) < 400
        first = http.post(f"{session.pk}/step", json=say("5", 0))
        assert first.json()["observation"]["messages"] == [{"role": "user", "content": f"{5 * 7919:048d}"}]
    with site(token) as http:
        repeated = http.post(f"{session.pk}/step", json=say("5", 0))
        assert (repeated.status_code, repeated.json()) == (200, first.json())
        assert stored_files() == file_names(EpisodeSession.objects.all())
        assert len(stored_files()) == 1
        assert http.post(f"{session.pk}/step", json=say(str(TAKEN[1]), 1)).status_code == 200
    with site(token) as http:
        last = http.post(f"{session.pk}/step", json=say(str(TAKEN[2]), 2))
        assert (last.json()["done"], last.json()["reward"]) == (True, 1.0)
        assert stored_files() == file_names(EpisodeSession.objects.all())
        assert http.delete(f"{session.pk}/").status_code == 204
    assert stored_files() == []


@pytest.mark.exhaustive
def test_state_of_15_mb_is_evaluated(bundle: Write, tmp_path: Path) -> None:
    bundle(LARGE)

    def take_next(request: dict[str, Any], _: int) -> Answer:
        return completion(str(TAKEN[sum(message["role"] == "assistant" for message in request["messages"])]))

    with endpoint(take_next) as running:
        start(tmp_path, config_text(running.url, environments=[{"path": "warehouse"}]))
    response = Response.objects.get()
    assert (response.status, response.turns) == ("passed", 3), response.reason


# ---- 15 MB with the engine in a container ----------------------------------------------------------------------------


@pytest.fixture
def docker_backend(settings: Any) -> None:
    settings.SANDBOX_BACKEND, settings.SANDBOX_IMAGE = "docker", containers.image()


@pytest.mark.docker
@pytest.mark.exhaustive
@pytest.mark.usefixtures("docker_backend")
def test_state_of_15_mb_is_evaluated_in_docker(bundle: Write, tmp_path: Path) -> None:
    bundle(LARGE)

    def take_next(request: dict[str, Any], _: int) -> Answer:
        return completion(str(TAKEN[sum(message["role"] == "assistant" for message in request["messages"])]))

    with endpoint(take_next) as running:
        text = config_text(running.url, environments=[{"path": "warehouse"}], attempts=2, sandbox={"backend": "docker"})
        start(tmp_path, text)
    assert [(item.status, item.turns) for item in Response.objects.all()] == [("passed", 3)] * 2


@pytest.mark.docker
@pytest.mark.exhaustive
@pytest.mark.usefixtures("docker_backend")
def test_state_of_15_mb_is_stepped_by_a_trainer_in_docker(bundle: Write) -> None:
    user = User.objects.create_user("trainer")
    session = create_rollout(RolloutOptions(user=user, version=version_of(bundle(LARGE)))).session
    assert characters_of_row(session) < 400
    for turn, item in enumerate(TAKEN):
        answer = step_rollout(session=EpisodeSession.objects.get(), message=say_item(item), turn=turn)
    assert (answer.done, answer.reward) == (True, 1.0)
    assert len(stored_files()) == 1


@pytest.mark.docker
@pytest.mark.exhaustive
@pytest.mark.usefixtures("docker_backend")
def test_state_beyond_the_limit_is_refused_in_docker(bundle: Write) -> None:
    with pytest.raises(EnvironmentFailed, match=r"returned 17,\d{3},\d{3} bytes of JSON; 16,711,680 are allowed"):
        create_rollout(RolloutOptions(user=User.objects.create_user("trainer"), version=version_of(bundle(TOO_LARGE))))


SHAPES = """
SHAPES = {
    "text": lambda: "x" * 16_600_000,
    "other letters": lambda: "\u00e9" * 2_750_000,
    "numbers": lambda: list(range(1_000_000, 2_800_000)),
    "keys": lambda: {"k%d" % i: i for i in range(850_000)},
    "empty lists": lambda: [[] for _ in range(4_100_000)],
}


def reset(case, seed):
    return {"n": 0, "world": SHAPES[case["input"]]()}


def count(state) -> int:
    \"""Count.\"""
    state["n"] += 1
    return len(state["world"])
"""


@pytest.mark.docker
@pytest.mark.exhaustive
@pytest.mark.usefixtures("docker_backend")
@pytest.mark.parametrize("shape", ["text", "other letters", "numbers", "keys", "empty lists"])
async def test_tools_change_states_of_each_shape_in_docker(shape: str) -> None:
    pool = get_shared_pool(get_pool_options())
    assert pool.backend == "docker"
    harness = {"type": "tools", "tools": "tools.py", "call_seconds": 60}
    playing = episode(harness, files={"tools.py": SHAPES}, case=CaseData(id="c", input=shape), pool=pool)
    await playing.reset()
    assert 14_500_000 < len(json.dumps(playing.state["harness"])) < 16_800_000
    step = await playing.step(calls(("count", {}), ("count", {})))
    first, second = (message["content"] for message in step.observation.messages)
    assert first == second == str(len(playing.state["harness"]["world"]["world"]))
    assert playing.state["harness"]["world"]["n"] == 2


def test_state_beyond_the_limit_is_an_error_that_names_sizes(bundle: Write) -> None:
    with pytest.raises(
        EnvironmentFailed, match=r"harness\.py:reset returned 17,\d{3},\d{3} bytes of JSON; 16,711,680 are allowed"
    ):
        create_rollout(RolloutOptions(user=User.objects.create_user("trainer"), version=version_of(bundle(TOO_LARGE))))


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def session(bundle: Write, settings: Any) -> EpisodeSession:
    settings.LARGE_TRANSCRIPT_BYTES = 2000
    return create_rollout(
        RolloutOptions(user=User.objects.create_user("trainer"), version=version_of(bundle(SMALL)))
    ).session


def say_item(item: int) -> dict[str, Any]:
    return {"role": "assistant", "content": str(item)}


def test_file_of_an_earlier_state_is_deleted_once_the_step_is_stored(session: EpisodeSession) -> None:
    (before,) = stored_files()
    step_rollout(session=session, message=say_item(5), turn=0)
    (after,) = stored_files()
    assert after != before and file_names(EpisodeSession.objects.all()) == [after]
    assert EpisodeSession.objects.get().state["harness"]["world"]["items"][5]["taken"]


def test_step_that_was_overtaken_leaves_the_files_of_the_stored_state(session: EpisodeSession) -> None:
    kept = stored_files()
    overtaken = EpisodeSession.objects.filter(revision=session.revision + 1)
    assert not update_row(session, overtaken, {"state": {**session.state, "turns": 1}})
    assert stored_files() == kept == file_names(EpisodeSession.objects.all())


def test_deleted_and_expired_episodes_leave_no_files(session: EpisodeSession) -> None:
    other = create_rollout(RolloutOptions(user=session.user, version=session.case.version)).session
    assert len(stored_files()) == 2
    delete_rollout(session=session)
    assert len(stored_files()) == 1
    EpisodeSession.objects.filter(pk=other.pk).update(expires_at=timezone.now().replace(year=2020))
    removal = old_rollouts()
    assert removal.characters > 15_000
    removal.remove()
    assert stored_files() == [] and not EpisodeSession.objects.exists()


def test_checkpoints_replace_and_remove_their_files(session: EpisodeSession) -> None:
    delete_rollout(session=session)
    run = stored_run(session.case.version, ["alpha"])
    key = {"run_environment": run.environments.get(), "run_model": run.models.get(), "case": session.case}
    for turn in (1, 2):
        row = EpisodeCheckpoint(**key, state={**session.state, "turns": turn})
        with transaction.atomic():
            writing._store([writing.StoredTurn(row)], False)
        assert EpisodeCheckpoint.objects.get().state["turns"] == turn
        assert stored_files() == file_names(EpisodeCheckpoint.objects.all())
        assert len(stored_files()) == 1
    with transaction.atomic():
        response = Response(**key, status="passed", messages=[])
        writing._store([writing.FinishedResponse(response=response, snapshots="none")], False)
    assert stored_files() == [] and not EpisodeCheckpoint.objects.exists()
