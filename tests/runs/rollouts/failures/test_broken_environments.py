"""Episodes of environments that are wrong: answers that a trainer does not repeat."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from hub.bundles.stored import ArchivesUnreachable, ArchiveUnavailable
from hub.models import Environment, EnvironmentVersion
from hub.protocols.cases import CaseData
from hub.services import import_bundle
from llmeval_client import Client as TrainerClient
from llmeval_client import ServerError
from llmeval_site.accounts.tokens import create_token
from runs.models import EpisodeSession
from runs.rollouts import rebuilding
from tests.hub.bundle_files import lines, write_bundle

pytestmark = pytest.mark.django_db(transaction=True)
HARNESS = """
def reset(case, seed):
    if case["id"] == "broken":
        raise KeyError("answer")
    return {"state": 0, "messages": [{"role": "user", "content": "Count."}]}


def step(state, message):
    raise FileNotFoundError("words.txt")
"""
MESSAGE = {"role": "assistant", "content": "1"}


@pytest.fixture
def user() -> User:
    return User.objects.create_user("trainer")


@pytest.fixture
def api(user: User) -> APIClient:
    api = APIClient()
    api.force_authenticate(user)
    return api


@pytest.fixture
def version(tmp_path: Path) -> EnvironmentVersion:
    cases = [{"id": name, "input": ""} for name in ("sound", "broken")]
    bundle = write_bundle(
        tmp_path / "counting",
        files={"cases.jsonl": lines(cases), "harness.py": HARNESS},
        slug="counting",
        category="reasoning",
        dataset={"path": "cases.jsonl"},
        harness={"type": "custom"},
        scoring={"pass": 0.5},
        gold=None,
        wrong=None,
    )
    version = import_bundle(bundle=bundle)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    return version


def post(api: APIClient, path: str, **body: Any) -> Any:
    accept = {"Accept": "application/json, application/problem+json"}
    return api.post(f"/api/v1/{path}", body, format="json", headers=accept)


def test_broken_code_is_answered_with_422_and_not_as_an_outage(api: APIClient, version: EnvironmentVersion) -> None:
    begun = post(api, "episodes/", environment="counting", case="sound").json()
    answers = [
        post(api, "episodes/", environment="counting", case="broken"),
        post(api, "episodes/batch", environment="counting", cases=["broken"]),
        post(api, "episodes/cases", environment="counting"),
        post(api, f"episodes/{begun['id']}/step", message=MESSAGE, turn=0),
    ]
    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(422, "environment_failed")}
    assert {answer["Content-Type"] for answer in answers} == {"application/problem+json"}
    assert "KeyError" in answers[0].json()["detail"] and "words.txt" in answers[3].json()["detail"]
    session = EpisodeSession.objects.get()
    assert (session.revision, session.done) == (0, False)
    scored = post(api, "score", environment="counting", items=[{"case": "broken", "messages": [MESSAGE]}])
    assert scored.json()["items"][0]["error"]["code"] == "environment_failed"


def test_errors_of_code_are_withheld_with_the_reasons_of_scores(
    api: APIClient, version: EnvironmentVersion, user: User
) -> None:
    begun = post(api, "episodes/", environment="counting", case="sound").json()

    def said() -> str:
        answers = [
            post(api, "episodes/", environment="counting", case="broken"),
            post(api, f"episodes/{begun['id']}/step", message=MESSAGE, turn=0),
            post(api, "score", environment="counting", items=[{"case": "broken", "messages": [MESSAGE]}]),
        ]
        assert [answer.status_code for answer in answers] == [422, 422, 200]
        return "".join(answer.content.decode() for answer in answers)

    assert "KeyError" in said() and "words.txt" in said()
    Environment.objects.update(partly_held_out=True)
    assert "KeyError" not in said() and "words.txt" not in said() and "Held out:" in said()
    Environment.objects.update(owner=user)
    assert "KeyError" in said() and "words.txt" in said()


def test_case_that_does_not_fit_the_environment_is_answered_with_422(
    api: APIClient, version: EnvironmentVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    version.manifest["harness"] = {"type": "single_turn", "prompt": "{{ row.gone.away }}"}
    version.digest = "f" * 64
    version.save()
    monkeypatch.setattr(rebuilding, "_case_data", lambda pk, digest: CaseData.from_json({"id": "x", "input": ""}))
    answer = post(api, "episodes/", environment="counting", case="sound")
    assert (answer.status_code, answer.json()["code"]) == (422, "environment_failed")


@pytest.mark.parametrize(
    ("error", "status"), [(ArchiveUnavailable("It is missing."), 422), (ArchivesUnreachable("It is away."), 503)]
)
def test_missing_archive_is_no_outage_and_an_unreachable_storage_is(
    error: Exception, status: int, api: APIClient, version: EnvironmentVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = post(api, "episodes/", environment="counting", case="sound").json()

    def fail(version: EnvironmentVersion) -> None:
        raise error

    monkeypatch.setattr(rebuilding, "compile_version", fail)
    assert post(api, "episodes/", environment="counting", case="sound").status_code == status
    assert post(api, f"episodes/{begun['id']}/step", message=MESSAGE, turn=0).status_code == status
    assert api.delete(f"/api/v1/episodes/{begun['id']}/").status_code == (204 if status == 422 else 503)


def test_stored_manifest_that_is_not_valid_is_answered_with_422(api: APIClient, version: EnvironmentVersion) -> None:
    version.manifest["harness"] = {"type": "gone"}
    version.digest = "e" * 64
    version.save()
    answer = post(api, "episodes/", environment="counting", case="sound")
    assert (answer.status_code, answer.json()["code"]) == (422, "environment_failed")


def test_client_sends_a_request_to_a_broken_environment_once(
    live_server: Any, user: User, version: EnvironmentVersion
) -> None:
    _, key = create_token(user=user, scopes=["train"])
    with TrainerClient(live_server.url, key) as client:
        with pytest.raises(ServerError) as refused:
            client.start("counting", case="broken")
        with pytest.raises(ServerError) as failed:
            client.start("counting", case="sound").step("1")
    assert [(caught.value.status, caught.value.code) for caught in (refused, failed)] == [
        (422, "environment_failed")
    ] * 2
