"""Filters of lists and exports: unknown or invalid parameters are rejected by name and never ignored."""

import re

import pytest
from django.contrib.auth.models import Group, User
from django.http import QueryDict
from django.test import Client
from rest_framework.test import APIClient

from hub.models import Environment, EnvironmentVersion, Team
from runs.models import Run
from runs.web.forms import FailuresFilter
from tests.factories import stored_outcomes, stored_run, stored_version
from tests.members import member

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return member("Curator", "Runner", "Reviewer", name="ann")


@pytest.fixture
def run() -> Run:
    version = stored_version("sums", 2)
    Environment.objects.update(latest=version, visibility=Environment.Visibility.PUBLISHED)
    run = stored_run(version, name="a run to be found")
    stored_outcomes(run, "pf")
    return run


REST = [
    ("environments/", "state=gone", "category=none"),
    ("environments/sums/versions/1.0.0/cases/", "q=" + "x" * 201, "satus=failed"),
    ("runs/", "status=typo", "environment=..%2F"),
    ("runs/", "team=typo", "team=vision"),
    ("runs/", "environment=sum", "model=alpa"),
    ("environments/", "team=typo", "team=vision"),
    ("models/", "team=typo", "team=vision"),
    ("teams/", "q=" + "x" * 151, "role=manager"),
    ("runs/RUN/responses/", "status=typo", "flag=typo"),
    ("runs/RUN/failures", "format=jsonl&model=" + "x" * 200, "format=typo"),
    ("runs/RUN/rollouts", "format=typo", "since=2026-01-01"),
    ("episodes/", "done=typo", "done=2"),
    ("episodes/export", "since=yesterday", "format=typo"),
    ("preferences/", "verdict=typo", "run=x"),
    ("preferences/", "environment=sum", "run=999"),
    ("agreement/", "environment=sum", "run=999"),
    ("preferences/export", "format=trl&since=x", "format=typo"),
    ("preferences/export", "format=trl&environment=sum", "format=trl&run=999"),
    ("agreement/", "source=typo", "run=0"),
    ("pairs/next", "run=typo", "run=-1"),
    ("compare/", "a=typo", "a=1&b=x"),
]
PAGES = [
    ("/hub/", "state=gone", "environments/sums"),
    ("/hub/sums/1.0.0/cases/", "q=" + "x" * 201, "0 + 1"),
    ("/runs/", "status=typo", "a run to be found"),
    ("/runs/", "environment=sum", "a run to be found"),
    ("/runs/RUN/", "status=typo", 'data-open class="mono" href="/responses/'),
    ("/runs/RUN/cases/", "solved=typo", "All responses to this case side by side"),
    ("/hub/sums/1.0.0/results/", "model=" + "x" * 201, "<caption"),
    ("/preferences/", "verdict=typo", "data-open href"),
    ("/agreement/", "run=x", "Reviewers</h2>"),
    ("/ranking/", "source=typo", "<svg class="),
    ("/compare/", "a=typo", "<caption"),
]


@pytest.fixture
def api(ann: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(ann)
    return client


@pytest.mark.parametrize(("path", "wrong", "wrong_too"), REST, ids=[row[0] for row in REST])
def test_rest_rejects_unknown_filters_and_values(
    api: APIClient, run: Run, path: str, wrong: str, wrong_too: str
) -> None:
    address = f"/api/v1/{path.replace('RUN', str(run.pk))}"
    for query in (wrong, wrong_too):
        answer = api.get(f"{address}?{query}")
        assert answer.status_code == 400, (query, answer.content)
        assert [error["path"] for error in answer.json()["errors"]] == [query.rpartition("&")[2].partition("=")[0]]
    required = {"preferences/export": "format=trl&", "compare/": "a=1&"}.get(path, "")
    answer = api.get(f"{address}?{required}satus=failed")
    assert (answer.status_code, [error["path"] for error in answer.json()["errors"]]) == (400, ["satus"])
    assert "satus is not a parameter of this list. Known are " in answer.json()["errors"][0]["message"]


@pytest.mark.parametrize(("path", "wrong", "row"), PAGES, ids=[row[0] for row in PAGES])
@pytest.mark.parametrize("unknown", ["satus=failed"])
def test_pages_report_invalid_filters_and_show_no_rows(
    client: Client, ann: User, run: Run, path: str, wrong: str, row: str, unknown: str
) -> None:
    client.force_login(ann)
    address = path.replace("RUN", str(run.pk))
    for query in (wrong, unknown):
        answer = client.get(f"{address}?{query}")
        page = answer.content.decode()
        assert answer.status_code == 400
        assert f"<code>{query.partition('=')[0]}</code>: " in page
        assert row not in page
        assert re.findall(r'class="empty">[^<]*\b(?:yet|No more|the same)\b', page) == []  # there are rows, not shown


def test_unknown_names_are_answered_with_those_that_the_user_may_see(api: APIClient, run: Run) -> None:
    hidden = stored_version("sum-of-a-team", 2).environment
    Environment.objects.filter(pk=hidden.pk).update(
        team=Team.objects.create(slug="other", group=Group.objects.create())
    )
    stored_run(EnvironmentVersion.objects.get(environment=hidden), ["alphas"])
    message = api.get("/api/v1/runs/?environment=sum-of-a-team").json()["errors"][0]["message"]
    assert message == "There is no environment 'sum-of-a-team'; known are sums."
    assert api.get("/api/v1/runs/?model=alphas").status_code == 400
    assert api.get("/api/v1/runs/?model=alpha&environment=sums").json()["results"][0]["run"] == run.pk


def test_htmx_list_reports_invalid_filters_in_place_of_rows(client: Client, ann: User, run: Run) -> None:
    client.force_login(ann)
    headers = {"HX-Request": "true", "HX-Target": "runs"}
    answer = client.get("/runs/?status=typo", headers=headers)
    assert answer.status_code == 200
    assert "typo is not known. Choose one of queued, running," in answer.content.decode()
    assert run.name not in answer.content.decode()


def test_download_of_failures_rejects_unknown_parameters(client: Client, ann: User, run: Run) -> None:
    client.force_login(ann)
    answer = client.get(f"/runs/{run.pk}/failures?format=jsonl&modell=alpha", follow=True)
    assert answer.redirect_chain
    assert "modell: modell is not a parameter of this list." in "".join(map(str, answer.context["messages"]))


def test_filter_with_several_values_is_rejected(api: APIClient, client: Client, ann: User, run: Run) -> None:
    answer = api.get("/api/v1/runs/?status=completed&status=failed")
    assert answer.status_code == 400
    assert answer.json()["errors"] == [
        {"path": "status", "message": "status is given several times; give one value."},
    ]
    assert api.get("/api/v1/runs/?status=&status=completed&status=completed").json()["results"]
    for repeated in ("done=true&done=false", "group=a&group=b"):
        answer = api.get(f"/api/v1/episodes/?{repeated}")
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, repeated.partition("=")[0])
    client.force_login(ann)
    assert client.get("/runs/?status=completed&status=failed").status_code == 400


def test_query_string_keeps_given_values_but_not_those_left_out() -> None:
    form = FailuresFilter(QueryDict("q=a+b%26c&model=&format=jsonl&after=7"))
    assert form.query_string() == "q=a+b%26c&format=jsonl"
    assert form.query_string(without=["format"]) == "q=a+b%26c"


def test_list_without_filters_accepts_only_paging_parameters(api: APIClient) -> None:
    assert api.get("/api/v1/webhooks/?page_size=10").status_code == 200
    answer = api.get("/api/v1/webhooks/?provider=openai")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["message"] == "provider is not a parameter of this list. It has no filters."


@pytest.mark.parametrize("path", ["runs/", "runs/RUN/responses/", "models/", "webhooks/", "teams/"])
def test_rest_rejects_the_paging_parameters_of_pages(api: APIClient, run: Run, path: str) -> None:
    answer = api.get(f"/api/v1/{path.replace('RUN', str(run.pk))}?sort=zzz&after=3&before=4&page_size=10")
    assert answer.status_code == 400
    assert {error["path"] for error in answer.json()["errors"]} == {"sort", "after", "before"}
    assert "Follow `next` and `previous`" in answer.json()["errors"][0]["message"]


def test_known_filters_and_paging_are_accepted(api: APIClient, client: Client, ann: User, run: Run) -> None:
    assert EnvironmentVersion.objects.count() == 1
    assert len(api.get("/api/v1/runs/?status=completed&page_size=10").json()["results"]) == 1
    assert api.get("/api/v1/episodes/?done=True").json()["results"] == []
    client.force_login(ann)
    assert run.name in client.get("/runs/?status=completed&sort=-cost&model=&q=").content.decode()


@pytest.mark.parametrize("query", ["sort=zzz", "sort=-zzz", "sort=--cost", "after=x", "before=-1", "after=" + "9" * 20])
@pytest.mark.parametrize("path", ["/runs/", "/runs/RUN/"])
def test_list_rejects_an_unknown_order_and_place(client: Client, ann: User, run: Run, path: str, query: str) -> None:
    client.force_login(ann)
    answer = client.get(f"{path.replace('RUN', str(run.pk))}?{query}")
    assert answer.status_code == 400
    assert f"<p data-reason>{query.partition('=')[0]}: this" in answer.content.decode()
