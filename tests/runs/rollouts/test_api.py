"""REST API for trainers, called by the client in docs/rl.md."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from hub.models import Environment, EnvironmentVersion
from hub.services import import_bundle
from llmeval_site.accounts.tokens import create_token
from runs.models import EpisodeSession, ModelEndpoint
from tests.hub.bundle_files import lines, write_bundle, write_bundle_with_examples
from tests.runs.capitals import CAPITALS

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def version(folder: Path) -> EnvironmentVersion:
    version = import_bundle(bundle=folder / "capitals")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    return version


@pytest.fixture
def user() -> User:
    return User.objects.create_user("trainer")


@pytest.fixture
def api(user: User) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {token_of(user)}")
    return client


def token_of(user: User) -> str:
    return create_token(user=user, scopes=["train"])[1]


def printed() -> dict[str, Any]:
    """Names that the Python blocks of the docs define, executed from the text of the page.

    Examples for adapters need their packages, and have tests of their own.
    """
    text = (settings.BASE_DIR / "docs" / "rl.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    scope: dict[str, Any] = {}
    for block in blocks:
        if block.startswith(("import requests\n", "def ")):
            exec(block, scope)
    return scope


def capital_of(messages: list[dict[str, Any]], tools: list[Any]) -> tuple[dict[str, Any], dict[str, int]]:
    question = messages[0]["content"]
    city = next(city for country, city in CAPITALS.items() if country in question)
    return {"role": "assistant", "content": city}, {"prompt_tokens": 12, "completion_tokens": 1}


def test_documented_client_collects_rollouts_and_groups(
    live_server: Any, user: User, version: EnvironmentVersion
) -> None:
    episodes = printed()["Episodes"](live_server.url, token_of(user))
    played = episodes.rollout(capital_of, "capitals", seed=3, model="step-1")
    assert (played["reward"], played["truncated"], len(played["messages"])) == (1.0, False, 2)
    session = EpisodeSession.objects.get(pk=played["id"])
    assert (session.model, session.usage[0]["input"], session.usage[0]["output"]) == ("step-1", 12, 1)
    answers = iter(["Paris", "Rome", "Paris", "Rome"])

    def wavering(messages: list[Any], tools: list[Any]) -> tuple[dict[str, Any], None]:
        return {"role": "assistant", "content": next(answers)}, None

    group = episodes.group(wavering, "capitals@1.0.0", "france", 4)
    assert [(item["reward"], item["advantage"]) for item in group] == [(1.0, 0.5), (0.0, -0.5)] * 2
    assert [printed()["replay"](episodes, item, "capitals") for item in group] == [1.0, 0.0, 1.0, 0.0]


def test_documented_replay_does_not_send_examples_of_the_prompt(live_server: Any, user: User, tmp_path: Path) -> None:
    import_bundle(bundle=write_bundle_with_examples(tmp_path / "shots"))
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    episodes = printed()["Episodes"](live_server.url, token_of(user))
    played = episodes.rollout(lambda *_: ({"role": "assistant", "content": "Paris"}, None), "shots", case="France")
    assert (played["reward"], printed()["replay"](episodes, played, "shots")) == (1.0, 1.0)


def test_documented_client_deletes_episode_and_reports_error_of_server(
    live_server: Any, user: User, version: EnvironmentVersion
) -> None:
    episodes = printed()["Episodes"](live_server.url, token_of(user))

    def confused(messages: list[Any], tools: list[Any]) -> tuple[dict[str, Any], None]:
        return {"role": "user", "content": "x"}, None

    with pytest.raises(RuntimeError, match=r"400: .*must be assistant"):
        episodes.rollout(confused, "capitals")
    assert not EpisodeSession.objects.exists()


def begin(api: APIClient, **body: Any) -> Any:
    return api.post("/api/v1/episodes/", {"environment": "capitals", "case": "peru", **body}, format="json")


def test_open_episode_can_be_read_and_deleted(api: APIClient, version: EnvironmentVersion) -> None:
    begun = begin(api)
    assert begun.status_code == 201, begun.content
    path = f"/api/v1/episodes/{begun.json()['id']}/"
    assert begun["Location"] == path
    shown = api.get(path).json()
    assert (shown["case"], shown["done"], len(shown["messages"])) == ("peru", False, 1)
    assert (shown["group"], api.get("/api/v1/episodes/").json()["results"][0]["group"]) == (None, "")
    step = api.post(f"{path}step", {"message": {"role": "assistant", "content": "Cusco"}}, format="json").json()
    assert (step["done"], step["reward"], step["info"]["status"]) == (True, 0.0, "failed")
    assert "Lima" in step["info"]["rules"]["exact_match"]["reason"]
    assert api.get(path).json()["score"]["status"] == "failed"
    assert api.delete(path).status_code == 204
    assert not EpisodeSession.objects.exists()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"environment": "atlantis"}, ("environment", "no environment 'atlantis'; known are capitals")),
        ({"environment": "capital"}, ("environment", "no environment 'capital'; did you mean 'capitals'?")),
        ({"environment": "capitals@9"}, ("environment", "it has 1.0.0")),
        ({"case": "atlantis"}, ("case", "no case 'atlantis'")),
        ({"seed": "x"}, ("seed", "integer")),
        ({"attempt": 0}, ("attempt", "greater than or equal to 1")),
        ({"cases": "peru"}, ("cases", "unknown key; did you mean 'case'?")),
        ({"temperature": 1}, ("temperature", "unknown key; known are environment, case")),
        ({"roles": {"user": ["nobody"]}}, ("roles", "No model is registered as 'nobody'; known are small.")),
        ({"roles": {"user": ["off"]}}, ("roles", "The model 'off' is disabled; staff who register models can set it")),
        (
            {"recordings": [{"case": "peru", "content": "x", "turn": "y"}]},
            ("recordings", "recordings[0].turn: must be"),
        ),
    ],
)
def test_invalid_new_episode_is_rejected_with_reason(
    api: APIClient, version: EnvironmentVersion, body: dict[str, Any], expected: tuple[str, str]
) -> None:
    ModelEndpoint.objects.create(name="small", model="m")
    ModelEndpoint.objects.create(name="off", model="m", enabled=False)
    answer = begin(api, **body)
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert error["path"] == expected[0] and expected[1] in error["message"]
    assert not error["message"].endswith("?.")


def test_invalid_message_leaves_episode_unchanged(api: APIClient, version: EnvironmentVersion) -> None:
    path = f"/api/v1/episodes/{begin(api).json()['id']}/"
    for body in ({}, {"message": "Lima"}, {"message": {"role": "user", "content": "Lima"}}):
        assert api.post(f"{path}step", body, format="json").status_code == 400
    assert EpisodeSession.objects.get().revision == 0


def test_unknown_key_of_step_leaves_episode_unchanged(api: APIClient, version: EnvironmentVersion) -> None:
    path = f"/api/v1/episodes/{begin(api).json()['id']}/"
    message = {"role": "assistant", "content": "Lima"}
    answer = api.post(f"{path}step", {"message": message, "usages": None}, format="json")
    assert answer.status_code == 400
    assert [error["path"] for error in answer.json()["errors"]] == ["usages"]
    assert EpisodeSession.objects.get().revision == 0


def test_usage_accepts_all_keys_of_chat_completions(api: APIClient, version: EnvironmentVersion) -> None:
    path = f"/api/v1/episodes/{begin(api).json()['id']}/"
    usage = {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3, "queue_time": 0.1}
    message = {"role": "assistant", "content": "Lima"}
    assert api.post(f"{path}step", {"message": message, "usage": usage}, format="json").status_code == 200


def test_limit_of_open_episodes_returns_429_with_retry_after(
    api: APIClient, version: EnvironmentVersion, settings: Any
) -> None:
    settings.EPISODES_PER_USER = 1
    assert begin(api).status_code == 201
    answer = begin(api)
    assert (answer.status_code, answer["Retry-After"]) == (429, "10")
    assert "You have 1 open episode, and the limit is 1." in answer.json()["message"]
    EpisodeSession.objects.update(expires_at=timezone.now() + timedelta(seconds=4))
    assert 1 <= int(begin(api)["Retry-After"]) <= 4


def test_held_out_environments_are_forbidden(api: APIClient, version: EnvironmentVersion) -> None:
    Environment.objects.update(held_out=True)
    assert begin(api).status_code == 403


def test_episode_of_an_environment_held_out_since_shows_no_reasons_and_no_replies_of_judges(
    api: APIClient, version: EnvironmentVersion
) -> None:
    path = f"/api/v1/episodes/{begin(api).json()['id']}/"
    step = {"message": {"role": "assistant", "content": "Cusco"}, "turn": 0}
    assert "Lima" in api.post(f"{path}step", step, format="json").content.decode()
    key = {"environment": "capitals", "case": "peru", "attempt": 1, "model": "", "purpose": "rubric"}
    key |= {"role": "judge", "turn": 0, "rule": "tone", "seat": 0}
    EpisodeSession.objects.update(calls=[{"key": key, "message": {"role": "assistant", "content": "Not Lima."}}])
    assert api.get(path).content.decode().count("Lima") == 3
    Environment.objects.update(held_out=True)
    for answer in (api.get(path), api.get(f"{path}turns/0"), api.post(f"{path}step", step, format="json")):
        assert answer.status_code == 200
        assert "Lima" not in answer.content.decode()
    shown = api.get(path).json()
    assert shown["score"]["status"] == "failed" and shown["score"]["rules"][0]["value"] == 0.0
    assert (shown["calls"], shown["recordings"]) == ([], [])
    Environment.objects.update(partly_held_out=True, held_out=False)  # its open cases may be trained on
    assert len(api.get(path).json()["recordings"]) == 1


def test_private_environment_is_reported_as_unknown(api: APIClient, version: EnvironmentVersion) -> None:
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE)
    for name in ("capitals", "capitals@9", "atlantis"):
        answer = begin(api, environment=name)
        slug = name.partition("@")[0]
        message = answer.json()["errors"][0]["message"]
        assert (answer.status_code, message) == (400, f"There is no environment '{slug}'; none is loaded yet.")


def test_too_large_body_returns_json_error(api: APIClient, version: EnvironmentVersion, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    answer = begin(api, recordings=[{"case": "peru", "content": "x" * 1000}])
    assert answer.status_code == 413
    assert answer.json()["message"] == "The body is larger than 1,000 bytes."


def test_episode_of_another_user_returns_404(api: APIClient, version: EnvironmentVersion) -> None:
    path = f"/api/v1/episodes/{begin(api).json()['id']}/"
    other = APIClient()
    other.credentials(HTTP_AUTHORIZATION=f"Token {token_of(User.objects.create_user('eve'))}")
    message: Callable[[], Any] = lambda: other.post(f"{path}step", {"message": {"content": "x"}}, format="json")  # noqa: E731
    assert [other.get(path).status_code, other.delete(path).status_code, message().status_code] == [404, 404, 404]
    assert APIClient().get(path).status_code in (401, 403)


def test_characters_that_cannot_be_stored_are_replaced_in_messages_infos_and_reasons(
    api: APIClient, tmp_path: Path
) -> None:
    code = (
        'def reset(case, seed):\n    return {"messages": [{"role": "user", "content": "Go\\ud800\\0."}]}\n\n\n'
        'def step(state, message):\n    return {"done": True, "info": {"said\\0": "\\udfff"}}\n'
    )
    check = 'def check(case, state, transcript):\n    return {"score": 0.5, "reason": "half\\0 \\ud800"}\n'
    bundle = write_bundle(
        tmp_path / "odd",
        files={"cases.jsonl": lines([{"id": "a", "input": ""}]), "harness.py": code, "check.py": check},
        slug="odd",
        category="reasoning",
        dataset={"path": "cases.jsonl"},
        harness={"type": "custom"},
        scoring={"rules": [{"name": "state", "type": "state", "path": "check.py"}]},
        gold=None,
        wrong=None,
    )
    import_bundle(bundle=bundle)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    begun = api.post("/api/v1/episodes/", {"environment": "odd"}, format="json").json()
    assert begun["observation"]["messages"] == [{"role": "user", "content": "Go\ufffd\ufffd."}]
    url, body = f"/api/v1/episodes/{begun['id']}/", {"message": {"role": "assistant", "content": "x"}, "turn": 0}
    answer = api.post(f"{url}step", body, format="json").json()
    assert answer["info"]["said\ufffd"] == "\ufffd"
    assert answer["info"]["rules"] == {"state": {"value": 0.5, "reason": "half\ufffd \ufffd"}}
    assert api.post(f"{url}step", body, format="json").json() == answer
    session = EpisodeSession.objects.get(pk=begun["id"])
    assert session.score is not None and session.score["rules"][0]["reason"] == "half\ufffd \ufffd"
    items = [{"case": "a", "messages": [body["message"]]}]
    scored = api.post("/api/v1/score", {"environment": "odd", "items": items}, format="json").json()
    assert scored["items"][0]["rules"] == answer["info"]["rules"]


@pytest.mark.parametrize(("sent", "path"), [({"\ud800": 1}, "\ufffd"), ({"tokens": {"\ud800": []}}, "tokens.\ufffd")])
def test_unknown_key_of_a_step_with_a_lone_surrogate_is_reported(
    api: APIClient, version: EnvironmentVersion, sent: dict[str, object], path: str
) -> None:
    url = f"/api/v1/episodes/{begin(api).json()['id']}/step"
    body = json.dumps({"message": {"role": "assistant", "content": "x"}, **sent})
    answer = api.post(url, body, content_type="application/json")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, path)


def test_error_of_the_code_of_a_bundle_with_a_lone_surrogate_is_returned(api: APIClient, tmp_path: Path) -> None:
    code = "def reset(case, seed):\n    raise ValueError(chr(0xD800))\n\n\ndef step(state, message):\n    pass\n"
    bundle = write_bundle(
        tmp_path / "odd",
        files={
            "cases.jsonl": lines([{"id": "a", "input": "x"}]),
            "harness.py": code,
        },
        slug="odd",
        category="reasoning",
        dataset={"path": "cases.jsonl"},
        harness={"type": "custom"},
        scoring={},
        gold=None,
        wrong=None,
    )
    import_bundle(bundle=bundle)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    answer = api.post("/api/v1/episodes/", {"environment": "odd"}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (422, "environment_failed")
    assert "ValueError: \ufffd" in answer.json()["message"]


def test_episode_is_hidden_while_its_environment_is(api: APIClient, user: User, version: EnvironmentVersion) -> None:
    body = {"environment": "capitals", "case": "france"}
    url = f"/api/v1/episodes/{api.post('/api/v1/episodes/', body, format='json').json()['id']}/"
    paris = {"message": {"role": "assistant", "content": "Paris"}}
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE)
    assert api.get(url).status_code == api.delete(url).status_code == 404
    assert api.post(f"{url}step", paris, format="json").status_code == 404
    assert api.get("/api/v1/episodes/").json()["results"] == []
    assert api.get("/api/v1/episodes/export").json()["code"] == "invalid"  # nothing to export
    Environment.objects.update(owner=user)
    assert api.get(url).status_code == 200
    Environment.objects.update(owner=None, visibility=Environment.Visibility.RETIRED)
    assert api.post(f"{url}step", paris, format="json").json()["reward"] == 1.0
