"""Tests that pages need as many queries for many rows as for one."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from hub.models import Environment
from preferences.models import Preference
from runs.models import ModelEndpoint, Response, Run
from runs.results.stored import get_results
from tests.factories import stored_outcomes, stored_run, stored_score, stored_version
from tests.review.pages import suggest, waiting_pairs

pytestmark = pytest.mark.django_db

PAGES: dict[str, Callable[[], str]] = {
    "dashboard": lambda: "/",
    "search": lambda: "/search/?q=sums",
    "hub": lambda: "/hub/",
    "environment": lambda: f"/hub/{_slug()}/1.0.0/",
    "environment, cases": lambda: f"/hub/{_slug()}/1.0.0/cases/?sort=passed&solved=some",
    "environment, changes": lambda: f"/hub/{_slug()}/1.0.0/changes/",
    "environment, certificate": lambda: f"/hub/{_slug()}/1.0.0/certificate/",
    "environment, results": lambda: f"/hub/{_slug()}/1.0.0/results/",
    "best results": lambda: "/runs/best/?" + "&".join(f"environment={row.slug}" for row in Environment.objects.all()),
    "runs": lambda: "/runs/",
    "new run": lambda: f"/runs/new/?model=small&environment={'&environment='.join(_slugs())}",
    "new run, like another": lambda: f"/runs/new/?run={_run()}",
    "run": lambda: f"/runs/{_run()}/",
    "run, cases": lambda: f"/runs/{_run()}/cases/",
    "run, slices": lambda: f"/runs/{_run()}/slices/",
    "response": lambda: f"/responses/{Response.objects.latest('pk').pk}/",
    "compare": lambda: f"/compare/?a={_run()}&model_a=alpha&model_b=beta",
    "models": lambda: "/models/",
    "model": lambda: "/models/alpha/",
    "review of a run": lambda: f"/review/runs/{_run()}/",
    "preferences": lambda: "/preferences/",
    "preference": lambda: f"/preferences/{Preference.objects.latest('pk').pk}/",
    "agreement": lambda: "/agreement/",
    "ranking": lambda: "/ranking/",
    "REST environments": lambda: "/api/v1/environments/",
    "REST cases": lambda: f"/api/v1/environments/{_slug()}/versions/1.0.0/cases/",
    "REST models": lambda: "/api/v1/models/",
    "REST runs": lambda: "/api/v1/runs/",
    "REST run": lambda: f"/api/v1/runs/{_run()}/",
    "REST responses": lambda: f"/api/v1/runs/{_run()}/responses/",
    "REST preferences": lambda: "/api/v1/preferences/",
    "REST agreement": lambda: "/api/v1/agreement/",
    "admin, environments": lambda: "/admin/hub/environment/",
    "admin, versions": lambda: "/admin/hub/environmentversion/",
    "admin, runs": lambda: "/admin/runs/run/",
    "admin, preferences": lambda: "/admin/preferences/preference/",
    "admin, assignments": lambda: "/admin/review/assignment/",
}
# Addresses that programs request often, with the number of queries that they may need.
LIMITS = {"REST responses": 6}
LARGE_COLUMNS = ('"case_positions"', '"certificate"', '"manifest"', '"readme"', '"spec"')


def _slug() -> str:
    return Environment.objects.earliest("pk").slug


def _slugs() -> list[str]:
    return list(Environment.objects.values_list("slug", flat=True))


def _run() -> int:
    return Run.objects.latest("pk").pk


def _store(runs: int, cases: int) -> None:
    """Store *runs* runs, each of an environment of its own and of the one that all runs share, with preferences."""
    shared = Environment.objects.filter(slug="shared").first()
    version = shared.versions.get() if shared else stored_version("shared", 1)
    for _ in range(runs):
        for i, pair in enumerate(waiting_pairs(cases)):
            suggest(pair, "first" if i % 2 else "second")
        own = Environment.objects.latest("pk").versions.get()
        run = stored_run([own, version], ["alpha", "beta"])
        for model, letter in (("alpha", "p"), ("beta", "f")):
            stored_outcomes(run, letter * cases, model=model, version=own)
            stored_outcomes(run, letter, model=model, version=version)
        for response in Response.objects.filter(run_environment__run=run):
            stored_score(response)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    for run in Run.objects.all():
        get_results(run)


def _count(client: Client, address: str) -> int:
    client.get(address)  # templates and content types are read once
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200, address
    return len(queries)


@pytest.mark.exhaustive
def test_pages_need_as_many_queries_for_many_rows_as_for_few(client: Client) -> None:
    client.force_login(User.objects.create_superuser("boss"))
    ModelEndpoint.objects.create(name="small", model="m")
    _store(2, 2)
    few = {name: _count(client, address()) for name, address in PAGES.items()}
    _store(4, 6)
    many = {name: _count(client, address()) for name, address in PAGES.items()}
    assert many == few
    assert max(few.values()) <= 25
    assert {name: few[name] for name in LIMITS if few[name] > LIMITS[name]} == {}


def test_responses_over_rest_are_read_with_few_queries_and_without_large_columns(client: Client) -> None:
    client.force_login(User.objects.create_superuser("boss"))
    _store(1, 2)
    address = PAGES["REST responses"]()
    client.get(address)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).json()["results"]
    assert len(queries) <= LIMITS["REST responses"]
    assert [column for column in LARGE_COLUMNS if any(column in query["sql"] for query in queries)] == []
