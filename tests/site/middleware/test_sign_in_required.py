"""Requests after the end of a session: where users are after they have signed in again."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hub.models import Environment
from runs.models import Run
from tests.factories import stored_run, stored_version

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough one"


@pytest.fixture
def run() -> Run:
    User.objects.create_superuser("ann", password=PASSWORD)
    run = stored_run(stored_version())
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    return run


def sign_in(client: Client, url: str) -> tuple[str, int]:
    """Sign in on the page *url*; return the address and status of the page that follows."""
    answer = client.post(url, {"username": "ann", "password": PASSWORD}, follow=True)
    return answer.redirect_chain[-1][0], answer.status_code


def test_submitted_form_leads_back_to_its_page_with_a_notice(client: Client, run: Run) -> None:
    page = f"http://testserver/runs/{run.pk}/?status=failed"
    answer = client.post(f"/runs/{run.pk}/resume/", headers={"Referer": page})
    assert answer.status_code == 302
    assert "was not saved" in client.get(answer["Location"]).content.decode()
    assert sign_in(client, answer["Location"]) == (f"/runs/{run.pk}/?status=failed", 200)
    assert Run.objects.get().status == run.status


@pytest.mark.parametrize("referer", ["", "https://elsewhere.example/runs/1/", "http://testserver:99999/", "//x/"])
def test_submitted_form_of_an_unknown_page_leads_to_the_first_page(client: Client, run: Run, referer: str) -> None:
    answer = client.post(f"/runs/{run.pk}/resume/", headers={"Referer": referer} if referer else {})
    assert sign_in(client, answer["Location"]) == ("/", 200)


@pytest.mark.parametrize("method", ["get", "post"])
def test_htmx_request_opens_the_sign_in_page_and_leads_back_to_the_whole_page(
    client: Client, run: Run, method: str
) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": f"http://testserver/runs/{run.pk}/"}
    answer = getattr(client, method)(f"/runs/{run.pk}/progress/", headers=headers)
    assert (answer.status_code, answer.content) == (200, b"")
    shown = client.get(answer["HX-Redirect"]).content.decode()
    assert ("was not saved" in shown) is (method == "post")
    assert sign_in(client, answer["HX-Redirect"]) == (f"/runs/{run.pk}/", 200)


def test_filter_that_was_chosen_after_the_session_ended_is_kept(client: Client, run: Run) -> None:
    headers = {"HX-Request": "true", "HX-Target": "runs", "HX-Current-URL": "http://testserver/runs/?sort=cost"}
    answer = client.get("/runs/?status=failed&sort=cost", headers=headers)
    assert sign_in(client, answer["HX-Redirect"]) == ("/runs/?status=failed&sort=cost", 200)


def test_requested_page_is_opened_after_the_sign_in(client: Client, run: Run) -> None:
    answer = client.get(f"/runs/{run.pk}/", headers={"Referer": "http://testserver/runs/"})
    assert sign_in(client, answer["Location"]) == (f"/runs/{run.pk}/", 200)
