"""Groups of episodes, scores of whole conversations and tokens of steps, over REST."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from hub.models import Case, Environment, EnvironmentVersion
from hub.services import import_bundle
from llmeval_site.accounts.tokens import create_token
from llmeval_site.middleware import idempotency
from runs.models import EpisodeSession
from runs.rollouts import batches, conversations
from runs.rollouts.errors import RolloutFailed
from runs.rollouts.tokens import append_tokens
from tests.hub.bundle_files import write_bundle_with_examples

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def version(folder: Path) -> EnvironmentVersion:
    version = import_bundle(bundle=folder / "capitals")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    return version


@pytest.fixture
def api(version: EnvironmentVersion) -> APIClient:
    client = APIClient()
    _, key = create_token(user=User.objects.create_user("trainer"), scopes=["train"])
    client.credentials(HTTP_AUTHORIZATION=f"Token {key}")
    return client


def post(api: APIClient, path: str, **body: object) -> Any:
    return api.post(f"/api/v1/{path}", {"environment": "capitals", **body}, format="json")


def paths(answer: Any) -> list[str]:
    assert answer.status_code == 400, answer.json()
    return [item["path"] for item in answer.json()["errors"]]


def say(*contents: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": "?"}, *({"role": "assistant", "content": text} for text in contents)]


def exported(api: APIClient) -> list[dict[str, Any]]:
    answer = api.get("/api/v1/episodes/export")
    return [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[attr-defined]


def test_batch_starts_groups_whose_id_is_stored_listed_and_exported(api: APIClient) -> None:
    answer = post(api, "episodes/batch", cases=["france", "peru"], group_size=2, seed=3, model="step-1")
    assert answer.status_code == 201, answer.json()
    groups = answer.json()["groups"]
    assert [(group["case"], [item["attempt"] for item in group["episodes"]]) for group in groups] == [
        ("france", [1, 2]),
        ("peru", [1, 2]),
    ]
    first = groups[0]["episodes"][0]
    assert first["observation"]["messages"][0]["content"] == "Capital of France?"
    for item in groups[0]["episodes"]:
        body = {"message": {"role": "assistant", "content": "Paris"}, "turn": 0}
        assert api.post(f"/api/v1/episodes/{item['id']}/step", body, format="json").json()["reward"] == 1.0
    listed = api.get("/api/v1/episodes/", {"group": groups[0]["group"]}).json()["results"]
    assert {item["id"] for item in listed} == {item["id"] for item in groups[0]["episodes"]}
    assert [(row["group"], row["attempt"]) for row in exported(api)] == [(groups[0]["group"], i) for i in (1, 2)]


def test_repeated_batch_starts_no_episodes_although_its_answer_is_large(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "MAX_BODY_SIZE", 4096)
    body = {"environment": "capitals", "cases": ["peru"], "group_size": 32}
    headers = {"Idempotency-Key": "once"}
    first, second = (api.post("/api/v1/episodes/batch", body, format="json", headers=headers) for _ in range(2))
    assert len(first.content) > 4096
    assert (second.status_code, second["Idempotency-Replayed"]) == (201, "true")
    assert second.json() == first.json()
    assert EpisodeSession.objects.count() == 32


def test_same_seed_draws_the_same_distinct_cases(api: APIClient) -> None:
    drawn = [[g["case"] for g in post(api, "episodes/batch", n=3, seed=5).json()["groups"]] for _ in range(2)]
    assert drawn[0] == drawn[1] and len(set(drawn[0])) == 3


def test_cases_are_listed_with_their_opening_and_split(api: APIClient, version: EnvironmentVersion) -> None:
    case = Case.objects.get(external_id="peru")
    case.data = {**case.data, "metadata": {"split": "train"}}
    case.save()
    answer = post(api, "episodes/cases", limit=2, offset=1).json()
    ids = list(version.cases.order_by("position").values_list("external_id", flat=True))
    assert (answer["environment"], answer["total"]) == (str(version), len(ids))
    assert [item["case"] for item in answer["cases"]] == ids[1:3]
    (peru,) = post(api, "episodes/cases", split="train").json()["cases"]
    assert (peru["case"], peru["split"], peru["observation"]["tools"]) == ("peru", "train", [])
    begun = post(api, "episodes/", case="peru").json()
    assert peru["observation"] == begun["observation"]
    assert post(api, "episodes/cases", split="train", opened=False).json()["cases"][0]["observation"] is None
    assert EpisodeSession.objects.count() == 1  # the one that was started
    assert paths(post(api, "episodes/cases", limit=257)) == ["limit"]
    Environment.objects.update(held_out=True)
    assert post(api, "episodes/cases").status_code == 403


def test_split_limits_the_cases_that_are_drawn(api: APIClient) -> None:
    for case in Case.objects.filter(external_id__in=["peru", "cuba"]):
        case.data = {**case.data, "metadata": {"split": "train"}}
        case.save()
    groups = post(api, "episodes/batch", n=2, split="train").json()["groups"]
    assert {group["case"] for group in groups} == {"peru", "cuba"}
    assert paths(post(api, "episodes/batch", n=3, split="train")) == ["n"]
    assert paths(post(api, "episodes/batch", cases=["peru"], split="train")) == ["split"]
    for path, asked in (("episodes/batch", {"n": 1}), ("episodes/cases", {})):
        answer = post(api, path, split="trian", **asked)
        assert paths(answer) == ["split"]
        assert "did you mean 'train'?" in answer.content.decode()


def test_invalid_batches_name_the_key_and_start_nothing(api: APIClient, settings: Any) -> None:
    assert paths(post(api, "episodes/batch")) == ["cases"]
    assert paths(post(api, "episodes/batch", cases=["peru"], n=1)) == ["cases"]
    assert paths(post(api, "episodes/batch", cases=["peru", "atlantis"])) == ["cases[1]"]
    assert paths(post(api, "episodes/batch", cases=["peru", "peru"])) == ["cases"]
    assert paths(post(api, "episodes/batch", cases=["peru", "cuba"], group_size=200)) == ["group_size"]
    assert paths(post(api, "episodes/batch", n=1, size=2)) == ["size"]
    settings.EPISODES_PER_USER = 3
    assert paths(post(api, "episodes/batch", cases=["peru"], group_size=4)) == ["group_size"]  # never possible
    assert not EpisodeSession.objects.exists()


def test_batch_above_the_limit_of_open_episodes_can_be_sent_again_later(api: APIClient, settings: Any) -> None:
    settings.EPISODES_PER_USER = 3
    opened = post(api, "episodes/", case="peru").json()
    limited = post(api, "episodes/batch", cases=["peru"], group_size=3)
    assert (limited.status_code, limited.json()["code"], limited["Retry-After"]) == (429, "limit", "10")
    api.delete(f"/api/v1/episodes/{opened['id']}/")
    assert post(api, "episodes/batch", cases=["peru"], group_size=3).status_code == 201


def test_batch_that_fails_in_the_middle_leaves_no_episode(api: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    create = batches.create_rollout

    def fail_third(*given: Any, **which: Any) -> Any:
        if EpisodeSession.objects.count() == 2:
            raise RolloutFailed("The sandbox does not answer.")
        return create(*given, **which)

    monkeypatch.setattr(batches, "create_rollout", fail_third)
    assert post(api, "episodes/batch", cases=["peru"], group_size=4).status_code == 503
    assert not EpisodeSession.objects.exists()


def test_score_returns_a_result_or_an_error_for_each_conversation(api: APIClient) -> None:
    sent = [
        ("france", say("Paris")),
        ("peru", say("Cusco")),
        ("atlantis", say("Paris")),
        ("peru", say()),
        ("peru", say("Lima", "Lima")),
        ("peru", "Lima"),
    ]
    answer = post(api, "score", items=[{"case": case, "messages": messages} for case, messages in sent])
    assert answer.status_code == 200, answer.json()
    items = answer.json()["items"]
    assert [item["reward"] for item in items] == [1.0, 0.0, None, None, None, None]
    assert [(item["status"], item["stop"], item["terminated"]) for item in items[:2]] == [
        ("passed", "done", True),
        ("failed", "done", True),
    ]
    assert {item["error"]["code"] for item in items[2:]} == {"invalid"}
    assert "ended after 1 of 2" in items[4]["error"]["message"]
    assert not EpisodeSession.objects.exists()


def test_examples_in_the_prompt_of_a_transcript_are_not_scored_as_answers(api: APIClient, tmp_path: Path) -> None:
    import_bundle(bundle=write_bundle_with_examples(tmp_path / "shots"))
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    opening = post(api, "episodes/cases", environment="shots").json()["cases"][0]["observation"]["messages"]
    answer = {"role": "assistant", "content": "Paris"}
    sent = [[*opening, answer], [answer], [*opening, {**answer, "content": "Lyon"}], opening, [*opening[1:], answer]]
    items = [{"case": "France", "messages": messages} for messages in sent]
    scored = post(api, "score", environment="shots", items=items).json()["items"]
    assert [item["reward"] for item in scored] == [1.0, 1.0, 0.0, None, None]
    assert scored[3]["error"]["message"] == "`messages` has no message with the role assistant after the prompt."


def test_conversation_with_characters_that_cannot_be_stored_is_scored(api: APIClient) -> None:
    items = [{"case": "france", "messages": say("\ud800\0")}, {"case": "peru\ud800", "messages": say("Lima")}]
    body = json.dumps({"environment": "capitals", "items": [*items, {"case": "peru", "messages": say("Lima")}]})
    answer = api.post("/api/v1/score", body, content_type="application/json")
    assert [item["reward"] for item in answer.json()["items"]] == [0.0, None, 1.0]
    assert answer.json()["items"][1]["error"]["message"] == "capitals@1.0.0 has no case 'peru\ufffd'."


def test_failure_of_the_sandbox_affects_only_its_item(api: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    advance = conversations.advance

    def fail(session: EpisodeSession, act: Any) -> Any:
        if session.case.external_id == "peru":
            raise RolloutFailed("The sandbox does not answer.")
        return advance(session, act)

    monkeypatch.setattr(conversations, "advance", fail)
    answer = post(api, "score", items=[{"case": case, "messages": say("Paris")} for case in ("peru", "france")])
    assert [item["reward"] for item in answer.json()["items"]] == [None, 1.0]
    assert answer.json()["items"][0]["error"]["code"] == "unavailable"


def test_held_out_environment_can_be_neither_batched_nor_scored(api: APIClient) -> None:
    Environment.objects.update(held_out=True)
    assert post(api, "episodes/batch", n=1).status_code == 403
    assert post(api, "score", items=[{"case": "france", "messages": say("Paris")}]).status_code == 403


def test_tokens_of_a_step_are_stored_and_exported(api: APIClient) -> None:
    episode = post(api, "episodes/", case="france").json()["id"]
    tokens = {"prompt_ids": [1, 2, 3], "completion_ids": [4, 5], "logprobs": [-0.5, 0]}
    body = {"message": {"role": "assistant", "content": "Paris"}, "turn": 0, "tokens": tokens}
    for _ in range(2):
        assert api.post(f"/api/v1/episodes/{episode}/step", body, format="json").status_code == 200
    assert [row["tokens"] for row in exported(api)] == [[tokens]]


@pytest.mark.parametrize(
    ("tokens", "path"),
    [
        ([], "tokens"),
        ({"prompt_ids": []}, "tokens.completion_ids"),
        ({"prompt_ids": [-1], "completion_ids": []}, "tokens.prompt_ids"),
        ({"prompt_ids": [True], "completion_ids": []}, "tokens.prompt_ids"),
        ({"prompt_ids": [], "completion_ids": [1], "logprobs": []}, "tokens.logprobs"),
        ({"prompt_ids": [], "completion_ids": [1], "logprobs": ["x"]}, "tokens.logprobs"),
        ({"prompt_ids": [], "completion_ids": [1], "logprobs": [-(10**400)]}, "tokens.logprobs"),
        ({"prompt_ids": [], "completion_ids": [], "ids": []}, "tokens.ids"),
    ],
)
def test_invalid_tokens_are_rejected_with_their_key(api: APIClient, tokens: object, path: str) -> None:
    episode = post(api, "episodes/", case="france").json()["id"]
    body = {"message": {"role": "assistant", "content": "Paris"}, "turn": 0, "tokens": tokens}
    assert paths(api.post(f"/api/v1/episodes/{episode}/step", body, format="json")) == [path]
    assert EpisodeSession.objects.get().revision == 0


def test_steps_without_tokens_are_null() -> None:
    tokens: Any = {"prompt_ids": [1], "completion_ids": [2], "logprobs": None}
    assert append_tokens([], 2, tokens) == [None, None, tokens]


def test_name_and_id_of_a_message_that_are_no_text_are_not_exported(api: APIClient) -> None:
    for wrong in ({"name": 5}, {"tool_call_id": 7}, {"name": "ann"}):
        opened = post(api, "episodes/", case="peru").json()
        message = {"role": "assistant", "content": "Lima", **wrong}
        step = api.post(f"/api/v1/episodes/{opened['id']}/step", {"message": message}, format="json")
        assert step.status_code == 200, step.json()
    said = {"role": "assistant", "content": "Lima"}
    assert [row["messages"][-1] for row in exported(api)] == [said, said, {**said, "name": "ann"}]
