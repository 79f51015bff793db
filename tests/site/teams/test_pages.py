"""Pages of teams: what members see, and how managers change members. No page needs JavaScript."""

import threading
from contextlib import suppress
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.test import Client

from hub.models import Environment, Team
from hub.teams import members
from hub.teams.members import set_manager
from hub.teams.quotas import this_month
from llmeval_site.models import AuditEntry
from runs.models import ModelEndpoint, TeamSpend
from tests.factories import stored_run, stored_version
from tests.members import member
from tests.site.teams.world import stored_team

pytestmark = pytest.mark.django_db
PAGE = "/teams/vision/"


@pytest.fixture
def team(ann: User) -> Team:
    return stored_team("vision", member(name="bob"), managers=(ann,), spend_usd_per_month=10.0, runs_per_day=4)


def names(team: Team) -> dict[str, bool]:
    """Return whether each member is a manager."""
    return {user.username: user in team.managers.all() for user in members.list_members(team)}


def said(client: Client, path: str, given: dict[str, str] | None = None) -> str:
    """Post to *path* and return the messages of the page that follows."""
    answer = client.post(f"{PAGE}{path}", given or {}, follow=True)
    return " ".join(str(message) for message in answer.context["messages"])


def test_page_shows_members_quotas_and_what_the_team_owns(client: Client, team: Team) -> None:
    version = stored_version("sums", 2)
    Environment.objects.update(latest=version, visibility="published", team=team)
    stored_run(version, team=team)
    stored_run(version, team=team)
    ModelEndpoint.objects.create(name="large", model="m", team=team)
    ModelEndpoint.objects.create(name="shared", model="m")
    TeamSpend.objects.create(team=team, month=this_month(), usd=2.5)
    answer = client.get(PAGE)
    owned, quotas = answer.context["owned"], answer.context["quotas"]
    assert (owned.environments, owned.runs, owned.models) == (1, 2, 1)
    assert [(item.used_text, item.quota_text, item.percent) for item in quotas] == [
        ("$2.50", "$10.00", 25),
        ("2", "4", 50),
        ("0\xa0bytes", "no limit", None),
    ]
    page = answer.content.decode()
    assert "1 " in page and page.count(" UTC</td>") == 2
    for path, shown, hidden in (("/models/", "large", "shared"), ("/runs/", "", ""), ("/hub/", "sums", "")):
        assert f'href="{path}?team=vision"' in page
        listed = client.get(f"{path}?team=vision")
        assert listed.status_code == 200 and shown in listed.content.decode()
        assert not hidden or f'href="/models/{hidden}/"' not in listed.content.decode()
    assert len(client.get("/runs/?team=shared").context["page"].rows) == 0
    assert len(client.get("/runs/?team=vision").context["page"].rows) == 2


def test_list_has_the_own_teams_and_all_for_superusers(client: Client, admin_client: Client, team: Team) -> None:
    stored_team("speech")
    assert [(row.slug, role) for row, role in client.get("/teams/").context["teams"]] == [("vision", "manager")]
    rows = admin_client.get("/teams/").context["teams"]
    assert [(row.slug, role, row.member_count) for row, role in rows] == [("speech", "", 0), ("vision", "", 2)]
    for path in ("/", "/account/"):
        assert 'href="/teams/"' in client.get(path).content.decode()
    assert 'href="/teams/vision/"' in client.get("/account/").content.decode()


def test_outsiders_get_the_answer_for_a_team_that_does_not_exist(team: Team) -> None:
    client = Client()
    client.force_login(member(name="eve"))
    for path in ("", "members/", "members/bob/remove/", "members/bob/promote/", "members/ann/demote/"):
        for method in ("get", "post"):
            answers = [getattr(client, method)(f"/teams/{slug}/{path}") for slug in ("vision", "nothing")]
            assert answers[0].status_code == answers[1].status_code
            assert answers[0].status_code in (404, 405)
    assert 'href="/teams/"' not in client.get("/").content.decode()
    assert names(team) == {"ann": True, "bob": False}


def test_manager_adds_a_member(client: Client, team: Team) -> None:
    member(name="cleo")
    assert said(client, "members/", {"user": "cleo"}) == "cleo is a member of Group vision now."
    assert names(team) == {"ann": True, "bob": False, "cleo": False}
    entry = AuditEntry.objects.latest("id")
    assert (entry.username, entry.action, entry.path) == ("ann", "team-add", "/teams/vision/members/cleo/")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("cloe", "There is no account named &#x27;cloe&#x27;. Check its spelling"),
        ("cloe", "An administrator creates accounts, or the sign-in provider at the first sign-in."),
        ("bob", "bob is a member of the team vision already."),
        ("gone", "The account gone is disabled. An administrator can enable it."),
        ("", "This field is required."),
    ],
)
def test_account_that_cannot_be_added_is_explained(client: Client, team: Team, name: str, problem: str) -> None:
    User.objects.create_user("gone", is_active=False)
    answer = client.post(f"{PAGE}members/", {"user": name})
    assert answer.status_code == 422 and problem in answer.content.decode()
    assert names(team) == {"ann": True, "bob": False}
    assert not AuditEntry.objects.exists()


def test_manager_removes_a_member_after_a_question(client: Client, team: Team) -> None:
    question = client.get(f"{PAGE}members/bob/remove/").content.decode()
    assert "Remove bob from Group vision?" in question and "bob" in names(team)
    assert said(client, "members/bob/remove/") == "bob is no longer a member of Group vision."
    assert names(team) == {"ann": True}
    assert said(client, "members/bob/remove/") == "'bob' is not a member of the team vision."
    assert client.get(f"{PAGE}members/bob/remove/").status_code == 302
    entry = AuditEntry.objects.order_by("id")[0]
    assert (entry.action, entry.path) == ("team-remove", "/teams/vision/members/bob/remove/")


def test_manager_makes_members_managers_and_back(client: Client, team: Team) -> None:
    assert said(client, "members/bob/promote/") == "bob manages Group vision."
    assert names(team) == {"ann": True, "bob": True}
    assert "bob" in client.get(f"{PAGE}members/bob/demote/").content.decode()
    assert said(client, "members/bob/demote/") == "bob no longer manages Group vision."
    assert names(team) == {"ann": True, "bob": False}
    assert list(AuditEntry.objects.order_by("id").values_list("action", flat=True)) == ["team-promote", "team-demote"]


@pytest.mark.parametrize("act", ["remove", "demote"])
def test_last_manager_stays_until_there_is_another(client: Client, team: Team, act: str) -> None:
    expected = "ann is the last manager of the team vision. Make another member a manager first."
    assert said(client, f"members/ann/{act}/") == expected
    retired = User.objects.create_user("retired", is_active=False)
    retired.groups.add(team.group)
    team.managers.add(retired)
    team.managers.add(member(name="left"))  # no longer in the group
    assert said(client, f"members/ann/{act}/") == expected
    client.post(f"{PAGE}members/bob/promote/")
    client.post(f"{PAGE}members/ann/{act}/")
    assert names(team).get("ann") is (None if act == "remove" else False)


def test_superuser_may_remove_the_last_manager(admin_client: Client, team: Team) -> None:
    assert said(admin_client, "members/ann/remove/") == "ann is no longer a member of Group vision."
    assert said(admin_client, "members/bob/promote/") == "bob manages Group vision."
    assert names(team) == {"bob": True}


def test_members_who_do_not_manage_change_nothing(team: Team) -> None:
    client = Client()
    client.force_login(User.objects.get(username="bob"))
    member(name="cleo")
    page = client.get(PAGE).content.decode()
    assert "ann" in page and "Add a member" not in page and "/remove/" not in page
    for path in ("members/ann/remove/", "members/bob/promote/", "members/ann/demote/"):
        assert client.post(f"{PAGE}{path}").status_code == 403
    assert client.get(f"{PAGE}members/ann/remove/").status_code == 403
    for given in ({"user": "cleo"}, {}):
        assert client.post(f"{PAGE}members/", given).status_code == 403
    assert names(team) == {"ann": True, "bob": False}


def test_managers_cannot_give_the_permissions_of_a_group(client: Client, admin_client: Client, team: Team) -> None:
    member(name="cleo")
    team.group.permissions.add(Permission.objects.get(codename="curate_environment"))
    answer = client.post(f"{PAGE}members/", {"user": "cleo"})
    assert answer.status_code == 422 and "only an administrator can add" in answer.content.decode()
    assert said(admin_client, "members/", {"user": "cleo"}) == "cleo is a member of Group vision now."


def test_manager_who_left_the_group_and_returns_is_a_member(team: Team, ann: User) -> None:
    team.managers.add(member(name="cleo"))
    members.add_member(team=team, username="cleo", by=ann)
    assert names(team)["cleo"] is False


@pytest.mark.django_db(transaction=True)
def test_managers_who_demote_each_other_at_once_leave_one(team: Team, ann: User) -> None:
    bob = User.objects.get(username="bob")
    team.managers.add(bob)

    def demote_bob() -> None:
        try:
            with suppress(PermissionDenied):
                set_manager(team=team, username="bob", manages=False, by=ann)
        finally:
            connection.close()

    thread = threading.Thread(target=demote_bob)
    with transaction.atomic():
        set_manager(team=team, username="ann", manages=False, by=bob)
        thread.start()
        thread.join(1)  # it waits for the row of the team; otherwise it would not see that ann manages no more
    thread.join()
    assert names(team) == {"ann": False, "bob": True}


def test_quota_that_is_nearly_spent_is_not_shown_as_all(client: Client, team: Team) -> None:
    TeamSpend.objects.create(team=team, month=this_month(), usd=9.996)
    page = unescape(client.get(PAGE).content.decode())
    assert "<small>> 99.9 %</small>" in page and "100 %" not in page
    TeamSpend.objects.update(usd=10.0)
    assert "<small>100.0 %</small>" in client.get(PAGE).content.decode()
