"""Stored agreement and rankings: when they are read, when they are computed again, and for whom."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hub.models import Environment
from preferences.insight import stored
from preferences.insight.agreement import compute_agreement
from preferences.insight.ranking import compute_rankings
from preferences.insight.stored import get_agreement, get_rankings, refresh_results
from preferences.models import InsightResult
from preferences.selectors import current_preferences
from tests.factories import accepted_defect
from tests.preferences.insight.test_agreement import decided, judged, pairs_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def curator() -> User:
    return User.objects.create_superuser("curator")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every computation count as slow."""
    monkeypatch.setattr(stored, "SLOW_S", 0.0)


def some_preferences() -> list[Any]:
    pairs = pairs_of(*["pf"] * 12)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    for i, pair in enumerate(pairs):
        judged(pair, "first" if i % 3 else "second", confidence=0.8, orders=["first", "first"])
        decided(pair, "first" if i % 4 else "tie")
        decided(pair, "first", by="ben")
    return pairs


def test_stored_figures_equal_computed_ones(curator: User) -> None:
    some_preferences()
    for _ in range(2):  # computed, then read
        assert get_agreement(curator, {}).figures == compute_agreement(current_preferences())
        assert get_rankings(curator, {}).figures == compute_rankings(current_preferences())
    assert InsightResult.objects.count() == 2


def test_figures_are_read_until_a_preference_is_recorded_or_a_defect_accepted(
    curator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "SLOW_S", 1000.0)
    pairs = some_preferences()
    first = get_agreement(curator, {})
    with CaptureQueriesContext(connection) as queries:
        assert get_agreement(curator, {}) == first
    assert not any('JOIN "runs_response"' in query["sql"] for query in queries)
    decided(pairs[0], "second", by="cleo")
    assert get_agreement(curator, {}).figures.verdicts == first.figures.verdicts + 1
    before = get_agreement(curator, {})
    accepted_defect(pairs[0][0].case, hours_ago=0)
    assert get_agreement(curator, {}).computed_at > before.computed_at


def test_slow_figures_are_shown_for_ten_minutes_after_a_change(curator: User, slow: None) -> None:
    pairs = some_preferences()
    first = get_agreement(curator, {})
    decided(pairs[0], "second", by="cleo")
    assert get_agreement(curator, {}) == first
    InsightResult.objects.update(computed_at=timezone.now() - stored.KEEP)
    assert get_agreement(curator, {}).figures.verdicts == first.figures.verdicts + 1


def test_each_filter_has_figures_of_its_own(curator: User) -> None:
    pairs = some_preferences()
    run = pairs[0][0].run_environment.run_id
    assert get_agreement(curator, {"run": run}).figures.verdicts == 36
    assert get_agreement(curator, {"run": run + 1}).figures.verdicts == 0
    assert get_agreement(curator, {"since": timezone.localdate() + timedelta(days=2)}).figures.verdicts == 0
    assert get_agreement(curator, {"reviewer": "ben"}).figures.verdicts == 12


def test_user_sees_no_figures_of_environments_that_are_hidden_from_them(curator: User, slow: None) -> None:
    some_preferences()
    user = User.objects.create_user("user")
    assert set(get_rankings(curator, {}).figures) == set(get_rankings(user, {}).figures) == {"sums"}
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE, owner=curator)
    user = User.objects.get(pk=user.pk)  # as the next request does
    assert get_rankings(user, {}).figures == {}
    assert set(get_rankings(curator, {}).figures) == {"sums"}


def test_fast_figures_of_one_user_are_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "SLOW_S", 1000.0)
    some_preferences()
    assert get_agreement(User.objects.create_user("user"), {}).figures.verdicts == 36
    assert not InsightResult.objects.exists()


def test_task_refreshes_slow_figures_that_changed_and_deletes_unused_ones(curator: User, slow: None) -> None:
    pairs = some_preferences()
    user = User.objects.create_user("user")
    since = timezone.localdate() - timedelta(days=3)
    for viewer in (curator, user):
        get_agreement(viewer, {"since": since})
    get_rankings(curator, {})
    InsightResult.objects.filter(kind="ranking").update(used_at=timezone.now() - stored.UNUSED)
    decided(pairs[0], "second", by="cleo")
    refresh_results()
    assert not InsightResult.objects.filter(kind="ranking").exists()
    assert [row.figures["verdicts"] for row in InsightResult.objects.all()] == [37, 37]
    assert get_agreement(curator, {"since": since}).figures.verdicts == 37


def test_pages_and_rest_show_when_figures_were_computed(curator: User, client: Client) -> None:
    some_preferences()
    client.force_login(curator)
    at = get_agreement(curator, {}).computed_at
    get_rankings(curator, {})
    for path in ("/agreement/", "/ranking/"):
        assert re.search(r"Computed <time [^>]+>[\d: -]+ UTC</time>", client.get(path).content.decode())
    assert client.get("/api/v1/agreement/").json()["computed_at"] == at.isoformat().replace("+00:00", "Z")
