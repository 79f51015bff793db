"""Malicious requests: U+0000 in URLs, deeply nested JSON, and JSON that is no valid or an ambiguous object."""

import base64
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.http import QueryDict
from django.test import Client

from hub.common.rest.error_bodies import error_body
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
    message = "The address contains the character U+0000; remove %00."
    assert said == error_body(message, 400)


@pytest.mark.parametrize("body", [DEEP, DEEP_LIST, json.dumps({"message": json.loads(DEEP_LIST)})])
def test_deeply_nested_json_gets_400_over_rest(admin: Client, body: str) -> None:
    for url in sorted(url for url in set(addresses()) if url.startswith("/api/")):
        answer: Any = admin.post(url, body, content_type="application/json")
        assert answer.status_code < 500, url
    answer = admin.post("/api/v1/episodes/", body, content_type="application/json")
    assert answer.status_code == 400
    assert "100 levels" in answer.json()["message"]


@pytest.mark.parametrize("url", ["/api/v1/episodes/", "/api/v1/score", "/api/v1/webhooks/", "/api/v1/runs/"])
def test_key_that_is_given_twice_gets_400_over_rest(admin: Client, url: str) -> None:
    answer: Any = admin.post(url, '{"name": {"a": 1, "b": 2, "a": 1}}', content_type="application/json")
    assert answer.status_code == 400
    said = answer.json()
    assert "the key 'a' " in said["message"] + str(said["errors"]) and "twice" in str(said)


def test_last_of_many_keys_is_found_twice_in_linear_time(admin: Client) -> None:
    keys = [f'"{number}":0' for number in range(600_000)]  # the body is just below the limit of 10 MiB
    answer: Any = admin.post("/api/v1/episodes/", f"{{{','.join([*keys, keys[-1]])}}}", content_type="application/json")
    assert answer.status_code == 400
    assert "the key '599999' twice" in answer.json()["message"]


@pytest.mark.parametrize("body", ["{", '{"seed": NaN}', b"\xff\xfe{}"])
def test_body_that_is_no_json_gets_400_over_rest(admin: Client, body: str | bytes) -> None:
    answer: Any = admin.post("/api/v1/episodes/", body, content_type="application/json")
    assert (answer.status_code, answer.json()["message"].partition(" - ")[0]) == (400, "JSON parse error")


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


def test_null_character_in_json_body_gets_400(admin: Client) -> None:
    """Each REST address that takes JSON rejects texts, lists and keys with U+0000 or a lone surrogate."""
    urls = sorted(url for url in set(addresses()) if url.startswith("/api/"))
    for value in ("\x00", ["a\x00"], {"b\x00": 1}, "\ud800"):
        body = json.dumps({"message": value, "environment": value, "verdict": value, "critique": value})
        codes = {url: admin.post(url, body, content_type="application/json").status_code for url in urls}
        assert {url: code for url, code in codes.items() if code >= 500 or code < 400} == {
            url: 200 for url in urls if url.endswith(("/cancel", "/resume")) and codes[url] == 200
        }
    answer = admin.post("/api/v1/episodes/", json.dumps({"environment": "a\x00"}), content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert "U+0000" in answer.json()["message"]


@pytest.mark.parametrize("address", ["/api/", "/api/v1/", "/api/v1/nope/", "/api/v2/runs/", "/api/v1/runs/x/"])
def test_unknown_rest_address_gets_json(client: Client, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 404
    assert answer.json() == error_body("There is nothing at this address. /api/v1/docs/ lists all.", 404)


def test_wrong_method_gets_json(admin: Client) -> None:
    answer = admin.put("/api/v1/runs/", "{}", content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


def test_missing_csrf_token_gets_json_over_rest() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("root", "", "x"))
    answer = client.post("/api/v1/runs/", "{}", content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def test_too_many_parameters_get_json(admin: Client) -> None:
    answer = admin.get("/api/v1/runs/?" + "a=1&" * 2000)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


def test_error_of_the_server_gets_json_over_rest(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("runs.web.queries.filter_runs", fail)
    answer = admin.get("/api/v1/runs/")
    assert (answer.status_code, answer.json()["code"]) == (500, "server_error")
    assert "request id" in answer.json()["message"]
    assert "secret" not in answer.content.decode()


@pytest.mark.parametrize("accept", ["application/problem+json", "application/problem+json, */*"])
def test_every_error_has_the_content_type_of_problems_for_clients_that_accept_it(admin: Client, accept: str) -> None:
    headers = {"accept": accept, "Idempotency-Key": " "}
    answers = [
        admin.post("/api/v1/runs/", "{}", content_type="application/json", headers=headers),
        admin.get("/api/v1/runs/?q=%00", headers={"accept": accept}),
        admin.get("/api/v1/runs/%00/", headers={"accept": accept}),
        *(admin.put(f"/api/v1/{path}/", headers={"accept": accept}) for path in ("schema", "docs", "runs")),
    ]
    for answer in answers:
        assert answer["Content-Type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code


@pytest.mark.parametrize("path", ["schema", "docs"])
def test_errors_of_the_description_of_rest_are_json(client: Client, path: str) -> None:
    answer = client.get(f"/api/v1/{path}/")
    assert (answer.status_code, answer["Content-Type"]) == (401, "application/json")
    assert answer.json()["code"] == "not_authenticated"


def test_schema_describes_the_errors_of_every_operation(admin: Client) -> None:
    schema: Any = json.loads(
        admin.get("/api/v1/schema/", headers={"Accept": "application/vnd.oai.openapi+json"}).content
    )
    operations = [
        (f"{method} {path}", operation)
        for path, item in schema["paths"].items()
        for method, operation in item.items()
        if method in ("get", "post", "put", "patch", "delete")
    ]
    assert len(operations) > 25
    for name, operation in operations:
        missing = {"400", "401", "403", "404", "405", "406", "429", "500", "503"} - set(operation["responses"])
        assert not missing, name
        for status, described in operation["responses"].items():
            types = {"application/json", "application/problem+json"}
            assert status < "400" or set(described["content"]) == types, (name, status)
    for path in ("/api/v1/runs/", "/api/v1/preferences/", "/api/v1/webhooks/", "/api/v1/teams/"):
        parameters = {parameter["name"] for parameter in schema["paths"][path]["get"]["parameters"]}
        assert {"cursor", "page_size"} <= parameters, path
    for path in ("/api/v1/runs/{id}/", "/api/v1/environments/{slug}/"):
        assert {"304", "412"} <= set(schema["paths"][path]["get"]["responses"])


@pytest.mark.parametrize("size", ["0", "-1", "x", "null", "501", "1e2"])
def test_invalid_page_size_gets_400(admin: Client, size: str) -> None:
    answer = admin.get(f"/api/v1/runs/?page_size={size}")
    assert answer.status_code == 400
    assert answer.json()["errors"] == [{"path": "page_size", "message": "Must be a number from 1 to 500."}]


@pytest.mark.parametrize(
    "position", ["x", "\x00", "9" * 30, "\u0663", "0001-01-01", "2026-13-01 00:00:00+00:00", "1e5"]
)
@pytest.mark.parametrize("address", ["runs", "environments", "episodes", "preferences", "webhooks", "models", "teams"])
def test_made_up_cursor_gets_a_page_or_400(admin: Client, address: str, position: str) -> None:
    cursor = base64.b64encode(urlencode({"p": position}).encode()).decode()
    answer = admin.get(f"/api/v1/{address}/", {"cursor": cursor})
    assert answer.status_code in (200, 400)
    if answer.status_code == 400:
        assert answer.json()["errors"][0]["path"] == "cursor"
    if position in ("x", "\x00") and address in ("runs", "episodes"):
        assert answer.status_code == 400
