"""Tests that a reviewer has at most one assignment, that previews claim nothing, and that drafts outlive leases."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from preferences.models import Preference
from review import decisions
from review.decisions import Decision
from review.models import Assignment, Pair
from review.queue import assignments
from tests.markup import markup
from tests.review.pages import reviewer, suggest, waiting_pairs

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_drawn(monkeypatch: Any) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.99)


@pytest.fixture
def ann() -> User:
    return reviewer("ann")


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def held() -> list[int]:
    return list(Assignment.objects.filter(state="open").values_list("pair", flat=True))


def test_opening_pairs_does_not_claim_them(ann: User) -> None:
    pairs = waiting_pairs(3)
    suggest(pairs[0], "first")
    client = signed_in(ann)
    for pair in pairs:
        page = client.get(f"/review/{pair.pk}/")
        assert page.status_code == 200
        assert 'id="decision"' not in page.content.decode()
        assert "Suggested" not in page.content.decode()
        assert f'action="/review/{pair.pk}/take/"' in page.content.decode()
    assert not Assignment.objects.exists()
    assert set(Pair.objects.values_list("free", flat=True)) == {1}


def test_claiming_another_pair_releases_first_and_keeps_its_draft(ann: User) -> None:
    first, second = waiting_pairs(2)
    client = signed_in(ann)
    client.post(f"/review/{first.pk}/take/")
    client.post(f"/review/{first.pk}/draft/", {"critique": "So far"})
    assert client.post(f"/review/{second.pk}/take/").headers["Location"] == f"/review/{second.pk}/"
    assert held() == [second.pk]
    assert assignments.claim_next_pair(reviewer("bob")).assignment.pair == first
    assignments.skip_pair(assignment=Assignment.objects.get(pair=first, state="open"), reason="")
    client.post(f"/review/{first.pk}/take/")
    assert held() == [first.pk]
    assert "So far" in client.get(f"/review/{first.pk}/").content.decode()


def test_run_filter_keeps_one_assignment_and_left_pair_returns(ann: User) -> None:
    (first,), (second,) = waiting_pairs(1), waiting_pairs(1)
    assignments.claim_next_pair(ann, run=first.run_id)
    mine = assignments.claim_next_pair(ann, run=second.run_id).assignment
    assert held() == [second.pk]
    decisions.decide(assignment=mine, decision=Decision(verdict="tie"))
    assert assignments.claim_next_pair(ann).assignment.pair == first


def test_undo_releases_next_pair(ann: User) -> None:
    first, _second = waiting_pairs(2)
    decisions.decide(assignment=assignments.claim_next_pair(ann).assignment, decision=Decision(verdict="tie"))
    assignments.claim_next_pair(ann)
    decisions.undo_last(user=ann)
    assert held() == [first.pk]


def test_empty_queue_lists_pairs_of_other_reviewers_with_lease_end(ann: User) -> None:
    first, second = waiting_pairs(2)
    for name in ("bob", "cat"):
        assignments.claim_next_pair(reviewer(name))
    page = markup(signed_in(ann).get("/review/"))
    assert "2 pairs are assigned to other reviewers" in page
    for pair in (first, second):
        until = Assignment.objects.get(pair=pair).lease_until
        assert f'/review/{pair.pk}/">Pair {pair.pk}</a>, until {timezone.localtime(until):%H:%M}' in page


def test_pair_assigned_to_others_can_be_previewed(ann: User) -> None:
    (pair,) = waiting_pairs(1)
    assignments.claim_next_pair(reviewer("bob"))
    client = signed_in(ann)
    page = client.get(f"/review/{pair.pk}/").content.decode()
    assert "This pair is assigned to other reviewers" in page
    assert "/take/" not in page
    assert client.post(f"/review/{pair.pk}/take/").status_code == 409


def test_rest_preview_does_not_claim_pair_but_decision_does(ann: User) -> None:
    (pair,) = waiting_pairs(1)
    suggest(pair, "first")
    api = APIClient()
    api.force_authenticate(ann)
    shown = api.get(f"/api/v1/pairs/{pair.pk}/").json()
    assert (shown["state"], shown["lease_until"], shown["suggestion"]) == ("free", None, None)
    assert not Assignment.objects.exists()
    api.post(f"/api/v1/pairs/{pair.pk}/decision", {"verdict": "A"}, format="json")
    assert Preference.objects.get(source="human").verdict == "first"


# ---- lost assignments -----------------------------------------------------------------------------------------------


def lapsed(ann: User) -> Assignment:
    mine = assignments.claim_next_pair(ann).assignment
    Assignment.objects.filter(pk=mine.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    assignments.release_lapsed_assignments()
    return mine


def test_decision_after_lapsed_lease_is_stored_if_pair_is_free(ann: User) -> None:
    (pair,) = waiting_pairs(1)
    lapsed(ann)
    assert signed_in(ann).post(f"/review/{pair.pk}/decision/", {"verdict": "a"}).status_code == 302
    assert Preference.objects.get().verdict == "first"


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_text_is_shown_and_saved_as_draft_if_assignment_was_lost(ann: User, headers: dict[str, str]) -> None:
    (pair,) = waiting_pairs(1)
    mine = lapsed(ann)
    assignments.claim_next_pair(reviewer("bob"))
    sent = {"verdict": "a", "critique": "Two pages of <thoughts>."}
    answer = signed_in(ann).post(f"/review/{pair.pk}/decision/", sent, headers=headers)
    assert "Two pages of &lt;thoughts&gt;." in answer.content.decode()
    mine.refresh_from_db()
    assert (mine.state, mine.draft["critique"]) == ("lapsed", "Two pages of <thoughts>.")


def test_draft_after_lapsed_lease_is_saved_and_reopens_free_assignment(ann: User) -> None:
    first, second = waiting_pairs(2)
    mine = lapsed(ann)
    client = signed_in(ann)
    assert client.post(f"/review/{first.pk}/draft/", {"critique": "More"}).status_code == 204
    assert held() == [first.pk]
    client.post(f"/review/{second.pk}/take/")
    answer = client.post(f"/review/{first.pk}/draft/", {"critique": "Still more"})
    assert (answer.status_code, held()) == (409, [second.pk])  # an open window does not claim the pair of another
    mine.refresh_from_db()
    assert mine.draft["critique"] == "Still more"


def test_pair_of_a_deleted_reviewer_returns_to_the_queue(ann: User) -> None:
    decided, held = waiting_pairs(2)
    decisions.decide(assignment=assignments.claim_next_pair(ann).assignment, decision=Decision(verdict="tie"))
    assignments.claim_next_pair(ann)
    ann.delete()
    assert list(Pair.objects.filter(pk__in=[decided.pk, held.pk]).order_by("pk").values_list("free", flat=True)) == [
        0,
        1,
    ]
    taken = assignments.claim_next_pair(reviewer("bob")).assignment
    assert taken is not None
    assert taken.pair == held
