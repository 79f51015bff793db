"""What a team owns is invisible to others: on every page, over REST and in the admin."""

import pytest
from django.contrib.auth.models import User
from django.db.models import Model
from django.forms.models import model_to_dict
from django.test import Client

from hub.models import CaseDefect, Environment
from preferences.models import Preference
from review.models import Assignment, Pair
from runs.models import EpisodeSession, ModelEndpoint, Response, Run
from tests.site.accounts.addresses import addresses
from tests.site.teams.world import KEY, MISSING, SECRET, World, make_world

pytestmark = pytest.mark.django_db

SIGNS_OUT = {"/logout/", "/admin/logout/"}
# What people may put into addresses and forms to look for the team's things.
GIVEN: list[dict[str, object]] = [
    {"q": SECRET},
    {"q": KEY},
    {"run": KEY},
    {"environment": f"slug-{SECRET}"},
    {"model": f"model-{SECRET}"},
    {"tag": f"tag-{SECRET}"},
    {"reviewer": f"person-{SECRET}"},
    {"a": KEY},
    {"a": KEY, "b": KEY},
    {"a": KEY, "b": KEY, "environment": f"slug-{SECRET}", "case": f"case-{SECRET}"},
    {"group": "g"},
    {"state": "private"},
    {"model_q": SECRET},
    {"team": f"team-{SECRET}"},
]


@pytest.fixture
def world() -> World:
    return make_world()


def signed_in(user: User) -> Client:
    client = Client(raise_request_exception=True)
    client.force_login(user)
    return client


def text_of(answer) -> str:  # type: ignore[no-untyped-def]
    """Return the body and the headers, without those streams that do not end."""
    if answer.get("Content-Type", "").startswith("text/event-stream"):
        return next(iter(answer.streaming_content)).decode()
    return answer.getvalue().decode(errors="replace") + str(answer.headers)


def secrets_in(answer, *typed: object) -> bool:  # type: ignore[no-untyped-def]
    """Return whether *answer* shows something of the team that was not typed."""
    text = text_of(answer)
    for value in sorted(map(str, typed), key=len, reverse=True):
        text = text.replace(value, "")
    return SECRET in text


@pytest.mark.exhaustive
def test_no_page_and_no_list_shows_things_of_another_team(world: World) -> None:
    client, shown, answered = signed_in(world.outsider), [], []
    urls = sorted(set(addresses(samples=world.shared)) - SIGNS_OUT)
    for url in urls:
        answer = client.get(url)
        if answer.status_code >= 500 or secrets_in(answer):
            shown.append(f"{url}: {answer.status_code}")
        if answer.status_code in (200, 302, 400):
            answered.append(url)
    assert len(urls) > 150 and len(answered) > 70 and shown == []
    typed = [value for given in GIVEN for value in given.values()]  # a message shows what an earlier address had
    for url in answered:
        for given in GIVEN:
            answer = client.get(url, given)
            if answer.status_code >= 500 or secrets_in(answer, *typed):
                shown.append(f"{url} {given}: {answer.status_code}")
    assert shown == []


@pytest.mark.parametrize("method", ["get", "post"])
def test_things_of_another_team_are_as_if_they_did_not_exist(world: World, method: str) -> None:
    client, differ = signed_in(world.outsider), []
    before = snapshot()
    for url, missing in zip(addresses(samples=world.samples), addresses(samples=MISSING), strict=True):
        if url != missing:
            answer, expected = getattr(client, method)(url), getattr(client, method)(missing)
            if answer.status_code != expected.status_code or secrets_in(answer, *world.samples.values()):
                differ.append(f"{url}: {answer.status_code}, {missing}: {expected.status_code}")
    assert differ == []
    assert snapshot() == before


def snapshot() -> list[dict[str, object]]:
    """Return what an outsider might change."""
    kinds: list[type[Model]] = [Run, Environment, ModelEndpoint, Response, Pair, Assignment, Preference, CaseDefect]
    return [model_to_dict(row) for kind in (*kinds, EpisodeSession) for row in kind._default_manager.order_by("pk")]


@pytest.mark.exhaustive
def test_members_see_the_things_of_their_team(world: World) -> None:
    client = signed_in(world.insider)
    seen = {url for url in addresses(samples=world.samples) if url not in SIGNS_OUT and secrets_in(client.get(url))}
    everywhere = {"/", "/runs/", "/hub/", "/models/", "/preferences/", f"/runs/{KEY}/", f"/responses/{KEY}/"}
    everywhere |= {f"/review/{KEY}/", f"/preferences/{KEY}/", f"/hub/slug-{SECRET}/", f"/endpoints/{KEY}/"}
    rest = {"environments/", "runs/", "models/", "preferences/", f"runs/{KEY}/", f"runs/{KEY}/responses/"}
    admin = {"hub/environment/", "hub/environmentversion/", "hub/casedefect/", "runs/run/", "runs/modelendpoint/"}
    admin |= {"preferences/preference/", "review/assignment/"}
    everywhere |= {f"/api/v1/{path}" for path in rest} | {f"/admin/{path}" for path in admin}
    assert everywhere - seen == set()
    assert len(seen) > 70
