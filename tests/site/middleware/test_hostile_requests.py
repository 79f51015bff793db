"""Requests that no client sends by accident: U+0000 in addresses, JSON nested without end."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import QueryDict
from django.test import Client

from tests.members import member
from tests.site.accounts.test_access import addresses

pytestmark = pytest.mark.django_db

DEEP = '{"a":' * 50_000 + "1" + "}" * 50_000
DEEP_LIST = "[" * 900 + "]" * 900


@pytest.fixture
def admin() -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("root", "", "x"))
    return client


@pytest.mark.parametrize("suffix", ["?q=%00", "?cursor=a%00b", "?page=%00"])
def test_null_character_in_query_gets_400(admin: Client, suffix: str) -> None:
    answers = {url: admin.get(url + suffix).status_code for url in set(addresses())}
    assert {url: code for url, code in answers.items() if code != 400} == {}


def test_null_character_in_path_gets_400(admin: Client) -> None:
    urls = {url.rstrip("/") + "%00/" for url in addresses()} | {
        "/hub/su%00ms/",
        "/hub/sums/1.0%00.0/",
        "/hub/sums/1.0.0/cases/c%000/",
        "/api/v1/environments/sums/versions/1%00/cases/",
        "/static/a%00.css",
    }
    answers = {url: admin.get(url).status_code for url in urls}
    assert {url: code for url, code in answers.items() if code != 400} == {}
    said = admin.get("/api/v1/environments/sums/versions/1%00/").json()
    assert said == {"message": "The address contains the character U+0000; remove %00.", "errors": []}


@pytest.mark.parametrize("body", [DEEP, DEEP_LIST, json.dumps({"message": json.loads(DEEP_LIST)})])
def test_deeply_nested_json_gets_400_over_rest(admin: Client, body: str) -> None:
    for url in sorted(url for url in set(addresses()) if url.startswith("/api/")):
        answer: Any = admin.post(url, body, content_type="application/json")
        assert answer.status_code < 500, url
    answer = admin.post("/api/v1/episodes/", body, content_type="application/json")
    assert answer.status_code == 400
    assert "100 levels" in answer.json()["message"]


def test_deeply_nested_json_in_form_fields_is_rejected(admin: Client) -> None:
    for url in ("/api/v1/episodes/", "/api/v1/episodes/00000000-0000-0000-0000-000000000001/step"):
        answer = admin.post(url, {"message": DEEP, "environment": DEEP, "seed": DEEP, "models": DEEP})
        assert 400 <= answer.status_code < 500


def test_deeply_nested_marks_are_rejected_by_the_review_form() -> None:
    from review.web.forms import DecisionForm

    data = QueryDict(mutable=True)
    data.update({"verdict": "a", "issues": "[" * 90_000 + "]" * 90_000})
    form = DecisionForm(data)
    assert not form.is_valid()
    assert "The marks cannot be parsed" in str(form.errors["issues"])


def test_ordinary_body_and_query_are_accepted(client: Client) -> None:
    client.force_login(member("ada", "trainers"))
    assert client.get("/api/v1/environments/?q=00").status_code == 200
    answer = client.post("/api/v1/episodes/", {"environment": "nope"}, content_type="application/json")
    assert "levels" not in answer.content.decode()
