"""The REST surface for trainers, driven by the client that docs/rl.md prints."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from rest_framework.authtoken.models import Token
from rest_framework.test import APIClient

from hub.models import Environment, EnvironmentVersion
from hub.services import bundle_import
from runs.models import EpisodeSession
from tests.runs.test_running import CAPITALS, folder  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def version(folder: Path) -> EnvironmentVersion:  # noqa: F811
    version = bundle_import(bundle=folder / "capitals")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    return version


@pytest.fixture
def user() -> User:
    return User.objects.create_user("trainer")


@pytest.fixture
def api(user: User) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {Token.objects.create(user=user).key}")
    return client


def printed_client() -> type:
    """The class in the docs' Python block, made from the very text that is printed."""
    text = (settings.BASE_DIR / "docs" / "rl.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(blocks[0], scope)
    client: type = scope["Episodes"]
    return client


def capital_of(messages: list[dict[str, Any]], tools: list[Any]) -> dict[str, Any]:
    question = messages[0]["content"]
    return {"role": "assistant", "content": next(city for country, city in CAPITALS.items() if country in question)}


def test_the_printed_client_plays_rollouts_and_groups(
    live_server: Any, user: User, version: EnvironmentVersion
) -> None:
    token = Token.objects.create(user=user)
    episodes = printed_client()(live_server.url, token.key)
    played = episodes.rollout(capital_of, "capitals", seed=3)
    assert (played["reward"], played["truncated"], len(played["messages"])) == (1.0, False, 2)
    answers = iter(["Paris", "Rome", "Paris", "Rome"])

    def wavering(messages: list[Any], tools: list[Any]) -> dict[str, Any]:
        return {"role": "assistant", "content": next(answers)}

    group = episodes.group(wavering, "capitals@1.0.0", "france", 4)
    assert [(item["reward"], item["advantage"]) for item in group] == [(1.0, 0.5), (0.0, -0.5)] * 2


def begin(api: APIClient, **body: Any) -> Any:
    return api.post("/api/v1/episodes/", {"environment": "capitals", "case": "peru", **body}, format="json")


def test_an_episode_can_be_read_while_it_goes_on_and_deleted(api: APIClient, version: EnvironmentVersion) -> None:
    begun = begin(api)
    assert begun.status_code == 201, begun.content
    path = f"/api/v1/episodes/{begun.json()['id']}/"
    shown = api.get(path).json()
    assert (shown["case"], shown["done"], len(shown["messages"])) == ("peru", False, 1)
    step = api.post(f"{path}step", {"message": {"role": "assistant", "content": "Cusco"}}, format="json").json()
    assert (step["done"], step["reward"], step["info"]["status"]) == (True, 0.0, "failed")
    assert "Lima" in step["info"]["rules"]["exact_match"]["reason"]
    assert api.get(path).json()["score"]["status"] == "failed"
    assert api.delete(path).status_code == 204
    assert not EpisodeSession.objects.exists()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"environment": "atlantis"}, "atlantis"),
        ({"case": "atlantis"}, "no case"),
        ({"seed": "x"}, "integer"),
        ({"attempt": 0}, "greater than or equal to 1"),
        ({"roles": {"user": ["nobody"]}}, "nobody"),
    ],
)
def test_a_wrong_beginning_is_answered_with_the_reason(
    api: APIClient, version: EnvironmentVersion, body: dict[str, Any], said: str
) -> None:
    answer = begin(api, **body)
    assert answer.status_code == 400
    assert said in answer.content.decode()


def test_a_step_that_is_no_message_changes_nothing(api: APIClient, version: EnvironmentVersion) -> None:
    path = f"/api/v1/episodes/{begin(api).json()['id']}/"
    for body in ({}, {"message": "Lima"}, {"message": {"role": "user", "content": "Lima"}}):
        assert api.post(f"{path}step", body, format="json").status_code == 400
    assert EpisodeSession.objects.get().revision == 0


def test_held_out_environments_are_forbidden(api: APIClient, version: EnvironmentVersion) -> None:
    Environment.objects.update(held_out=True)
    assert begin(api).status_code == 403


def test_private_environments_of_others_are_not_told_of(api: APIClient, version: EnvironmentVersion) -> None:
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE)
    answer = begin(api)
    assert answer.status_code == 400 and "no environment" in answer.content.decode()


def test_episodes_of_others_are_not_there(api: APIClient, version: EnvironmentVersion) -> None:
    path = f"/api/v1/episodes/{begin(api).json()['id']}/"
    other = APIClient()
    other.credentials(HTTP_AUTHORIZATION=f"Token {Token.objects.create(user=User.objects.create_user('eve')).key}")
    message: Callable[[], Any] = lambda: other.post(f"{path}step", {"message": {"content": "x"}}, format="json")  # noqa: E731
    assert [other.get(path).status_code, other.delete(path).status_code, message().status_code] == [404, 404, 404]
    assert APIClient().get(path).status_code in (401, 403)
