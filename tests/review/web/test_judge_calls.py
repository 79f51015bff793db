"""Tests of the judge's calls and of the marks on the page of a preference."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hub.models import Environment
from preferences.models import IssueCategory, Preference
from preferences.services import NewIssue
from preferences.spans import find_quote
from review.models import JudgeCall
from tests.review.pages import reviewer, suggest, waiting_pairs

pytestmark = pytest.mark.django_db


@pytest.fixture
def visitor(client: Client) -> Client:
    client.force_login(User.objects.create_user("visitor"))
    return client


@pytest.fixture
def judged() -> Preference:
    (pair,) = waiting_pairs(1, texts=("It is **four** now", "It is five"))
    span = find_quote(pair.first.messages, "four")
    issue = NewIssue(response=pair.first, category=IssueCategory.objects.get(slug="style"), span=span)
    preference = suggest(pair, issues=[issue])
    for swapped in (True, False):
        JudgeCall.objects.create(
            pair=pair,
            judge=preference.judge,
            fingerprint=preference.judge_fingerprint,
            prompt_version=preference.prompt_version,
            swapped=swapped,
            saw_evidence=False,
            text="<b>A</b> is worse." if swapped else "A is better.",
            input_tokens=1200,
            cost_usd=None,
        )
    return preference


def test_calls_of_both_orders_are_shown_with_their_replies_as_text(visitor: Client, judged: Preference) -> None:
    address = f"/review/preferences/{judged.pk}/calls/"
    assert f'hx-get="{address}"' in visitor.get(f"/preferences/{judged.pk}/").content.decode()
    page = visitor.get(address).content.decode()
    own, turned = page.index("First response shown as A"), page.index("Second response shown as A")
    assert own < page.index("A is better.") < turned < page.index("&lt;b&gt;A&lt;/b&gt; is worse.")
    assert "1,200 tokens in" in page
    part = visitor.get(address, headers={"HX-Request": "true", "HX-Target": "calls"}).content.decode()
    assert part.lstrip().startswith('<div id="calls">')


def test_issues_are_marked_in_the_responses(visitor: Client, judged: Preference) -> None:
    page = visitor.get(f"/preferences/{judged.pk}/").content.decode()
    assert '<mark class="judge"' in page
    assert page.partition('<mark class="judge"')[2].partition(">")[2].startswith("four<")


def test_calls_are_hidden_from_reviewers_of_the_pair_and_replies_of_held_out_environments(
    client: Client, visitor: Client, judged: Preference
) -> None:
    address = f"/review/preferences/{judged.pk}/calls/"
    JudgeCall.objects.update(problem="no `choice` in: the expected answer")
    assert "the expected answer" in visitor.get(address).content.decode()
    Environment.objects.update(held_out=True)
    page = visitor.get(address).content.decode()
    assert "The reply is shown only to those who may see" in page and "is better." not in page
    assert "the expected answer" not in page
    client.force_login(reviewer())
    assert client.get(address).status_code == 404
