"""Role models of episodes over REST use the spending quota of a team, as runs do."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import Client

from hub.models import Environment, Team
from hub.services import import_bundle
from hub.teams.quotas import QuotaExceeded
from runs.limits.team_quotas import get_spend_use, grant_team_part
from runs.models import EpisodeSession, ModelEndpoint, TeamSpend
from runs.rollouts.creation import RolloutOptions, create_rollout
from runs.rollouts.steps import step_rollout
from tests.endpoint import Answer, Endpoint, completion, endpoint
from tests.factories import stored_run
from tests.members import member
from tests.runs.rollouts.test_rollouts import TALK, user_line
from tests.site.teams.world import stored_team

pytestmark = pytest.mark.django_db(transaction=True)

ROLES = {"customer": ["small"], "grader": ["small"]}
SAID = {"role": "assistant", "content": "Is it tea?"}
GRADE = '{"polite": {"reason": "It is.", "score": 1.0}}'
USD = 1.0  # of each call: it has 10 tokens
NEW = {"environment": "talk", "case": "one", "roles": ROLES}


def reply(request: dict[str, Any], number: int = 0) -> Answer:
    """Answer as the user, or as the judge if the request has criteria."""
    judged = "polite" in json.dumps(request["messages"])
    return completion(GRADE if judged else "Yes! ###" if SAID["content"] in json.dumps(request) else "Guess.")


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with endpoint(reply) as server:
        ModelEndpoint.objects.create(
            name="small", model="m", base_url=server.url, price_input=USD * 100_000, price_output=0
        )
        yield server


@pytest.fixture
def ann(client: Client) -> User:
    ann = member(name="ann")
    client.force_login(ann)
    return ann


@pytest.fixture(autouse=True)
def talk(tmp_path: Path) -> Environment:
    bundle = tmp_path / "talk"
    bundle.mkdir()
    (bundle / "environment.yaml").write_text(TALK, encoding="utf-8")
    (bundle / "cases.jsonl").write_text('{"id": "one", "input": "", "target": "tea"}', encoding="utf-8")
    version = import_bundle(bundle=bundle)
    Environment.objects.update(visibility="published")
    return version.environment


@pytest.fixture
def team(ann: User) -> Team:
    return stored_team("vision", ann, spend_usd_per_month=4.5)


def post(client: Client, path: str, **body: object) -> HttpResponse:
    answer: HttpResponse = client.post(f"/api/v1/{path}", json.dumps(body), content_type="application/json")
    return answer


def start(client: Client, **changes: object) -> str:
    answer = post(client, "episodes/", **{**NEW, **changes})
    assert answer.status_code == 201, answer.content
    return str(json.loads(answer.content)["id"])


def exceeded(answer: HttpResponse) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(answer.content)
    assert (answer.status_code, body["code"]) == (429, "quota_exceeded"), body
    assert body["quota"] == 4.5 and body["resets_at"] and int(answer["Retry-After"]) > 0
    return body


def spent(team: Team) -> float:
    return get_spend_use(team).used


def test_calls_of_role_models_count_until_the_quota_is_spent(client: Client, team: Team, server: Endpoint) -> None:
    first = start(client)  # the first turn of the user
    assert spent(team) == USD
    done = post(client, f"episodes/{first}/step", message=SAID)  # a turn of the user and the judge
    assert json.loads(done.content)["reward"] == 1.0
    assert spent(team) == 3 * USD
    row = TeamSpend.objects.get()
    assert (row.run, row.of_episodes) == (None, True)
    second = start(client)
    answer = post(client, f"episodes/{second}/step", message=SAID)  # the user replies, and the judge may not
    body = exceeded(answer)
    assert "its runs and episodes have spent $5.00" in body["message"] and body["used"] == 5 * USD
    assert len(server.requests) == 5
    exceeded(post(client, "episodes/", **NEW))
    exceeded(post(client, "episodes/batch", environment="talk", n=1, roles=ROLES))
    exceeded(post(client, "episodes/cases", environment="talk", roles=ROLES))
    exceeded(post(client, "score", environment="talk", items=[{"case": "one", "messages": [SAID]}], roles=ROLES))
    assert (len(server.requests), spent(team)) == (5, 5 * USD)
    Team.objects.update(spend_usd_per_month=10.0)
    again = post(client, f"episodes/{second}/step", message=SAID)  # nothing was changed by the step that failed
    assert json.loads(again.content)["reward"] == 1.0


def test_long_step_stores_the_error_for_requests_that_ask_later(client: Client, team: Team, server: Endpoint) -> None:
    episode = start(client)
    Team.objects.update(spend_usd_per_month=0.5)
    answer = post(client, f"episodes/{episode}/step?wait=0", message=SAID, turn=0)
    while answer.status_code == 202:
        answer = client.get(f"/api/v1/episodes/{episode}/turns/0?wait=5")
    body = json.loads(answer.content)
    assert (answer.status_code, body["code"], body["quota"], body["used"]) == (429, "quota_exceeded", 0.5, USD)
    assert body["message"].count("It resets on") == 1


def test_conversations_count_and_each_has_its_error(client: Client, team: Team, server: Endpoint) -> None:
    items = [{"case": "one", "messages": [SAID]}] * 3
    scored = json.loads(post(client, "score", environment="talk", items=items, roles=ROLES).content)["items"]
    assert [item.get("reward") for item in scored] == [1.0, None, None]
    assert {item["error"]["code"] for item in scored[1:]} == {"quota_exceeded"}
    assert (len(server.requests), spent(team)) == (5, 5 * USD)


def test_team_that_the_user_has_left_pays_for_no_step(client: Client, ann: User, team: Team, server: Endpoint) -> None:
    episode = start(client)
    ann.groups.clear()
    answer = post(client, f"episodes/{episode}/step", message=SAID)
    body = json.loads(answer.content)
    assert (answer.status_code, body["errors"][0]["path"]) == (400, "roles"), body
    assert "You have left the team vision" in body["errors"][0]["message"]
    assert (len(server.requests), spent(team)) == (1, USD)
    start(client)  # nobody pays for this one
    assert spent(team) == USD


def test_episodes_and_runs_share_the_quota(client: Client, team: Team, server: Endpoint, talk: Environment) -> None:
    run = stored_run(talk.versions.get(), team=team)
    start(client)
    parts = sum(grant_team_part(run, 0.0).usd for _ in range(200))
    assert parts == pytest.approx(4.5 - USD)
    exceeded(post(client, "episodes/", **NEW))


def test_steps_at_once_exceed_the_quota_by_no_more_than_the_calls_in_flight(
    ann: User, team: Team, server: Endpoint, talk: Environment
) -> None:
    Team.objects.update(spend_usd_per_month=12.0)
    sessions = [
        create_rollout(RolloutOptions(user=ann, version=talk.versions.get(), roles=ROLES)).session for _ in range(8)
    ]
    assert spent(team) == 8 * USD

    def step(session: EpisodeSession) -> str:
        try:
            return "done" if step_rollout(session=session, message=SAID).done else "open"
        except QuotaExceeded:
            return "exceeded"
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(step, sessions))
    assert "exceeded" in ends and len(server.requests) == spent(team) <= 12.0 + 4 * USD
    assert set(EpisodeSession.objects.filter(done=False).values_list("revision", flat=True)) == {0}


def test_team_is_that_of_the_environment_or_the_models_or_the_named_one(
    client: Client, ann: User, team: Team, server: Endpoint
) -> None:
    speech = stored_team("speech", ann)
    answer = post(client, "episodes/", **NEW)
    body = json.loads(answer.content)
    assert answer.status_code == 400 and body["errors"][0]["path"] == "team"
    assert "speech, vision, or shared" in body["message"]
    start(client, team="speech")
    assert (spent(speech), spent(team)) == (USD, 0.0)
    start(client, team="shared")
    Environment.objects.update(team=team)
    start(client)
    assert (spent(speech), spent(team)) == (USD, USD)
    ModelEndpoint.objects.update(team=speech)
    assert "Use only what one team owns" in json.loads(post(client, "episodes/", **NEW).content)["message"]
    Environment.objects.update(team=None)
    start(client)
    assert (spent(speech), spent(team)) == (2 * USD, USD)


def test_free_models_and_recordings_need_no_quota(client: Client, ann: User, team: Team, server: Endpoint) -> None:
    Team.objects.update(spend_usd_per_month=0.0)
    start(client, recordings=[user_line(0, "Guess.")])
    ModelEndpoint.objects.update(price_input=0)
    start(client)
    assert (len(server.requests), spent(team)) == (1, 0.0)


def test_calls_count_from_when_their_model_gets_a_price(client: Client, team: Team, server: Endpoint) -> None:
    ModelEndpoint.objects.update(price_input=0)
    episode = start(client)
    assert spent(team) == 0
    ModelEndpoint.objects.update(price_input=USD * 100_000)
    assert post(client, f"episodes/{episode}/step", message=SAID).status_code == 200
    assert spent(team) == 2 * USD


def test_member_of_several_teams_names_one_only_if_models_cost_money(
    client: Client, ann: User, team: Team, server: Endpoint
) -> None:
    stored_team("audio", ann)
    assert json.loads(post(client, "episodes/", **NEW).content)["errors"][0]["path"] == "team"
    ModelEndpoint.objects.update(price_input=0)
    start(client)


def test_quota_needs_prices_and_token_counts(client: Client, team: Team) -> None:
    with endpoint(lambda request, number: completion("Guess.", usage={})) as server:
        ModelEndpoint.objects.create(name="small", model="m", base_url=server.url)
        body = json.loads(post(client, "episodes/", **NEW).content)
        assert "small has no price" in body["message"] and body["errors"][0]["path"] == "roles"
        ModelEndpoint.objects.update(price_input=1)
        answer = post(client, "episodes/", **NEW)
        assert answer.status_code == 503 and "carried no token counts" in json.loads(answer.content)["message"]
        Team.objects.update(spend_usd_per_month=None)
        start(client)
