"""`Idempotency-Key`: a repeated POST request has no second effect."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone

from hub.models import Case, Environment, Team
from hub.services import import_bundle
from llmeval_site.accounts.tokens import create_token
from llmeval_site.middleware.idempotency import ABANDONED_AFTER, RETENTION
from llmeval_site.models import ApiToken, IdempotencyRecord, Webhook
from preferences.models import Preference
from review.models import Assignment
from review.queue.assignments import claim_pair
from runs.models import EpisodeSession, ModelEndpoint, Run
from tests.hub.bundle_files import write_bundle
from tests.members import member
from tests.review.pages import suggest, waiting_pairs
from tests.site.teams.world import KEY, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def runner(client: Client, tmp_path: Any) -> User:
    version = import_bundle(bundle=write_bundle(tmp_path / "capitals"))
    Environment.objects.filter(pk=version.environment_id).update(visibility=Environment.Visibility.PUBLISHED)
    ModelEndpoint.objects.create(name="small", model="m", base_url="http://127.0.0.1:9/v1")
    user = member("Runner")
    client.force_login(user)
    return user


def start(client: Client, key: str, name: str = "one") -> Any:
    config = {"name": name, "environments": ["capitals"], "models": ["small"], "tracking": {"mlflow": False}}
    return client.post(
        "/api/v1/runs/", json.dumps(config), content_type="application/json", headers={"Idempotency-Key": key}
    )


def create_team(slug: str, *members: User) -> Team:
    group = Group.objects.create(name=slug.title())
    group.user_set.set(members)
    return Team.objects.create(group=group, slug=slug)


def test_repeated_request_starts_one_run_and_gets_the_same_response(client: Client, runner: User) -> None:
    first, second = start(client, "k1"), start(client, "k1")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert second["Idempotency-Replayed"] == "true"
    assert Run.objects.count() == 1


def test_response_that_an_earlier_version_stored_is_sent_as_it_is(client: Client, runner: User) -> None:
    first = start(client, "k1")
    IdempotencyRecord.objects.update(body=first.content, compressed=False)
    assert start(client, "k1").json() == first.json()


def test_other_keys_and_other_users_are_independent(client: Client, runner: User) -> None:
    start(client, "k1")
    start(client, "k2")
    client.force_login(member("Runner", name="other"))
    start(client, "k1")
    assert Run.objects.count() == 3


def test_key_reused_for_another_request_is_rejected(client: Client, runner: User) -> None:
    start(client, "k1")
    answer = start(client, "k1", name="two")
    assert answer.status_code == 422
    assert "another request" in answer.json()["message"]
    assert Run.objects.count() == 1


def test_key_reused_for_another_form_of_the_same_size_is_rejected(client: Client) -> None:
    client.force_login(member())

    def create(url: str) -> Any:
        body = f"url={url}&events=run.failed"
        kind = "application/x-www-form-urlencoded"
        return client.post("/api/v1/webhooks/", body, content_type=kind, headers={"Idempotency-Key": "k1"})

    assert create("https://one.example/").status_code == 201
    assert create("https://two.example/").status_code == 422
    assert create("https://one.example/")["Idempotency-Replayed"] == "true"
    assert Webhook.objects.count() == 1


def test_corrected_request_may_reuse_the_key_of_a_rejected_one(client: Client, runner: User) -> None:
    assert start(client, "k1", name="").status_code == 400
    assert start(client, "k1").status_code == 201


def test_request_that_takes_so_long_that_its_record_is_deleted_gets_its_response(
    client: Client, runner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.web.api.runs.dispatch_run", lambda run: IdempotencyRecord.objects.all().delete())
    assert start(client, "k1").status_code == 201


def test_repeated_request_gets_409_while_the_first_is_processed(client: Client, runner: User) -> None:
    waiting = IdempotencyRecord.objects.create(user=runner, key="k1", request_digest="0" * 64)
    answer = start(client, "k1")
    assert answer.status_code == 409
    assert answer.headers["Retry-After"] == "1"
    assert "can be used again 10 minutes after the first request" in answer.json()["message"]
    IdempotencyRecord.objects.filter(pk=waiting.pk).update(
        created_at=timezone.now() - ABANDONED_AFTER - timedelta(seconds=1)
    )
    assert start(client, "k1").status_code == 201


def test_stored_responses_expire_after_a_day(client: Client, runner: User) -> None:
    start(client, "k1")
    IdempotencyRecord.objects.update(created_at=timezone.now() - RETENTION - timedelta(seconds=1))
    start(client, "k1")
    assert Run.objects.count() == 2


def test_unauthenticated_requests_are_not_stored(client: Client, runner: User) -> None:
    start(client, "k1")
    client.logout()
    assert start(client, "k1").status_code == 401
    assert IdempotencyRecord.objects.count() == 1


def test_missing_csrf_token_is_reported_as_without_a_key(runner: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(runner)
    answer = start(client, "k1")
    assert answer.status_code == 403 and "CSRF" in answer.json()["message"]
    assert not IdempotencyRecord.objects.exists() and not Run.objects.exists()


def test_response_is_not_repeated_to_a_user_without_the_permission(client: Client, runner: User) -> None:
    start(client, "k1")
    runner.groups.clear()
    answer = start(client, "k1")
    assert (answer.status_code, answer.json()["message"][:25]) == (403, "Your account lacks the pe")
    runner.groups.add(Group.objects.get(name="Runner"))
    assert start(client, "k1").status_code == 201
    assert Run.objects.count() == 1


def test_response_is_not_repeated_to_a_token_without_the_scope(client: Client, runner: User) -> None:
    client.logout()
    token, key = create_token(user=runner, scopes=["run"])
    client.defaults["HTTP_AUTHORIZATION"] = f"Token {key}"
    assert [start(client, "k1").status_code for _ in range(2)] == [201, 201]
    ApiToken.objects.filter(pk=token.pk).update(scopes=["read"])
    answer = start(client, "k1")
    assert (answer.status_code, "lacks the scope 'run'" in answer.json()["message"]) == (403, True)


def test_run_that_another_team_owns_by_now_is_not_shown_again(client: Client, runner: User) -> None:
    start(client, "k1")
    run = Run.objects.get()
    cancel = f"/api/v1/runs/{run.pk}/cancel"
    assert client.post(cancel, headers={"Idempotency-Key": "k2"}).status_code == 200
    Run.objects.update(team=create_team("vision"))
    assert start(client, "k1").status_code == 404
    answer = client.post(cancel, headers={"Idempotency-Key": "k2"})
    assert (answer.status_code, "may no longer see" in answer.json()["message"]) == (404, True)
    runner.groups.add(Team.objects.get().group)
    assert start(client, "k1")["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("episodes/", {"case": "c1"}),
        ("episodes/batch", {"n": 1, "group_size": 1}),
        ("episodes/cases", {}),
        ("score", {"items": [{"case": "c1", "messages": []}]}),
    ],
)
def test_episodes_of_a_team_that_the_user_has_left_are_not_shown_again(
    client: Client, runner: User, path: str, body: dict[str, Any]
) -> None:
    team = create_team("vision", runner)
    Environment.objects.update(team=team)
    case = Case.objects.values_list("external_id", flat=True)[0]
    given = json.loads(json.dumps({"environment": "capitals", **body}).replace("c1", case))

    def send() -> Any:
        header = {"Idempotency-Key": "k1"}
        return client.post(f"/api/v1/{path}", json.dumps(given), content_type="application/json", headers=header)

    assert [send().status_code // 100 for _ in range(2)] == [2, 2]
    runner.groups.remove(team.group)
    assert send().status_code == 404


def test_reasons_of_scores_are_not_shown_again_once_they_are_withheld(client: Client, runner: User) -> None:
    case = Case.objects.values_list("external_id", flat=True)[0]
    items = [{"case": case, "messages": [{"role": "assistant", "content": "nonsense"}]}]

    def send(key: str) -> Any:
        body = json.dumps({"environment": "capitals", "items": items})
        header = {"Idempotency-Key": key}
        return client.post("/api/v1/score", body, content_type="application/json", headers=header)

    assert "found 'nonsense'" in send("k1").text and "found 'nonsense'" in send("k1").text
    Environment.objects.update(partly_held_out=True)
    answer = send("k1")
    assert (answer.status_code, "may no longer see" in answer.text) == (404, True)
    assert send("k2").json() == send("k2").json() and "nonsense" not in send("k2").text
    Environment.objects.update(owner=runner)
    assert "found 'nonsense'" in send("k1").text


@pytest.mark.parametrize(
    ("action", "body"),
    [("step", {"message": {"role": "assistant", "content": "nonsense"}}), ("finish", {"reason": "tokens"})],
)
def test_reasons_in_the_answer_to_a_step_are_not_shown_again_once_they_are_withheld(
    client: Client, runner: User, action: str, body: dict[str, Any]
) -> None:
    begun = client.post("/api/v1/episodes/", {"environment": "capitals"}, content_type="application/json").json()

    def send() -> Any:
        path, header = f"/api/v1/episodes/{begun['id']}/{action}", {"Idempotency-Key": "k1"}
        return client.post(path, json.dumps(body), content_type="application/json", headers=header)

    first = send()
    assert first.status_code == 200 and any(rule["reason"] for rule in first.json()["info"]["rules"].values())
    assert send().json() == first.json()
    Environment.objects.update(held_out=True)
    assert send().status_code == 404
    Environment.objects.update(owner=runner)
    assert send().json() == first.json()
    EpisodeSession.objects.all().delete()
    assert send().status_code == 404


def test_words_of_a_judge_are_not_shown_again_once_they_are_withheld(client: Client) -> None:
    (pair,) = waiting_pairs(1, outcome="ff")
    suggestion = suggest(pair, critique="Expected fifteen.")
    Preference.objects.filter(pk=suggestion.pk).update(saw_evidence=True)
    Environment.objects.update(held_out=True)
    user = member("Reviewer")
    user.user_permissions.add(Permission.objects.get(codename="view_held_out"))
    client.force_login(user)
    assignment = claim_pair(pair, user)
    Assignment.objects.filter(pk=assignment.pk).update(hides_suggestion=True)

    def send() -> Any:
        path, header = f"/api/v1/pairs/{pair.pk}/decision", {"Idempotency-Key": "k1"}
        return client.post(path, {"verdict": "A"}, content_type="application/json", headers=header)

    assert "Expected fifteen." in send().text and "Expected fifteen." in send().text
    user.user_permissions.clear()
    assert send().status_code == 404
    Preference.objects.filter(pk=suggestion.pk).update(saw_evidence=False)
    assert send().status_code == 200


def test_decision_on_a_pair_of_a_team_that_the_reviewer_has_left_is_not_shown_again(client: Client) -> None:
    world = make_world()
    Assignment.objects.all().delete()
    client.force_login(world.insider)
    path, header = f"/api/v1/pairs/{KEY}/decision", {"Idempotency-Key": "k1"}

    def send() -> Any:
        return client.post(path, json.dumps({"verdict": "A"}), content_type="application/json", headers=header)

    first = send()
    assert (first.status_code, send().json()) == (200, first.json())
    world.insider.groups.remove(world.team.group)
    assert send().status_code == 404


def test_invalid_key_is_rejected(client: Client, runner: User) -> None:
    for key in ("k" * 256, "", "  "):
        assert start(client, key).status_code == 400
    assert not Run.objects.exists()
