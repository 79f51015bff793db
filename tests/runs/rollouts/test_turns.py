"""Turns of episodes over HTTP: repeated steps, wrong turns, episodes that the trainer ends, codes of errors."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from django.contrib.auth.models import User
from django.utils import timezone

from hub.models import Environment
from hub.services import import_bundle
from llmeval_site.accounts.tokens import create_token
from runs.models import EpisodeSession

pytestmark = pytest.mark.django_db(transaction=True)


class Client:
    """Client of episodes, which may be used by several threads."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self.url = url
        self._headers = headers

    def get(self, path: str) -> requests.Response:
        return requests.get(self.url + path, headers=self._headers, timeout=120)

    def delete(self, path: str) -> requests.Response:
        return requests.delete(self.url + path, headers=self._headers, timeout=120)

    def put(self, path: str, json: object) -> requests.Response:
        return requests.put(self.url + path, json=json, headers=self._headers, timeout=120)

    def post(self, path: str, json: object) -> requests.Response:
        return requests.post(self.url + path, json=json, headers=self._headers, timeout=120)


@pytest.fixture
def http(live_server: Any, folder: Path) -> Client:
    import_bundle(bundle=folder / "capitals")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    _, key = create_token(user=User.objects.create_user("trainer"), scopes=["train"])
    headers = {"Authorization": f"Token {key}"}
    return Client(f"{live_server.url}/api/v1/episodes/", headers)


def begin(http: Client) -> str:
    begun = http.post("", json={"environment": "capitals", "case": "peru"})
    assert begun.status_code == 201, begun.text
    assert begun.json()["turn"] == 0
    return str(begun.json()["id"])


def say(content: str, turn: int) -> dict[str, object]:
    return {"message": {"role": "assistant", "content": content}, "turn": turn}


def test_repeated_turn_returns_stored_answer_and_counts_once(http: Client) -> None:
    episode = begin(http)
    first, second = (http.post(f"{episode}/step", json=say("Lima", 0)) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()
    assert first.json() | {"info": 0, "observation": 0} == {
        "turn": 0,
        "observation": 0,
        "reward": 1.0,
        "done": True,
        "terminated": True,
        "truncated": False,
        "stop": "done",
        "info": 0,
    }
    session = EpisodeSession.objects.get()
    assert (session.revision, len(session.usage), session.state["turns"]) == (1, 1, 1)


def test_concurrent_requests_with_one_turn_get_one_answer(http: Client) -> None:
    episode = begin(http)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: http.post(f"{episode}/step", json=say("Lima", 0)), range(4)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert EpisodeSession.objects.get().revision == 1


def test_wrong_turn_returns_409_with_expected_turn(http: Client) -> None:
    answer = http.post(f"{begin(http)}/step", json=say("Lima", 3))
    assert (answer.status_code, answer.json()["code"], answer.json()["expected_turn"]) == (409, "wrong_turn", 0)
    assert EpisodeSession.objects.get().revision == 0


def test_repeated_turn_with_another_message_returns_409(http: Client) -> None:
    episode = begin(http)
    http.post(f"{episode}/step", json=say("Lima", 0))
    answer = http.post(f"{episode}/step", json=say("Cusco", 0))
    assert (answer.status_code, answer.json()["code"]) == (409, "different_message")


def test_step_after_end_returns_409_ended(http: Client) -> None:
    episode = begin(http)
    http.post(f"{episode}/step", json=say("Lima", 0))
    for body in (say("Lima", 1), {"message": {"content": "Lima"}}):
        answer = http.post(f"{episode}/step", json=body)
        assert (answer.status_code, answer.json()["code"]) == (409, "ended")


def test_step_of_expired_episode_returns_410(http: Client) -> None:
    episode = begin(http)
    EpisodeSession.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    for path, body in (("step", say("Lima", 0)), ("finish", {"reason": "time"})):
        answer = http.post(f"{episode}/{path}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (410, "expired")


def test_finish_scores_episode_as_truncated_and_can_be_repeated(http: Client) -> None:
    episode = begin(http)
    answers = [http.post(f"{episode}/finish", json={"reason": "tokens"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    first, second = (answer.json() for answer in answers)
    assert first == second
    assert (first["done"], first["terminated"], first["truncated"], first["stop"]) == (True, False, True, "tokens")
    assert (first["reward"], first["info"]["status"]) == (0.0, "failed")
    other = http.post(f"{episode}/finish", json={"reason": "time"})
    assert (other.status_code, other.json()["code"]) == (409, "ended")


def test_errors_have_codes(http: Client, settings: Any) -> None:
    episode = begin(http)
    settings.EPISODES_PER_USER = 1
    answers = {
        "limit": http.post("", json={"environment": "capitals"}),
        "invalid": http.post(f"{episode}/finish", json={"reason": "bored"}),
        "not_found": http.get("00000000-0000-0000-0000-000000000001/"),
        "not_authenticated": Client(http.url, {"Authorization": "Token lle_unknown"}).get(""),
        "method_not_allowed": http.put(f"{episode}/step", json={}),
    }
    assert {code: answer.json()["code"] for code, answer in answers.items()} == {code: code for code in answers}
