"""What a request gets whose session has ended: forms, parts of pages that htmx loads, and pages."""

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db
RUN = "http://testserver/runs/7/?status=failed"


def test_page_without_session_leads_to_the_sign_in_and_back() -> None:
    assert Client().get("/runs/?q=a").headers["Location"] == "/login/?next=/runs/%3Fq%3Da"


def test_form_without_session_leads_back_to_its_page_and_says_that_nothing_was_changed() -> None:
    client = Client()
    response = client.post("/runs/7/cancel/", headers={"Referer": RUN}, follow=True)
    assert response.redirect_chain == [("/login/?next=/runs/7/%3Fstatus%3Dfailed", 302)]
    assert "You were signed out, so nothing was changed." in response.content.decode()
    assert "You were signed out" not in client.get("/login/").content.decode()


@pytest.mark.parametrize("referer", ["", "https://elsewhere.example/runs/", "//elsewhere.example/", "javascript:a"])
def test_form_from_an_unknown_page_leads_to_the_dashboard(referer: str) -> None:
    response = Client().post("/runs/7/cancel/", headers={"Referer": referer})
    assert response.headers["Location"] == "/login/?next=/"


def test_part_that_htmx_loads_without_session_opens_the_sign_in_page() -> None:
    response = Client().get("/runs/7/progress/", headers={"HX-Request": "true", "HX-Current-URL": RUN})
    assert response.headers["HX-Redirect"] == "/login/?next=/runs/7/%3Fstatus%3Dfailed"
    assert "Location" not in response.headers
    assert b"signed out" not in Client().get("/login/").content
