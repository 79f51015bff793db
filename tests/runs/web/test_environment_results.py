"""The tab "Results" of an environment: leaderboard and results over time, from stored results alone; best results."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hub.models import Environment, EnvironmentVersion
from runs.models import Run, RunEnvironment
from runs.results.stored import get_results
from tests.factories import stored_outcomes, stored_run, stored_version
from tests.members import member

pytestmark = pytest.mark.django_db
ADDRESS = "/hub/sums/1.0.0/results/"


@pytest.fixture
def user(client: Client) -> User:
    user = member()
    client.force_login(user)
    return user


def public(version: str = "1.0.0", slug: str = "sums") -> EnvironmentVersion:
    found = stored_version(slug, 10, version=version)
    Environment.objects.filter(pk=found.environment_id).update(
        latest=found, visibility=Environment.Visibility.PUBLISHED
    )
    return found


def evaluated(version: EnvironmentVersion, model: str, passed: int, cases: int = 10, days_ago: int = 0) -> Run:
    """A completed run of the first *cases* cases, with stored results."""
    run = stored_run(version, [model], finished_at=timezone.now() - timedelta(days=days_ago))
    RunEnvironment.objects.filter(run=run).update(case_count=cases)
    stored_outcomes(run, "p" * passed + "f" * (cases - passed) + "-" * (10 - cases))
    get_results(run)
    return run


def page(client: Client, address: str = ADDRESS, target: str = "") -> str:
    answer = client.get(address, headers={"HX-Target": target} if target else {})
    assert answer.status_code == 200
    return answer.content.decode()


def board(client: Client) -> list[tuple[str, str]]:
    return re.findall(r"/models/([^/]+)/.*?<strong>([\d.]+ %)", page(client, target="past"), re.DOTALL)


def test_environment_without_results_says_so(client: Client, user: User) -> None:
    public()
    shown = page(client)
    assert "No completed run has evaluated this version yet." in shown
    assert "No completed run has evaluated a version of this environment yet." in shown
    assert "Run it" not in shown and '<svg class="chart"' not in shown
    client.force_login(member("Runner"))
    assert "/runs/new/?environment=sums" in page(client)


def test_one_result_has_interval_cases_and_run(client: Client, user: User) -> None:
    run = evaluated(public(), "alpha", 8)
    shown = page(client)
    assert "80.0 %" in shown and "[47.9, 95.4]" in shown and f"/runs/{run.pk}/" in shown
    assert 'id="id_model"' not in shown


def test_leaderboard_has_the_latest_complete_result_of_each_model(client: Client, user: User) -> None:
    version = public()
    evaluated(version, "alpha", 9, days_ago=2)
    evaluated(version, "alpha", 7, days_ago=1)
    evaluated(version, "alpha", 5, cases=5)
    evaluated(version, "beta", 8)
    evaluated(version, "pilot", 2, cases=2)
    evaluated(public("2.0.0"), "gamma", 10)
    assert board(client) == [("beta", "80.0 %"), ("alpha", "70.0 %"), ("pilot", "100.0 %")]
    assert "of 10</small>" in page(client, target="past")


def test_incomplete_result_is_neither_first_nor_the_best_one(client: Client, user: User) -> None:
    version = public()
    complete = evaluated(version, "beta", 6)
    lucky = stored_run(version, ["lucky"])
    stored_outcomes(lucky, "p" + "e" * 9, model="lucky")
    get_results(lucky)
    assert board(client) == [("beta", "60.0 %"), ("lucky", "100.0 %")]
    assert f"/runs/{complete.pk}/" in page(client, "/runs/best/?environment=sums")
    assert 'data-label="cases">1<' in page(client, "/models/lucky/")  # those that were scored, as in every report


def test_run_that_failed_does_not_hide_the_complete_result_before_it(client: Client, user: User) -> None:
    version = public()
    evaluated(version, "beta", 6)
    failed = stored_run(version, ["beta"])
    stored_outcomes(failed, "p" + "e" * 9, model="beta")
    get_results(failed)
    assert board(client) == [("beta", "60.0 %")]


def test_incomplete_result_is_the_best_one_if_there_is_no_other(client: Client, user: User) -> None:
    run = stored_run(public(), ["lucky"])
    stored_outcomes(run, "p" + "e" * 9, model="lucky")
    get_results(run)
    assert f"/runs/{run.pk}/" in page(client, "/runs/best/?environment=sums")


def test_results_over_time_have_all_versions_and_one_model_if_chosen(client: Client, user: User) -> None:
    version = public()
    runs = [evaluated(version, "alpha", 9, days_ago=9), evaluated(public("2.0.0"), "alpha", 7, days_ago=3)]
    other = evaluated(version, "beta", 1)
    part = page(client, target="history")
    assert part.strip().startswith('<div id="history">')
    assert re.findall(r'href="/runs/(\d+)/"', part) == [str(run.pk) for run in (other, *reversed(runs))]
    # a chart has a wide and a narrow drawing
    assert part.count("<circle") == 2 * 3 and "version 2.0.0" in part
    chosen = page(client, f"{ADDRESS}?model=alpha")
    assert chosen.count("<circle") == 2 * 2 and '<option value="alpha" selected>' in chosen
    assert "No result of nobody" in page(client, f"{ADDRESS}?model=nobody")
    assert client.get(f"{ADDRESS}?colour=red").status_code == 400


def test_results_are_read_from_stored_rows_in_a_fixed_number_of_queries(client: Client, user: User) -> None:
    counts = []
    for slug, runs in (("few", 1), ("many", 60)):
        version = public(slug=slug)
        for i in range(runs):
            evaluated(version, f"model-{i % 3}", 5, days_ago=i)
        page(client, f"/hub/{slug}/1.0.0/results/")
        with CaptureQueriesContext(connection) as queries:
            shown = page(client, f"/hub/{slug}/1.0.0/results/")
        assert not any("runs_response" in query["sql"] for query in queries)
        counts.append(len(queries))
    assert counts[0] == counts[1]
    after = re.search(r'rel="next" href="([^"]+)"', shown)
    assert after and len(re.findall(r">run \d+<", page(client, f"/hub/many/1.0.0/results/{after[1]}", "history"))) == 10


def test_results_leave_out_runs_of_private_environments(client: Client) -> None:
    version = public()
    run = stored_run([version, stored_version("private", 1)], ["hidden"])
    stored_outcomes(run, "p" * 10, version=version)
    get_results(run)
    for user, seen in ((member(), False), (member("Curator"), True)):
        client.force_login(user)
        assert ("/models/hidden/" in page(client)) is seen


def test_results_of_held_out_environments_are_shown_to_all(client: Client) -> None:
    evaluated(public(), "alpha", 8)
    owner = member(name="owner")
    Environment.objects.update(held_out=True, owner=owner)
    for user, content in ((member(), False), (owner, True), (member("Curator"), True)):
        client.force_login(user)
        shown = page(client)
        assert "80.0 %" in shown and ("/files/" in shown) is content


# ---- best results of the catalogue -----------------------------------------------------------------------------------


def test_best_results_have_accuracy_interval_and_model(client: Client, user: User) -> None:
    version = public()
    evaluated(version, "alpha", 7)
    best = evaluated(version, "beta", 8, days_ago=3)
    evaluated(version, "pilot", 2, cases=2)
    public(slug="other")
    part = page(client, "/runs/best/?environment=sums&environment=other&environment=missing")
    assert f"/runs/{best.pk}/" in part and "[47.9, 95.4]" in part and "beta" in part and "pilot" not in part
    for slug in ("sums", "other", "missing"):
        assert f'id="best-{slug}"' in part
    assert part.count("No completed run has evaluated all cases") == 2


def test_lines_of_more_models_than_colours_are_told_apart_by_dashes(client: Client, user: User) -> None:
    version = public()
    for number in range(20):
        for days_ago in (1, 0):
            evaluated(version, f"model-{number:02}", 5, days_ago=days_ago)
    chart = page(client, target="history").partition("</svg>")[0]
    styles = re.findall(r'<rect class="([^"]+)"', chart)
    assert len(set(styles)) == 20 and styles[7:10] == ["c7", "c0 dashed0", "c1 dashed0"]
    assert set(styles) == set(re.findall(r'<circle class="([^"]+)"', chart))
    assert set(styles) <= set(re.findall(r'<line class="([^"]+)"', chart))
