"""Teams over REST: the own teams, use of quotas, members and their changes."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from hub.models import Team
from hub.teams.quotas import end_of_day, end_of_month, this_month
from llmeval_site.accounts.tokens import create_token
from llmeval_site.models import AuditEntry
from runs.models import TeamSpend
from tests.members import member
from tests.site.teams.world import stored_team

pytestmark = pytest.mark.django_db
BASE = "/api/v1/teams/"
MEMBERS = f"{BASE}vision/members/"


@pytest.fixture
def team(ann: User) -> Team:
    return stored_team("vision", member(name="bob"), managers=(ann,), spend_usd_per_month=10.0)


def send(client: Client, method: str, address: str, **body: object) -> HttpResponse:
    given = (json.dumps(body), "application/json") if method != "get" else ()
    answer: HttpResponse = getattr(client, method)(address, *given)
    return answer


def roles(client: Client, query: str = "") -> dict[str, str]:
    return {item["user"]: item["role"] for item in client.get(f"{MEMBERS}{query}").json()["results"]}


def problem(answer: HttpResponse, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.content
    body: dict[str, Any] = json.loads(answer.content)
    assert set(body) >= {"message", "code", "errors", "type", "title", "status", "detail"}
    return body


def test_team_has_its_quotas_and_what_it_owns(client: Client, team: Team) -> None:
    stored_team("speech")
    TeamSpend.objects.create(team=team, month=this_month(), usd=2.5)
    assert [item["team"] for item in client.get(BASE).json()["results"]] == ["vision"]
    assert client.get(f"{BASE}?q=spee").json()["results"] == []
    body = client.get(f"{BASE}vision/").json()
    assert (body["name"], body["owns"]) == ("Group vision", {"environments": 0, "runs": 0, "models": 0})
    assert body["quotas"] == {
        "spend_usd_per_month": {
            "used": 2.5,
            "quota": 10.0,
            "unit": "USD",
            "resets_at": end_of_month().isoformat(),
        },
        "runs_per_day": {"used": 0, "quota": None, "unit": "runs", "resets_at": end_of_day().isoformat()},
        "storage_bytes": {"used": 0, "quota": None, "unit": "bytes", "resets_at": None},
    }


def test_members_are_listed_and_filtered(client: Client, team: Team) -> None:
    assert roles(client) == {"ann": "manager", "bob": "member"}
    assert roles(client, "?role=manager") == {"ann": "manager"}
    assert roles(client, "?q=BO") == {"bob": "member"}
    assert client.get(f"{MEMBERS}bob/").json() == {"user": "bob", "role": "member", "active": True}
    for query in ("role=owner", "rolle=member"):
        body = problem(client.get(f"{MEMBERS}?{query}"), 400)
        assert [error["path"] for error in body["errors"]] == [query.partition("=")[0]]


def test_repeated_addition_gets_the_address_of_the_member_again(client: Client, team: Team) -> None:
    member(name="cleo")
    key = {"Idempotency-Key": "k1"}
    answers = [client.post(MEMBERS, {"user": "cleo"}, "application/json", headers=key) for _ in range(2)]
    assert [answer["Location"] for answer in answers] == [f"{MEMBERS}cleo/"] * 2
    assert "Idempotency-Replayed" in answers[1]


def test_manager_adds_changes_and_removes_members(client: Client, team: Team) -> None:
    member(name="cleo")
    added = send(client, "post", MEMBERS, user="cleo")
    assert (added.status_code, added["Location"]) == (201, f"{MEMBERS}cleo/")
    assert json.loads(added.content) == {"user": "cleo", "role": "member", "active": True}
    assert json.loads(send(client, "patch", f"{MEMBERS}cleo/", role="manager").content)["role"] == "manager"
    assert client.delete(f"{MEMBERS}bob/").status_code == 204
    assert roles(client) == {"ann": "manager", "cleo": "manager"}
    assert list(AuditEntry.objects.order_by("id").values_list("action", "method", "path")) == [
        ("api-team-members", "POST", f"{MEMBERS}cleo/?role=member"),
        ("api-team-member", "PATCH", f"{MEMBERS}cleo/?role=manager"),
        ("api-team-member", "DELETE", f"{MEMBERS}bob/"),
    ]


def test_added_manager_manages(client: Client, team: Team) -> None:
    member(name="cleo")
    assert json.loads(send(client, "post", MEMBERS, user="cleo", role="manager").content)["role"] == "manager"
    assert roles(client)["cleo"] == "manager"


def test_errors_say_what_is_wrong(client: Client, team: Team) -> None:
    body = problem(send(client, "post", MEMBERS, user="nobody"), 400)
    assert body["errors"][0]["path"] == "user" and "An administrator creates accounts" in body["message"]
    assert problem(send(client, "post", MEMBERS, user="bob"), 409)["message"].startswith("bob is a member")
    assert problem(send(client, "post", MEMBERS, usr="bob"), 400)["errors"][0]["path"] in ("user", "usr")
    assert problem(send(client, "post", MEMBERS, user="bob", role="owner"), 400)["errors"][0]["path"] == "role"
    assert problem(send(client, "patch", f"{MEMBERS}nobody/", role="manager"), 404)["code"] == "not_found"
    assert problem(client.delete(f"{MEMBERS}nobody/"), 404)["code"] == "not_found"
    assert "last manager" in problem(client.delete(f"{MEMBERS}ann/"), 409)["message"]
    assert "last manager" in problem(send(client, "patch", f"{MEMBERS}ann/", role="member"), 409)["message"]
    answer = client.get(f"{BASE}nothing/", headers={"Accept": "application/json, application/problem+json"})
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
    assert roles(client) == {"ann": "manager", "bob": "member"}


def test_only_managers_change_members(team: Team) -> None:
    client = Client()
    client.force_login(User.objects.get(username="bob"))
    member(name="cleo")
    assert roles(client) == {"ann": "manager", "bob": "member"}
    problem(send(client, "post", MEMBERS, user="cleo"), 403)
    problem(send(client, "patch", f"{MEMBERS}bob/", role="manager"), 403)
    problem(client.delete(f"{MEMBERS}ann/"), 403)
    assert roles(client) == {"ann": "manager", "bob": "member"}


def test_outsiders_get_the_answer_for_a_team_that_does_not_exist(team: Team) -> None:
    client = Client()
    client.force_login(member(name="eve"))
    for path, method in (("", "get"), ("members/", "get"), ("members/", "post"), ("members/bob/", "patch")):
        answers = [send(client, method, f"{BASE}{slug}/{path}", user="eve", role="member") for slug in ("vision", "x")]
        assert [problem(answer, 404)["message"].replace("vision", "x") for answer in answers] == [
            "There is no team 'x', or you are not one of its members."
        ] * 2
    assert client.delete(f"{MEMBERS}bob/").status_code == client.delete(f"{BASE}x/members/bob/").status_code == 404


def test_changes_need_a_token_with_the_scope_teams(team: Team, ann: User) -> None:
    member(name="cleo")
    for scope, status in (("run", 403), ("teams", 201)):
        _, key = create_token(user=ann, scopes=[scope])
        client = Client(headers={"Authorization": f"Token {key}"})
        assert send(client, "post", MEMBERS, user="cleo").status_code == status
