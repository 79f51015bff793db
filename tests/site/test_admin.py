"""The admin of users, tokens and webhooks: who is deleted with what, and that it reveals no secrets."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from hub.models import Environment, Team
from llmeval_site.accounts.tokens import create_token
from llmeval_site.models import ApiToken, OpenIDIdentity, Webhook
from llmeval_site.webhooks.deliveries import create_webhook
from review.models import Assignment
from runs.models import Run
from tests.factories import stored_run, stored_version
from tests.members import member
from tests.review.pages import waiting_pairs

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client: Client) -> Client:
    user = member(staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_apitoken", "view_webhook"]))
    client.force_login(user)
    return client


def test_secrets_are_not_found_letter_by_letter(staff: Client) -> None:
    webhook = create_webhook(user=member(name="other"), url="https://example.org/", events=[Webhook.Event.FAILED])
    token, _ = create_token(user=webhook.user, scopes=["read"])
    for page, field, secret in (("webhook", "secret", webhook.secret), ("apitoken", "digest", token.digest)):
        address = f"/admin/llmeval_site/{page}/"
        assert staff.get(address).status_code == 200
        assert secret not in staff.get(f"{address}{webhook.pk if page == 'webhook' else token.pk}/change/").text
        for lookup in (field, f"{field}__startswith", f"{field}__gt"):
            assert staff.get(address, {lookup: secret[:7]}).status_code == 400, lookup


def test_fields_of_runs_that_are_not_shown_are_not_found_letter_by_letter(client: Client) -> None:
    user = member(staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_run"))
    client.force_login(user)
    error = "MLflow rejected the assessment of trace tr-1"
    stored_run(
        stored_version(held_out=True), tracking={"parent": "mlflow-run"}, summaries={"tracking": {"error": error}}
    )
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    address = "/admin/runs/run/"
    assert "test run" in client.get(address).text
    for lookup in ("tracking__icontains", "tracking__parent__startswith", "summaries__icontains", "summaries__regex"):
        assert client.get(address, {lookup: "mlflow"}).status_code == 400, lookup
    for shown in ({"status__exact": "completed"}, {"deleted": "0"}, {"created_by__id__exact": user.pk}, {"q": "test"}):
        assert client.get(address, shown).status_code == 200, shown


def deletion_page(client: Client, *users: User) -> str:
    """Delete *users*, one on its own page and several with the action of the list; return the page that follows."""
    data: dict[str, Any] = {"post": "yes"}
    if len(users) == 1:
        return client.post(f"/admin/auth/user/{users[0].pk}/delete/", data, follow=True).text
    data |= {"action": "delete_selected", "_selected_action": [user.pk for user in users]}
    return client.post("/admin/auth/user/", data, follow=True).text


@pytest.mark.parametrize("count", [1, 2])
def test_users_are_deleted_with_their_tokens(admin_client: Client, count: int) -> None:
    users = [member(name=f"user{i}") for i in range(count)]
    for user in users:
        create_token(user=user, scopes=["read"])
        create_webhook(user=user, url="https://example.org/", events=[Webhook.Event.FAILED])
    assert "successfully" in deletion_page(admin_client, *users).lower()
    assert not User.objects.filter(username__startswith="user").exists()
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("names", [["ann"], ["ann", "bob"]])
def test_users_who_have_reviewed_are_not_deleted_but_to_be_deactivated(admin_client: Client, names: list[str]) -> None:
    users = [member("Reviewer", name=name) for name in names]
    [pair] = waiting_pairs()
    Assignment.objects.create(pair=pair, reviewer=users[0], slot=0, state=Assignment.State.DONE, swapped=False)
    create_token(user=users[0], scopes=["read"])
    page = deletion_page(admin_client, *users)
    assert f'href="/admin/auth/user/{users[0].pk}/change/"' in page
    assert "Reviews of ann" in page and "Deactivate the account" in page and "permission" not in page
    assert User.objects.filter(username__in=names).count() == len(names)
    assert Assignment.objects.exists() and ApiToken.objects.exists()


def test_assignments_are_searched_by_reviewer_pair_case_and_skip_reason(client: Client) -> None:
    client.force_login(member("Curator", name="cat", staff=True))
    first, second = waiting_pairs(2)
    rows = [
        Assignment.objects.create(
            pair=pair, reviewer=member(name=name), slot=0, swapped=False, state="skipped", skip_reason=reason
        )
        for pair, name, reason in ((first, "ann", "Too long."), (second, "bob", "Not clear."))
    ]
    for text in ("ann", str(first.pk), first.case.external_id, "too long"):
        page = client.get("/admin/review/assignment/", {"q": text}).text
        assert f"/assignment/{rows[0].pk}/change/" in page, text
        assert f"/assignment/{rows[1].pk}/change/" not in page, text


@pytest.mark.parametrize("model", ["hub/team", "auth/group"])
def test_the_page_for_deleting_a_team_names_what_it_owns(admin_client: Client, model: str) -> None:
    group = Group.objects.create(name="vision")
    team = Team.objects.create(group=group, slug="vision")
    run = stored_run(stored_version())
    Run.objects.filter(pk=run.pk).update(team=team)
    address = f"/admin/{model}/{team.pk if model == 'hub/team' else group.pk}/delete/"
    for page in (admin_client.get(address).text, admin_client.post(address, {"post": "yes"}).text):
        assert f"(run {run.pk})" in page
        assert "permission" not in page
    assert Team.objects.filter(pk=team.pk).exists()


def test_staff_who_change_users_cannot_make_superusers_or_take_over_their_accounts(client: Client) -> None:
    root = User.objects.create_superuser("root", email="root@example.org")
    helper = User.objects.create_user("helper", is_staff=True)
    permissions = Permission.objects.filter(codename__in=["view_user", "change_user", "delete_user", "add_user"])
    helper.user_permissions.set(permissions)
    client.force_login(helper)
    form = {"username": "helper", "is_active": "on", "is_staff": "on", "is_superuser": "on", "email": "h@example.org"}
    every = [str(pk) for pk in Permission.objects.values_list("pk", flat=True)]
    form |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    answer = client.post(f"/admin/auth/user/{helper.pk}/change/", {**form, "user_permissions": every})
    assert answer.status_code == 302
    helper.refresh_from_db()
    assert (helper.email, helper.is_superuser) == ("h@example.org", False)
    assert helper.user_permissions.count() == len(permissions)
    password = {"password1": "Long-enough-771", "password2": "Long-enough-771", "usable_password": "true"}
    for path, given in (("password", password), ("change", {**form, "username": "root"}), ("delete", {"post": "yes"})):
        assert client.post(f"/admin/auth/user/{root.pk}/{path}/", given).status_code == 403, path
    chosen = {"action": "delete_selected", "_selected_action": str(root.pk), "post": "yes"}
    assert client.post("/admin/auth/user/", chosen).status_code == 403
    assert User.objects.get(username="root").email == "root@example.org"


def staff_with(client: Client, *codenames: str) -> User:
    """Sign in a member of staff who has these single permissions."""
    helper = User.objects.create_user("helper", is_staff=True)
    helper.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(helper)
    return helper


def test_staff_who_change_groups_cannot_give_them_permissions(client: Client) -> None:
    helper = staff_with(client, "view_group", "add_group", "change_group")
    group = Group.objects.get(name="Reviewer")
    helper.groups.add(group)
    before = set(group.permissions.values_list("pk", flat=True))
    every = [str(pk) for pk in Permission.objects.values_list("pk", flat=True)]
    assert group.permissions.all()[0].name in client.get(f"/admin/auth/group/{group.pk}/change/").text
    changed = client.post(f"/admin/auth/group/{group.pk}/change/", {"name": "Reader", "permissions": every})
    added = client.post("/admin/auth/group/add/", {"name": "mine", "permissions": every})
    assert changed.status_code == added.status_code == 302
    group.refresh_from_db()
    assert (group.name, set(group.permissions.values_list("pk", flat=True))) == ("Reader", before)
    assert not Group.objects.get(name="mine").permissions.exists()


def test_superusers_give_groups_permissions(admin_client: Client) -> None:
    permission = Permission.objects.get(codename="view_held_out")
    admin_client.post("/admin/auth/group/add/", {"name": "readers", "permissions": [str(permission.pk)]})
    assert list(Group.objects.get(name="readers").permissions.all()) == [permission]


def test_staff_who_link_identities_cannot_take_over_superusers(client: Client) -> None:
    root = User.objects.create_superuser("root")
    helper = staff_with(client, "view_user", "view_openididentity", "add_openididentity", "delete_openididentity")
    issuer, page = "https://id.example.org", "/admin/llmeval_site/openididentity/"
    assert client.post(f"{page}add/", {"user": root.pk, "issuer": issuer, "subject": "mine"}).status_code == 200
    identity = OpenIDIdentity.objects.create(user=root, issuer=issuer, subject="root")
    assert client.post(f"{page}{identity.pk}/delete/", {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": str(identity.pk), "post": "yes"}
    assert client.post(page, chosen).status_code == 403
    assert list(OpenIDIdentity.objects.values_list("subject", flat=True)) == ["root"]
    assert client.post(f"{page}add/", {"user": helper.pk, "issuer": issuer, "subject": "h"}).status_code == 302
    assert client.post(f"{page}{helper.openid_identities.get().pk}/delete/", {"post": "yes"}).status_code == 302


def test_superusers_link_identities_of_superusers(admin_client: Client) -> None:
    given = {"user": User.objects.get().pk, "issuer": "https://id.example.org", "subject": "root"}
    assert admin_client.post("/admin/llmeval_site/openididentity/add/", given).status_code == 302
    assert OpenIDIdentity.objects.get().user.is_superuser


@pytest.mark.parametrize("action", [False, True])
@pytest.mark.parametrize("model", ["hub/team", "auth/group"])
def test_the_page_for_deleting_a_team_names_nothing_to_staff_of_other_teams(
    client: Client, model: str, action: bool
) -> None:
    helper = staff_with(client, "view_team", "delete_team", "view_group", "delete_group")
    group = Group.objects.create(name="vision")
    team = Team.objects.create(group=group, slug="vision")
    run = stored_run(stored_version(), name="obsidian")
    Run.objects.filter(pk=run.pk).update(team=team)
    key = team.pk if model == "hub/team" else group.pk

    def page() -> str:
        if action:
            return client.post(f"/admin/{model}/", {"action": "delete_selected", "_selected_action": str(key)}).text
        return client.get(f"/admin/{model}/{key}/delete/").text

    assert "What the team vision owns" in page() and "obsidian" not in page()
    client.post(f"/admin/{model}/{key}/delete/", {"post": "yes"})
    assert Team.objects.filter(pk=team.pk).exists()
    helper.groups.add(group)
    assert "obsidian" in page()
