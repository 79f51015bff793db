"""Tests of the preferences REST API: visibility, invalid filters and exports."""

import io
import json
import zipfile

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from hub.models import Environment
from preferences.exporters import FORMATS
from preferences.models import Preference
from tests.preferences.exporters.test_exports import record, responses

pytestmark = pytest.mark.django_db
EXPORT = "/api/v1/preferences/export"


@pytest.fixture
def api() -> APIClient:
    client = APIClient()
    client.force_authenticate(User.objects.create_user("trainer"))
    return client


@pytest.fixture
def two() -> Preference:
    record(*responses("one", "two", statuses="pf"), by="judge")
    preference = record(*responses("three", "four"), "second")
    Environment.objects.update(visibility="published")
    return preference


def test_preferences_are_listed_with_provenance(api: APIClient, two: Preference) -> None:
    rows = api.get("/api/v1/preferences/?source=human").json()["results"]
    assert [row["id"] for row in rows] == [two.pk]
    assert (rows[0]["first"]["response"], rows[0]["run"]) == (two.first_id, two.run_id)
    assert rows[0]["environment_digest"] == two.version.digest


@pytest.mark.parametrize("format", FORMATS)
def test_export_is_zip_with_card_and_provenance(api: APIClient, two: Preference, format: str) -> None:
    answer = api.get(f"{EXPORT}?format={format}&source=human")
    assert answer["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.getvalue())) as archive:
        data = f"data{FORMATS[format].suffix}"
        assert {data, "README.md", "provenance.jsonl"} <= set(archive.namelist())
        lines = archive.read("provenance.jsonl").splitlines()
    assert {json.loads(line)["id"] for line in lines} == {two.pk}


@pytest.mark.parametrize("wrong", ["run=x", "since=yesterday", "source=nobody", "verdict=A"])
@pytest.mark.parametrize("path", [f"{EXPORT}?format=trl", "/api/v1/preferences/?", "/api/v1/agreement/?"])
def test_invalid_filter_returns_400_with_parameter_name(api: APIClient, two: Preference, path: str, wrong: str) -> None:
    answer = api.get(f"{path}&{wrong}")
    assert answer.status_code == 400
    assert [error["path"] for error in answer.json()["errors"]] == [wrong.partition("=")[0]]


def test_empty_export_or_missing_format_returns_400(api: APIClient, two: Preference) -> None:
    nothing = api.get(f"{EXPORT}?format=trl&reviewer=nobody")
    assert (nothing.status_code, nothing.json()["message"]) == (
        400,
        "No preference matches the filters, so nothing was written.",
    )
    unknown = api.get(f"{EXPORT}?format=csv")
    assert unknown.status_code == 400
    assert unknown.json()["errors"][0]["message"].startswith("csv is not known. Choose one of jsonl, kto,")


def test_held_out_environments_are_never_exported(api: APIClient, two: Preference) -> None:
    Environment.objects.update(held_out=True, owner=User.objects.get(username="trainer"))
    answer = api.get(f"{EXPORT}?format=jsonl")
    assert answer.status_code == 400
    assert "held-out environments, which are never exported" in answer.json()["message"]


def test_preferences_of_private_environments_are_neither_listed_nor_exported(api: APIClient, two: Preference) -> None:
    Environment.objects.update(visibility="private")
    assert api.get("/api/v1/preferences/").json()["results"] == []
    assert api.get(f"{EXPORT}?format=jsonl").status_code == 400
    assert {item["n"] for item in api.get("/api/v1/agreement/").json()["figures"].values()} == {0}


def test_agreement_has_every_figure_with_n_and_interval(api: APIClient, two: Preference) -> None:
    found = api.get("/api/v1/agreement/").json()
    assert found["figures"]["judge_execution"] == {
        "value": 1.0,
        "n": 1,
        "ci95": [pytest.approx(0.2065, abs=1e-4), 1.0],  # Wilson's for 1 of 1
        "note": "",
    }
    assert [row["name"] for row in found["reviewers"]] == ["ann"]
