"""The pages of preferences: traceable, filtered, and empty where there is nothing."""

import io
import zipfile

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hub.models import Environment
from preferences.models import Preference
from tests.preferences.test_exports import record, responses

pytestmark = pytest.mark.django_db


@pytest.fixture
def visitor(client: Client) -> Client:
    client.force_login(User.objects.create_user("visitor"))
    return client


@pytest.fixture
def two() -> Preference:
    record(*responses("one", "two", statuses="pf"), by="judge")
    preference = record(*responses("three", "four"))
    Environment.objects.update(visibility="published")
    return preference


def test_a_preference_leads_to_responses_run_version_and_case(visitor: Client, two: Preference) -> None:
    page = visitor.get(f"/preferences/{two.pk}/").content.decode()
    version = two.version
    for address in (
        f"/responses/{two.first_id}/",
        f"/responses/{two.second_id}/",
        f"/runs/{two.run_id}/",
        f"/hub/{version.environment.slug}/{version.version}/",
        two.case.external_id,
    ):
        assert address in page


def test_the_list_is_filtered_and_exported_as_shown(visitor: Client, two: Preference) -> None:
    assert visitor.get("/preferences/").content.decode().count("data-open href") == 2
    page = visitor.get("/preferences/?source=human").content.decode()
    assert page.count("data-open href") == 1
    packed = visitor.get("/preferences/export/?source=human&format=trl").content
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert b'"chosen": "three"' in archive.read("data.jsonl")
        assert "README.md" in archive.namelist()


def test_an_export_of_nothing_says_so(visitor: Client) -> None:
    page = visitor.get("/preferences/export/?format=trl", follow=True).content.decode()
    assert "No preference matches" in page


def test_agreement_and_ranking_show_figures_with_tables(visitor: Client, two: Preference) -> None:
    page = visitor.get("/agreement/").content.decode()
    assert "The judge, blind, says what the tests say" in page
    page = visitor.get("/ranking/").content.decode()
    assert "<svg" in page
    assert "m0" in page


@pytest.mark.parametrize("address", ["/preferences/", "/agreement/", "/ranking/"])
def test_empty_pages_say_what_would_be_here(visitor: Client, address: str) -> None:
    assert 'class="empty"' in visitor.get(address).content.decode()


def test_preferences_of_private_environments_are_not_shown(visitor: Client, two: Preference) -> None:
    Environment.objects.update(visibility="private")
    assert "data-open href" not in visitor.get("/preferences/").content.decode()
    assert visitor.get(f"/preferences/{two.pk}/").status_code == 404
    assert "No preference matches" in visitor.get("/preferences/export/?format=trl", follow=True).content.decode()
