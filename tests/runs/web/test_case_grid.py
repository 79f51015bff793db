"""Page of the grid of cases and models."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from hub.models import Environment
from runs.models import Run
from tests.factories import stored_outcomes, stored_response, stored_run, stored_version
from tests.members import member

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(client: Client) -> User:
    user = member("Runner")
    client.force_login(user)
    return user


@pytest.fixture
def run(user: User) -> Run:
    version = stored_version("sums", cases=5)
    Environment.objects.filter(slug="sums").update(latest=version, visibility=Environment.Visibility.PUBLISHED)
    run = stored_run(version, ["alpha", "beta"], name="first")
    stored_outcomes(run, "ppffe", model="alpha")
    stored_outcomes(run, "pfpfu", model="beta")
    return run


def rows(client: Client, run: Run, query: str = "") -> list[list[str]]:
    """Return the texts of the cells of each row."""
    answer = client.get(f"/runs/{run.pk}/cases/{query}")
    assert answer.status_code == 200
    body = answer.content.decode().split("<tbody>")[1].split("</tbody>")[0]
    cells = [re.findall(r"<t[hd].*?</t[hd]>", row, re.S) for row in body.split("</tr>")[:-1]]
    return [[re.sub(r"<.*?>", "", cell).strip() for cell in row] for row in cells]


def test_grid_shows_the_status_of_each_model_and_the_share_that_passed(client: Client, run: Run) -> None:
    found = rows(client, run)
    assert [row[1:] for row in found] == [
        ["100.0 %", "passed", "passed"],
        ["50.0 %", "passed", "failed"],
        ["50.0 %", "failed", "passed"],
        ["0.0 %", "failed", "failed"],
        ["-", "errored", "unscored"],
    ]


def test_grid_is_sorted_by_difficulty_and_filtered_by_it(client: Client, run: Run) -> None:
    names = [row[0] for row in rows(client, run)]
    assert [row[0] for row in rows(client, run, "?sort=solved")] == [names[i] for i in (3, 1, 2, 0, 4)]
    assert [row[0] for row in rows(client, run, "?solved=some")] == names[1:3]
    assert [row[0] for row in rows(client, run, "?solved=none")] == [names[3]]
    assert [row[0] for row in rows(client, run, "?solved=all")] == [names[0]]


def test_attempts_that_differ_are_shown_as_a_share(client: Client, run: Run) -> None:
    alpha = run.models.get(label="alpha")
    first = run.environments.get().responses.filter(run_model=alpha).earliest("id")
    stored_response(run, case=first.case, model="alpha", attempt=2, status="failed")
    answer = client.get(f"/runs/{run.pk}/cases/").content.decode()
    assert '<span class="badge mixed">1/2</span>' in answer
    assert rows(client, run)[0][1] == "66.7 %"


def test_unknown_environment_and_filter_are_named_in_the_error(client: Client, run: Run) -> None:
    answer = client.get(f"/runs/{run.pk}/cases/?environment=other&solved=most")
    assert answer.status_code == 400
    assert "other is not part of this run. Choose one of sums." in answer.content.decode()
    assert "most is not known." in answer.content.decode()


def test_grid_of_a_run_that_the_user_may_not_see_does_not_exist(client: Client, run: Run) -> None:
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE)
    assert client.get(f"/runs/{run.pk}/cases/").status_code == 404


def test_number_of_queries_does_not_grow_with_cases(
    client: Client, run: Run, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(11):
        client.get(f"/runs/{run.pk}/cases/?sort=-solved")
