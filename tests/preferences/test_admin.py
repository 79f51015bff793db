"""Tests of the admin: categories can be edited, preferences are read-only, nothing can be deleted."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from preferences.models import IssueCategory, Preference
from preferences.selectors import categories
from tests.members import member
from tests.preferences.exporters.test_exports import record, responses

pytestmark = pytest.mark.django_db
CATEGORIES = "/admin/preferences/issuecategory/"
PREFERENCES = "/admin/preferences/preference/"


@pytest.fixture
def curator(client: Client) -> Client:
    client.force_login(member("Curator", staff=True))
    return client


def save(client: Client, address: str, **fields: object) -> int:
    return client.post(address, fields).status_code


def test_curator_adds_category_at_position(curator: Client) -> None:
    assert "data-prepopulated-fields" in curator.get(f"{CATEGORIES}add/").content.decode()
    assert save(curator, f"{CATEGORIES}add/", title="Wrong units", slug="units", position=0, active="on") == 302
    assert categories()[0].title == "Wrong units"


def test_inactive_category_is_not_offered_and_keeps_slug(curator: Client) -> None:
    category = IssueCategory.objects.get_or_create(slug="style", defaults={"title": "Style"})[0]
    address = f"{CATEGORIES}{category.pk}/change/"
    assert save(curator, address, title="Manner", slug="manner", position=3) == 302
    category.refresh_from_db()
    assert (category.title, category.slug, category.active) == ("Manner", "style", False)
    assert category not in categories()


def test_fields_in_the_list_of_categories_are_named_and_saved(curator: Client) -> None:
    IssueCategory.objects.all().delete()
    category = IssueCategory.objects.create(slug="style", title="Style", position=1)
    page = curator.get(CATEGORIES).content.decode()
    assert 'aria-label="Active: Style"' in page
    assert 'aria-label="Position: Style"' in page
    rows = {"form-TOTAL_FORMS": 1, "form-INITIAL_FORMS": 1, "form-0-id": category.pk, "form-0-position": 7}
    assert save(curator, CATEGORIES, **rows, _save="Save") == 302
    category.refresh_from_db()
    assert (category.active, category.position) == (False, 7)


def test_admin_forbids_deleting_and_changing_preferences(curator: Client) -> None:
    preference = record(*responses("one", "two"))
    category = IssueCategory.objects.get_or_create(slug="style", defaults={"title": "Style"})[0]
    assert curator.get(f"{CATEGORIES}{category.pk}/delete/").status_code == 403
    assert curator.get(f"{PREFERENCES}{preference.pk}/delete/").status_code == 403
    assert curator.get(f"{PREFERENCES}add/").status_code == 403
    assert save(curator, f"{PREFERENCES}{preference.pk}/change/", verdict="tie") == 403
    assert Preference.objects.get().verdict == "first"


def test_admin_links_preference_to_its_page(curator: Client) -> None:
    preference = record(*responses("one", "two"))
    page = curator.get(f"{PREFERENCES}{preference.pk}/change/").content.decode()
    assert f'href="/preferences/{preference.pk}/"' in page
    found = curator.get(f"{PREFERENCES}?q=ann").content.decode()
    assert f"{PREFERENCES}{preference.pk}/change/" in found
    assert f"{PREFERENCES}{preference.pk}/change/" not in curator.get(f"{PREFERENCES}?q=bob").content.decode()


def test_staff_without_curator_group_get_403(client: Client) -> None:
    client.force_login(User.objects.create_user("clerk", is_staff=True))
    assert [client.get(address).status_code for address in (CATEGORIES, PREFERENCES)] == [403, 403]
