"""Tests of the links between runs, responses, pairs, preferences and MLflow."""

from typing import Any

import pytest
from django.test import Client

from preferences.models import Preference
from review.models import Pair
from review.queue import assignments
from runs.models import Run
from tests.markup import markup
from tests.members import member
from tests.review.pages import reviewer, suggest, waiting_pairs

pytestmark = pytest.mark.django_db

LOGGED = {"uri": "http://mlflow.test:5000", "experiment_id": "3", "parent": "aaa"}


@pytest.fixture(autouse=True)
def nothing_drawn(monkeypatch: Any) -> None:
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.99)


@pytest.fixture
def ann(client: Client) -> Client:
    client.force_login(reviewer())
    return client


def decided(client: Client) -> tuple[Pair, Preference]:
    """A pair whose suggestion, the first, a person overrode."""
    (pair,) = waiting_pairs(1)
    suggest(pair, "first")
    client.get("/review/", follow=True)
    client.post(f"/review/{pair.pk}/decision/", {"verdict": "b"})
    return pair, Preference.objects.get(source="human")


def test_run_page_links_to_pairs_and_preferences(ann: Client) -> None:
    pair, _stored = decided(ann)
    waiting_pairs(1)  # of another run
    address = f"/review/runs/{pair.run_id}/"
    assert f'hx-get="{address}"' in ann.get(f"/runs/{pair.run_id}/").content.decode()
    page = markup(ann.get(address))
    assert "<dd>1</dd>" in page  # one pair, none of which waits
    for source in ("human", "llm"):
        assert f'href="/preferences/?run={pair.run_id}&amp;source={source}">1 verdict<' in page
    assert "source=execution" not in page


def test_run_page_links_reviewers_to_waiting_pairs(ann: Client) -> None:
    (pair,) = waiting_pairs(1)
    link = f'href="/review/?run={pair.run_id}"'
    assert link in ann.get(f"/review/runs/{pair.run_id}/").content.decode()
    visitor = Client()
    visitor.force_login(member(name="visitor"))
    page = markup(visitor.get(f"/review/runs/{pair.run_id}/"))
    assert "1 waiting for review" in page
    assert link not in page


def test_response_page_links_to_its_pair_and_verdicts(ann: Client) -> None:
    pair, stored = decided(ann)
    for response, judge, person in (
        (pair.first, "this one is better", "the other is better"),
        (pair.second, "the other is better", "this one is better"),
    ):
        address = f"/review/responses/{response.pk}/"
        assert f'hx-get="{address}"' in ann.get(f"/responses/{response.pk}/").content.decode()
        page = ann.get(address).content.decode()
        assert f'href="/review/{pair.pk}/"' in page
        assert f'href="/preferences/{stored.pk}/">{person}<' in page
        assert f'href="/preferences/{pair.suggestion_id}/">{judge}<' in page
        assert "overrode the suggestion" in page


def test_decided_pair_links_to_verdict_responses_and_run(ann: Client) -> None:
    pair, stored = decided(ann)
    page = ann.get(f"/review/{pair.pk}/").content.decode()
    for address in (
        f"/preferences/{stored.pk}/",
        f"/responses/{pair.first_id}/",
        f"/responses/{pair.second_id}/",
        f"/runs/{pair.run_id}/",
    ):
        assert f'href="{address}"' in page


def test_undecided_pair_does_not_link_to_responses_or_run(ann: Client) -> None:
    (pair,) = waiting_pairs(1)
    page = ann.get(f"/review/{pair.pk}/").content.decode()
    assert "/responses/" not in page
    assert f'href="/runs/{pair.run_id}/"' not in page


@pytest.mark.parametrize(
    ("tracked", "setting", "expected"),
    [
        (LOGGED, "", "http://mlflow.test:5000/#/experiments/3/runs/"),
        (LOGGED, "https://mlflow.example.org/", "https://mlflow.example.org/#/experiments/3/runs/"),
        ({**LOGGED, "uri": "sqlite:////var/mlflow.sqlite3"}, "", ""),
        ({"uri": "http://mlflow.test:5000"}, "", ""),
    ],
)
def test_run_and_response_link_to_mlflow_if_tracking_uri_is_a_url(
    ann: Client, settings: Any, tracked: dict[str, Any], setting: str, expected: str
) -> None:
    settings.MLFLOW_URL = setting
    pair, _stored = decided(ann)
    cells = {f"{pair.first.run_environment.version} / alpha": "bbb"} if "parent" in tracked else {}
    Run.objects.filter(pk=pair.run_id).update(tracking={**tracked, "cells": cells}, tracking_state="logged")
    for address, key in (
        (f"/runs/{pair.run_id}/", "aaa"),
        (f"/review/runs/{pair.run_id}/", "aaa"),
        (f"/review/responses/{pair.first_id}/", "bbb"),
    ):
        page = ann.get(address).content.decode()
        assert (f'href="{expected}{key}"' in page) if expected else ("/#/experiments" not in page)


def test_pairs_of_private_environments_of_others_return_404(ann: Client) -> None:
    (pair,) = waiting_pairs(1)
    type(pair.first.run_environment.version.environment).objects.update(visibility="private")
    assert ann.get(f"/review/runs/{pair.run_id}/").status_code == 404
    assert ann.get(f"/review/responses/{pair.first_id}/").status_code == 404


def test_review_is_linked_only_for_reviewers(client: Client) -> None:
    (pair,) = waiting_pairs(1)
    for who, linked in ((member(name="reader"), False), (member("Reviewer", name="reviewer"), True)):
        client.force_login(who)
        for address in (f"/review/responses/{pair.first_id}/", "/preferences/", "/agreement/"):
            main = client.get(address).content.decode().partition("<main")[2]
            assert ('href="/review/' in main) == linked, (who.username, address)
