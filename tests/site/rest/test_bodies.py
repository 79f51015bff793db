"""Bodies of requests: a key that is not known is an error, so that a misspelt one is not ignored."""

import gzip
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from llmeval_site.models import Webhook
from tests.factories import stored_run, stored_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    return client


def unknown_key_of(answer: Any) -> str:
    assert answer.status_code == 400, answer.content
    (error,) = answer.json()["errors"]
    assert "unknown key" in error["message"]
    return str(error["path"])


def test_unknown_keys_are_errors_and_nothing_is_changed(root: Client) -> None:
    run = stored_run(stored_version())
    answer = root.patch(f"/api/v1/runs/{run.pk}/", {"name": "new", "nmae": "x"}, content_type="application/json")
    assert unknown_key_of(answer) == "nmae"
    name = run.name
    run.refresh_from_db()
    assert run.name == name
    body = {"team": "shared", "teams": "shared"}
    answer = root.patch("/api/v1/environments/sums/", body, content_type="application/json")
    assert unknown_key_of(answer) == "teams"
    body = {"url": "https://example.org/", "events": ["run.failed"], "secret": "mine"}
    assert unknown_key_of(root.post("/api/v1/webhooks/", body, content_type="application/json")) == "secret"
    assert not Webhook.objects.exists()


def test_value_of_a_wrong_type_has_the_path_of_its_field(root: Client) -> None:
    body = {"verdict": "A", "issues": ["wrong"]}
    answer = root.post("/api/v1/pairs/1/decision", body, content_type="application/json")
    assert [error["path"] for error in answer.json()["errors"]] == ["issues[0]"]
    body = {"verdict": "A", "issues": {}}
    answer = root.post("/api/v1/pairs/1/decision", body, content_type="application/json")
    assert [error["path"] for error in answer.json()["errors"]] == ["issues"]
    answer = root.post("/api/v1/webhooks/", [], content_type="application/json")
    assert [error["path"] for error in answer.json()["errors"]] == [""]
    body = {"verdict": "A", "issues": [{"side": "A", "category": "other"}, {"category": "other"}]}
    answer = root.post("/api/v1/pairs/1/decision", body, content_type="application/json")
    assert [error["path"] for error in answer.json()["errors"]] == ["issues[1].side"]


def test_only_the_error_of_a_change_says_that_nothing_was_changed(root: Client) -> None:
    read = root.get("/api/v1/runs/", {"page_size": "nonsense"})
    assert (read.status_code, read.json()["message"]) == (400, "The request is invalid.")
    changed = root.post("/api/v1/webhooks/", [], content_type="application/json")
    assert (changed.status_code, changed.json()["message"]) == (400, "The request is invalid; nothing was changed.")


@pytest.mark.parametrize("url", ["/api/v1/webhooks/", "/api/v1/runs/", "/api/v1/environments/"])
def test_compressed_body_is_refused_by_the_name_of_its_encoding(root: Client, url: str) -> None:
    body, headers = gzip.compress(b"{}"), {"content-encoding": "gzip"}
    answer = root.post(url, body, content_type="application/json", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_type")
    assert "Content-Encoding 'gzip' is not supported" in answer.json()["message"]
    answer = root.post(
        "/api/v1/webhooks/", "{}", content_type="application/json", headers={"content-encoding": "identity"}
    )
    assert answer.status_code == 400
