"""REST API of environments: lists, pagination, upload, download and errors."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from hub.common.documents import yaml_source
from hub.common.rest.throttling import WriteThrottle
from hub.models import Environment, EnvironmentVersion
from hub.services import import_bundle
from llmeval_site import api_urls
from llmeval_site.accounts.tokens import create_token
from tests.factories import stored_version
from tests.hub.archives import link
from tests.hub.bundle_files import write_bundle
from tests.hub.web.test_upload import zipped
from tests.members import member

pytestmark = pytest.mark.django_db
URL = "/api/v1/environments/"


def published(slug: str, cases: int = 4, **fields: Any) -> EnvironmentVersion:
    version = stored_version(slug, cases=cases)
    visible = Environment.Visibility.PUBLISHED
    Environment.objects.filter(slug=slug).update(latest=version, visibility=visible, **fields)
    return version


def test_token_authenticates_like_a_session() -> None:
    published("sums")
    _, key = create_token(user=member(), scopes=["read"])
    stranger = Client()
    assert stranger.get(URL).status_code == 401
    body = stranger.get(URL, headers={"Authorization": f"Token {key}"}).json()
    assert [item["slug"] for item in body["results"]] == ["sums"]
    assert stranger.get(URL, headers={"Authorization": "Token wrong"}).status_code == 401


def test_lists_are_filtered_and_paginated(client: Client, curator: User) -> None:
    for slug in ("a", "b", "c"):
        published(slug, category="tool-use")
    published("d", category="reasoning", tags=["arithmetic"])
    body = client.get(f"{URL}?category=tool-use&page_size=2").json()
    assert [item["slug"] for item in body["results"]] == ["a", "b"]
    assert [item["slug"] for item in client.get(body["next"]).json()["results"]] == ["c"]
    assert [item["slug"] for item in client.get(f"{URL}?tag=arithmetic").json()["results"]] == ["d"]
    assert client.get(f"{URL}?q=zebra").json()["results"] == []


def test_rest_returns_environment_version_and_cases(client: Client, curator: User) -> None:
    version = published("sums", cases=3)
    whole = client.get(f"{URL}sums/").json()
    assert (whole["latest"], whole["cases"], whole["versions"][0]["digest"]) == ("1.0.0", 3, version.digest)
    assert client.get(f"{URL}sums/versions/latest/").json()["environment"] == "sums"
    body = client.get(f"{URL}sums/versions/1.0.0/cases/?page_size=2").json()
    assert [case["id"] for case in body["results"]] == ["c0", "c1"]
    assert body["results"][0]["data"]["input"] == "0 + 1?"
    assert [case["id"] for case in client.get(body["next"]).json()["results"]] == ["c2"]
    assert [case["id"] for case in client.get(f"{URL}sums/versions/1.0.0/cases/?q=2+%2B").json()["results"]] == ["c2"]


def test_unknown_objects_return_the_common_error_format(client: Client, curator: User) -> None:
    for url in (f"{URL}nothing/", f"{URL}nothing/versions/1.0.0/", f"{URL}nothing/versions/1.0.0/cases/"):
        answer = client.get(url)
        assert answer.status_code == 404
        message = "There is no environment 'nothing', or it is private to somebody else."
        assert answer.json() == {
            "message": message,
            "code": "not_found",
            "errors": [],
            "type": "about:blank",
            "title": "Not Found",
            "status": 404,
            "detail": message,
        }
        assert answer["Content-Type"] == "application/json"
        asked = client.get(url, headers={"Accept": "application/json, application/problem+json"})
        assert asked["Content-Type"] == "application/problem+json" and asked.json() == answer.json()
        asked = client.get(url, headers={"Accept": "application/problem+json"})
        assert (asked.status_code, asked["Content-Type"]) == (404, "application/problem+json")


def test_client_that_accepts_only_the_type_of_errors_gets_json(client: Client, curator: User) -> None:
    answer = client.get(URL, headers={"Accept": "application/problem+json"})
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert client.get(URL, headers={"Accept": "text/html"}).status_code == 406


@pytest.mark.parametrize("way", ["body", "form"])
def test_uploaded_bundle_is_downloaded_unchanged(client: Client, curator: User, tmp_path: Path, way: str) -> None:
    content = zipped(write_bundle(tmp_path / "capitals"))
    first, second = (
        client.post(URL, content, content_type="application/zip")
        if way == "body"
        else client.post(URL, {"bundle": SimpleUploadedFile("b.zip", content)})
        for _ in range(2)
    )
    assert (first.status_code, second.status_code) == (201, 200)
    assert first["Location"] == f"{URL}capitals/versions/1.0.0/" and "Location" not in second
    assert client.get(first["Location"]).status_code == 200
    assert first.json() | {"digest": ""} == {
        "environment": "capitals@1.0.0",
        "digest": "",
        "cases": 3,
        "visibility": "private",
        "new": True,
    }
    assert second.json()["new"] is False
    answer = client.get(f"{URL}capitals/versions/1.0.0/bundle")
    sent = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    again = client.post(URL, sent, content_type="application/zip")
    assert again.json()["digest"] == first.json()["digest"]


def test_upload_problems_are_listed_with_their_location(client: Client, curator: User, tmp_path: Path) -> None:
    content = zipped(write_bundle(tmp_path / "capitals", category="nonsense", gold="missing.jsonl"))
    answer = client.post(URL, content, content_type="application/zip")
    assert answer.status_code == 400
    errors = answer.json()["errors"]
    assert {error["key"] for error in errors} >= {"category", "gold"}
    assert all(set(error) >= {"path", "message", "file", "line", "remedy"} for error in errors)
    assert Environment.objects.count() == 0


@pytest.mark.parametrize("content", [b"", b"nonsense", link()])
def test_broken_or_hostile_archive_is_rejected_over_rest(client: Client, curator: User, content: bytes) -> None:
    answer = client.post(URL, content, content_type="application/zip")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["message"] or answer.json()["message"]


def test_too_large_upload_is_rejected_while_streaming(
    client: Client, curator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub.web.api.MAX_UPLOAD", 10)
    assert client.post(URL, b"x" * 11, content_type="application/zip").status_code == 413
    assert client.post(URL, {"bundle": io.BytesIO(b"x" * 11)}).status_code == 413


def test_other_content_types_return_the_common_error_format(client: Client, curator: User) -> None:
    answer = client.post(URL, "{}", content_type="application/json")
    assert answer.status_code == 415
    assert set(answer.json()) >= {"message", "code", "errors", "type", "title", "status", "detail"}
    assert client.post(URL, {"bundle": "text"}).status_code == 400


def test_only_writes_are_throttled(client: Client, curator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WriteThrottle, "rate", "2/min", raising=False)
    answers = [client.post(URL, b"x", content_type="application/zip").status_code for _ in range(3)]
    assert answers == [400, 400, 429]
    assert client.get(URL).status_code == 200


@pytest.mark.parametrize(("query", "path"), [("taem=vision", "taem"), ("team=shared&team=vision", "team")])
def test_upload_with_wrong_parameters_is_refused(
    client: Client, curator: User, tmp_path: Path, query: str, path: str
) -> None:
    content = zipped(write_bundle(tmp_path / "capitals"))
    answer = client.post(f"{URL}?{query}", content, content_type="application/zip")
    assert (answer.status_code, [error["path"] for error in answer.json()["errors"]]) == (400, [path])
    assert not Environment.objects.exists()


def test_upload_form_with_unknown_fields_is_refused(client: Client, curator: User, tmp_path: Path) -> None:
    file = SimpleUploadedFile("b.zip", zipped(write_bundle(tmp_path / "capitals")))
    answer = client.post(URL, {"bundle": file, "team": "vision"})
    assert (answer.status_code, answer.json()["errors"]) == (
        400,
        [{"path": "team", "message": "unknown key; known are bundle"}],
    )
    assert not Environment.objects.exists()


def test_openapi_schema_describes_every_url(client: Client, curator: User) -> None:
    schema = yaml_source.parse(client.get("/api/v1/schema/").content.decode()).value
    named = {re.sub(r"{\w+}", "{}", path) for path in schema["paths"]}
    served = {"/api/v1/" + re.sub(r"<[^>]+>", "{}", str(item.pattern)) for item in api_urls.urlpatterns}
    assert served - named == {"/api/v1/schema/", "/api/v1/docs/"}
    for path in ("/api/v1/runs/", "/api/v1/webhooks/", "/api/v1/environments/", "/api/v1/episodes/"):
        assert "Location" in schema["paths"][path]["post"]["responses"]["201"]["headers"]


def test_downloaded_bundle_equals_the_stored_archive(client: Client, curator: User, tmp_path: Path) -> None:
    version = import_bundle(bundle=write_bundle(tmp_path / "capitals"))
    answer = client.get(f"{URL}capitals/versions/latest/bundle", headers={"Accept": "application/zip"})
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    with version.archive.open("rb") as file:
        assert b"".join(answer.streaming_content) == file.read()  # type: ignore[attr-defined]
