"""Requests with a method that an address does not accept: reloads and bookmarks of the addresses of forms."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hub.models import Environment, EnvironmentVersion
from llmeval_site.middleware.wrong_method import page_above
from tests.factories import stored_archive, stored_run, stored_version
from tests.members import member
from tests.review.pages import waiting_pairs
from tests.site.accounts.addresses import addresses
from tests.site.teams.world import stored_team

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(client: Client) -> User:
    root = User.objects.create_superuser("root")
    client.force_login(root)
    return root


def test_every_address_that_only_receives_forms_leads_to_a_page(client: Client, root: User) -> None:
    version = stored_version("sums")
    Environment.objects.update(latest=version, visibility=Environment.Visibility.PUBLISHED)
    stored_run(version)
    stored_archive(EnvironmentVersion.objects.get())
    found = 0
    for url in sorted(set(addresses())):
        if url.startswith(("/api/", "/admin/")):
            continue
        answer = client.get(url)
        if answer.status_code != 405:
            continue
        found += 1
        page = answer.content.decode()
        assert "This address is not a page" in page and "POST" in answer["Allow"], url
        if url != "/logout/":
            above = page_above(url)
            assert f'href="{above}"' in page and client.get(above).status_code != 405, url
    assert found > 10


def test_page_that_receives_no_forms_says_so(client: Client, root: User) -> None:
    answer = client.post("/runs/")
    page = answer.content.decode()
    assert answer.status_code == 405 and "This address receives no forms" in page and 'href="/runs/"' in page


def test_rest_gets_json(client: Client, root: User) -> None:
    answer = client.get("/api/v1/runs/1/cancel")
    assert answer.status_code == 405 and answer.json()["code"] == "method_not_allowed"


def test_reload_after_an_error_leads_to_the_form(client: Client, root: User) -> None:
    stored_team("vision", root)
    refused = client.post("/teams/vision/members/", {"user": "nobody"})
    assert refused.status_code == 422
    assert client.get("/teams/vision/members/")["Location"] == "/teams/vision/"
    (pair,) = waiting_pairs()
    assert client.post(f"/review/{pair.pk}/decision/?run={pair.run_id}", {"verdict": "unknown"}).status_code == 422
    for action in ("decision", "take"):
        answer = client.get(f"/review/{pair.pk}/{action}/?run={pair.run_id}")
        assert answer["Location"] == f"/review/{pair.pk}/?run={pair.run_id}"
        assert client.get(f"/review/{pair.pk + 1}/{action}/").status_code == 404


def test_reload_claims_no_pair(client: Client) -> None:
    (pair,) = waiting_pairs()
    client.force_login(member("Reviewer"))
    for action in ("decision", "take"):
        client.get(f"/review/{pair.pk}/{action}/")
    assert not pair.assignments.exists()
