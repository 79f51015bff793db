"""The admin of environments: what curators can and cannot do."""

import pytest
from django.contrib.auth.models import Permission, User

from hub.models import CaseDefect, Environment, EnvironmentVersion
from tests.factories import stored_version

pytestmark = pytest.mark.django_db
PASSED = {"gates": [{"name": "gold", "status": "passed", "checked": 4, "failed": 0, "note": ""}]}


@pytest.fixture
def version():
    version = stored_version()
    Environment.objects.update(latest=version)
    return version


@pytest.fixture
def curator(client, db):
    user = User.objects.create_user("curator", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="curate_environment"))
    client.force_login(user)
    return client


def act(client, model, action, pk):
    return client.post(
        f"/admin/hub/{model}/", {"action": action, "_selected_action": [pk], "index": 0}, follow=True
    ).content.decode()


def test_publishing_without_a_certificate_is_rejected(curator, version):
    assert "gates have not been run" in act(curator, "environment", "publish", version.environment_id)
    EnvironmentVersion.objects.update(certificate=PASSED)
    act(curator, "environment", "publish", version.environment_id)
    assert Environment.objects.get().visibility == Environment.Visibility.PUBLISHED
    act(curator, "environment", "retire", version.environment_id)
    assert Environment.objects.get().visibility == Environment.Visibility.RETIRED


def test_only_published_environments_are_retired_and_the_others_are_named(curator, version):
    shown = stored_version("shown").environment
    Environment.objects.filter(pk=shown.pk).update(visibility=Environment.Visibility.PUBLISHED)
    selected = {"action": "retire", "_selected_action": [version.environment_id, shown.pk], "index": 0}
    page = curator.post("/admin/hub/environment/", selected, follow=True).content.decode().lower()
    assert "sums is private; only a published environment can be retired." in page
    assert "shown is retired." in page
    assert dict(Environment.objects.values_list("slug", "visibility")) == {"sums": "private", "shown": "retired"}
    assert "is retired; only a published" in act(curator, "environment", "retire", shown.pk)


def test_texts_can_be_edited_and_the_certificate_is_shown(curator, version):
    EnvironmentVersion.objects.update(certificate=PASSED)
    page = f"/admin/hub/environment/{version.environment_id}/change/"
    assert "4 checked" in curator.get(page).content.decode()
    fields = {
        "title": "New",
        "summary": "s",
        "category": "reasoning",
        "tags": "one, two-three,, one",
        "license": "",
        "visibility": "published",
    }
    curator.post(page, fields)
    environment = Environment.objects.get()
    assert (environment.title, environment.visibility) == ("New", Environment.Visibility.PRIVATE)
    assert environment.tags == ["one", "two-three"]
    assert 'value="one, two-three"' in curator.get(page).content.decode()
    for wrong in ({"tags": "a tag"}, {"category": "nonsense"}):
        assert curator.post(page, fields | {"title": "Newer"} | wrong).status_code == 200
    assert Environment.objects.get().title == "New"


def test_environment_can_be_featured_and_unfeatured(curator, version):
    act(curator, "environment", "feature", version.environment_id)
    assert Environment.objects.get().featured
    act(curator, "environment", "unfeature", version.environment_id)
    assert not Environment.objects.get().featured


def test_list_shows_the_result_of_the_gates(curator, version):
    for certificate, word in (
        (None, "gates not run"),
        (PASSED, "gates passed"),
        ({"gates": [{"name": "wrong", "status": "failed"}]}, "failed: wrong"),
    ):
        EnvironmentVersion.objects.update(certificate=certificate)
        assert word in curator.get("/admin/hub/environment/").content.decode()


def test_held_out_cannot_be_removed(curator, version):
    Environment.objects.update(held_out=True)
    page = f"/admin/hub/environment/{version.environment_id}/change/"
    curator.post(page, {"title": "New", "summary": "s", "category": "reasoning", "tags": "", "license": ""})
    environment = Environment.objects.get()
    assert (environment.title, environment.held_out) == ("New", True)


def test_version_content_cannot_be_changed_in_the_admin(curator, version):
    page = f"/admin/hub/environmentversion/{version.pk}/"
    curator.post(f"{page}change/", {"deprecated": "Old.", "version": "9.9.9", "digest": "0" * 64})
    changed = EnvironmentVersion.objects.get()
    assert (changed.deprecated, changed.version, changed.digest) == ("Old.", "1.0.0", version.digest)
    assert curator.get(f"{page}delete/").status_code == 403
    assert curator.get("/admin/hub/environmentversion/add/").status_code == 403


def test_list_of_versions_shows_the_first_characters_of_digests(curator, version):
    page = curator.get("/admin/hub/environmentversion/", {"q": version.digest}).content.decode()
    assert f">{version.digest[:12]}</td>" in page
    assert f">{version.digest}<" not in page


def test_reports_of_wrong_cases_are_resolved_once(curator, version):
    claim = CaseDefect.objects.create(case=version.cases.all()[0], description="Wrong.")
    assert "1 report accepted: later reports leave the cases out." in act(curator, "casedefect", "accept", claim.pk)
    assert "already" in act(curator, "casedefect", "reject", claim.pk)
    claim.refresh_from_db()
    assert (claim.status, claim.resolved_by.username) == (CaseDefect.Status.ACCEPTED, "curator")


def test_staff_without_curator_permission_sees_no_environments(client, version):
    client.force_login(User.objects.create_user("other", is_staff=True))
    assert client.get("/admin/hub/environment/").status_code == 403
