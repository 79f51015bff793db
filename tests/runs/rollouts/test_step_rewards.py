"""Rewards that a custom harness returns with single steps: episodes, evaluations, exports, pages."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.live_server_helper import LiveServer
from rest_framework.test import APIClient

import llmeval_client
from hub.models import Environment
from hub.services import import_bundle
from llmeval_site.accounts.tokens import create_token
from runs.exports import RolloutSelection, export_episodes, export_run_rollouts
from runs.models import Response
from tests.endpoint import Answer, completion, endpoint
from tests.hub.bundle_files import lines, write_bundle
from tests.markup import markup
from tests.runs.capitals import config_text, start

pytestmark = pytest.mark.django_db(transaction=True)
HARNESS = """
def reset(case, seed):
    return {"state": 0, "messages": [{"role": "user", "content": "Count."}]}


def step(state, message):
    rewards = [{}, {"reward": 0.25}, {}, {"reward": 0.75, "done": True}]
    return {"state": state + 1, "messages": [{"role": "user", "content": "More."}], **rewards[state]}
"""
REWARDS = [None, 0.25, None, 0.75]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_bundle(
        tmp_path / "counting",
        files={"cases.jsonl": lines([{"id": "a", "input": ""}]), "harness.py": HARNESS},
        slug="counting",
        category="reasoning",
        dataset={"path": "cases.jsonl"},
        harness={"type": "custom"},
        scoring={"pass": 0.5},
        gold=None,
        wrong=None,
    )


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rewards_of_steps_are_returned_and_kept_in_episodes(bundle: Path, tmp_path: Path) -> None:
    import_bundle(bundle=bundle)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    api = APIClient()
    api.force_authenticate(User.objects.create_user("trainer"))
    episode = api.post("/api/v1/episodes/", {"environment": "counting"}, format="json").json()["id"]
    url, message = f"/api/v1/episodes/{episode}/", {"role": "assistant", "content": "1"}
    assert api.get(url).json()["steps"] is None
    answers = [api.post(f"{url}step", {"message": message, "turn": turn}, format="json").json() for turn in range(3)]
    assert [answer.get("step_reward") for answer in answers] == [None, 0.25, None]
    assert [answer["reward"] for answer in answers] == [0.0, 0.0, 0.0]
    assert api.get(url).json()["steps"] == [{"reward": reward} for reward in REWARDS[:3]]
    last = api.post(f"{url}step", {"message": message, "turn": 3}, format="json").json()
    assert (last["step_reward"], last["reward"], last["done"]) == (0.75, 0.75, True)
    assert api.post(f"{url}step", {"message": message, "turn": 3}, format="json").json() == last
    for format in ("jsonl", "grpo"):
        export_episodes(tmp_path / f"{format}.jsonl", RolloutSelection(), format=format)
        assert read(tmp_path / f"{format}.jsonl")[0]["steps"] == [{"reward": reward} for reward in REWARDS]


def test_rewards_of_steps_are_kept_with_the_responses_of_a_run(bundle: Path, tmp_path: Path) -> None:
    def reply(request: dict[str, Any], _: int = 0) -> Answer:
        return completion("1")

    with endpoint(reply) as model:
        run, _ = start(tmp_path, config_text(model.url, environments=[{"path": "counting"}]))
    response = Response.objects.get()
    assert (response.step_rewards, response.score) == (REWARDS, 0.75)
    export_run_rollouts(run, tmp_path / "out.jsonl", RolloutSelection())
    assert read(tmp_path / "out.jsonl")[0]["steps"] == [{"reward": reward} for reward in REWARDS]
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    assert "-, 0.25, -, 0.75" in markup(client.get(f"/responses/{response.pk}/"))
    results = client.get(f"/api/v1/runs/{run.pk}/responses/").json()["results"]
    assert [item["step_rewards"] for item in results] == [REWARDS]


def test_client_has_the_rewards_of_steps(bundle: Path, live_server: LiveServer) -> None:
    import_bundle(bundle=bundle)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    _, token = create_token(user=User.objects.create_user("trainer"), scopes=["train"])
    with llmeval_client.Client(live_server.url, token) as client:
        episode = client.start("counting")
        results = [episode.step("1") for _ in range(4)]
        environment = llmeval_client.EpisodeEnvironment(client, "counting")
        environment.reset()
        steps = [environment.step("1") for _ in range(4)]
    assert [result.step_reward for result in results] == [None, 0.25, None, 0.75]
    assert [result.reward for result in results] == [0.0, 0.0, 0.0, 0.75]
    assert [info.get("step_reward") for *_, info in steps] == REWARDS
    assert [reward for _, reward, *_ in steps] == [0.0, 0.0, 0.0, 0.75]
