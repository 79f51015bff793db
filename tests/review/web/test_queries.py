"""Tests that the number of queries of the review page is constant and that the queue uses its indexes."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from preferences.models import IssueCategory
from preferences.services import NewIssue
from preferences.sides import Sides
from review.issues import MarkedIssue, new_issues
from review.models import Assignment, Pair
from review.queue import assignments, backlog
from review.queue.backlog import next_pair_by_run, review_progress
from review.queue.loading import pairs_with_responses
from runs.models import Run
from tests.factories import stored_score
from tests.review.pages import reviewer, suggest, waiting_pairs

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_drawn(monkeypatch: Any) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.99)


def asked(client: Client, user: User, *, pairs: int, scores: int, issues: int) -> tuple[int, int]:
    """Queries of a page, and of a decision that brings the next one."""
    first, second, *_ = waiting_pairs(pairs)
    for pair in (first, second):
        for side in (pair.first, pair.second):
            for i in range(scores):
                stored_score(side, rule=f"rule-{i}", value=float(i % 2))
        category = IssueCategory.objects.get(slug="style")
        suggest(pair, "first", issues=[NewIssue(response=pair.first, category=category) for _ in range(issues)])
    assignments.claim_next_pair(user, run=first.run_id)
    with CaptureQueriesContext(connection) as page:
        assert client.get(f"/review/{first.pk}/").status_code == 200
    with CaptureQueriesContext(connection) as decision:
        address = f"/review/{first.pk}/decision/"
        answer = client.post(address, {"verdict": "a", "run": first.run_id}, headers={"HX-Request": "true"})
    assert answer.headers["HX-Push-Url"] == f"/review/{second.pk}/?run={first.run_id}"
    return len(page), len(decision)


def test_queries_do_not_grow_with_pairs_scores_or_issues(client: Client) -> None:
    user = reviewer()
    client.force_login(user)
    few = asked(client, user, pairs=3, scores=1, issues=1)
    many = asked(client, user, pairs=12, scores=9, issues=7)
    assert many == few
    assert few[0] <= 16
    assert few[1] <= 31


def plan_of(sql: str) -> str:
    """How the database would go about it, were the tables large."""
    how = "EXPLAIN QUERY PLAN"
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            how = "EXPLAIN"
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off")
        cursor.execute(f"{how} {sql}")
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


def test_waiting_pairs_are_found_and_counted_by_index_without_sorting() -> None:
    for _ in range(2):
        waiting_pairs(1)
    user = reviewer()
    with CaptureQueriesContext(connection) as captured:
        assignments.claim_next_pair(user)
        review_progress(user)
    plans = [plan_of(query["sql"]) for query in captured if "free > 0" in query["sql"].replace('"', "")]
    assert len(plans) == 4  # the heads twice, the pair that is claimed, and the count
    for plan in plans:
        assert "pair_waiting" in plan
        assert "SCAN review_pair" not in plan
        assert "SCAN V0" not in plan.splitlines()  # pairs; teams are scanned by index
    sorting = [plan for plan in plans if "Sort" in plan or "TEMP B-TREE" in plan]
    assert len(sorting) == 1  # the claim sorts one pair of each run to choose the run


def test_lapsed_leases_are_found_by_index() -> None:
    with CaptureQueriesContext(connection) as captured:
        assignments.release_lapsed_assignments()
    # Both indexes hold open assignments only, of which a reviewer has one at most.
    plan = plan_of(captured[0]["sql"])
    assert "assignment_lease" in plan or "one_open_assignment_per_reviewer" in plan


def test_queue_reads_only_oldest_runs_and_reports_more(monkeypatch: Any) -> None:
    monkeypatch.setattr(backlog, "RUNS_AT_ONCE", 2)
    user = reviewer()
    pairs = [waiting_pairs(1)[0] for _ in range(3)]
    assert next_pair_by_run(user) == {pair.run_id: pair.pk for pair in pairs[:2]}
    assert (review_progress(user).waiting, review_progress(user).more) == (2, True)
    assert (review_progress(user, run=pairs[2].run_id).waiting, review_progress(user, run=pairs[2].run_id).more) == (
        1,
        False,
    )
    Pair.objects.filter(run=pairs[0].run_id).update(free=0)
    assert list(next_pair_by_run(user)) == [pairs[1].run_id, pairs[2].run_id]


def test_finished_run_does_not_hide_pairs_of_later_run() -> None:
    mine, other = waiting_pairs(1, overlap=2)[0], waiting_pairs(1)[0]
    user = reviewer()
    assert assignments.claim_next_pair(user).assignment.pair == mine
    Assignment.objects.update(state="done")
    assert assignments.claim_next_pair(user).assignment.pair == other
    assert Run.objects.count() == 2


def test_categories_of_marked_issues_are_read_at_once(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    (pair,) = pairs_with_responses(Pair.objects.filter(pk=waiting_pairs(1)[0].pk))
    marked = [MarkedIssue(side="first", category=slug) for slug in ("style", "style", "security")]
    with django_assert_num_queries(1):
        found = new_issues(pair, marked, Sides(swapped=False), choices=False)
    assert [issue.category.slug for issue in found] == ["style", "style", "security"]
