"""Runs that are started from the site and executed by a worker."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hub.models import Environment
from hub.services import import_bundle
from runs.models import ModelEndpoint, Run
from runs.tasks import execute_queued_runs
from tests.endpoint import Endpoint, completion, endpoint
from tests.hub.bundle_files import write_bundle
from tests.members import member

CAPITALS = {"France": "Paris", "Spain": "Madrid", "Norway": "Oslo"}


def capital(request: dict[str, Any], _: int) -> Any:
    """Reply correctly, except for Norway."""
    text = request["messages"][-1]["content"]
    return completion(
        next((city for country, city in CAPITALS.items() if country in text and city != "Oslo"), "Bergen")
    )


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with endpoint(capital) as running:
        yield running


@pytest.fixture
def runner(client: Client, tmp_path: Path, server: Endpoint, db: None) -> User:
    version = import_bundle(bundle=write_bundle(tmp_path / "capitals"))
    Environment.objects.filter(pk=version.environment_id).update(visibility=Environment.Visibility.PUBLISHED)
    ModelEndpoint.objects.create(name="small", model="m", base_url=server.url, price_input=1, price_output=2)
    ModelEndpoint.objects.create(name="unpriced", model="m", base_url=server.url)
    user = member("Runner")
    client.force_login(user)
    return user


def form(**changes: Any) -> dict[str, Any]:
    given = {
        "name": "from the site",
        "environments": ["capitals"],
        "models": ["small"],
        "cases": "all",
        "attempts": 1,
        "seed": 7,
        **changes,
    }
    return {key: value for key, value in given.items() if value is not None}


def test_form_lists_environments_and_models_that_user_may_run(client: Client, runner: User) -> None:
    page = client.get("/runs/new/?environment=capitals").content.decode()
    assert "Capitals (3 cases)" in page and "> small</label>" in page.replace("\n", "") and "small (m)" not in page
    assert 'value="capitals" id="id_environments_0" checked' in page
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE, owner=member(name="owner"))
    assert "Capitals" not in client.get("/runs/new/").content.decode()


def test_submitted_form_queues_and_dispatches_run(
    client: Client, runner: User, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    sent: list[int] = []
    monkeypatch.setattr("runs.execution.dispatch._send", sent.append)
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post("/runs/new/", form(cases="sample", count=2, budget="1.5", attempts=3))
    run = Run.objects.get()
    assert answer["Location"] == f"/runs/{run.pk}/"
    assert (run.status, run.created_by, sent) == (Run.Status.QUEUED, runner, [run.pk])
    assert run.environments.get().case_count == 2
    assert run.config["limits"]["budget_usd"] == 1.5 and run.config["attempts"] == 3
    assert "Waiting for a worker" in client.get(answer["Location"]).content.decode()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": ""}, "This field is required."),
        ({"environments": ["nothing"]}, "nothing is not one of the available choices"),
        ({"models": ["nobody"]}, "nobody is not one of the available choices"),
        ({"models": None}, "This field is required."),
        ({"cases": "sample"}, "Enter the number of cases."),
        ({"attempts": 0}, "greater than or equal to 1"),
        ({"budget": "-1"}, "greater than or equal to 0.01"),
        ({"name": "${HOME}"}, "command line only"),
        ({"models": ["unpriced"], "budget": "1"}, "has no price, so the budget cannot be kept"),
    ],
)
def test_invalid_form_shows_error_and_stores_nothing(
    client: Client, runner: User, changes: dict[str, Any], expected: str
) -> None:
    answer = client.post("/runs/new/", form(**changes))
    assert answer.status_code == 422
    assert expected in answer.content.decode()
    assert 'role="alert"' in answer.content.decode()
    assert Run.objects.count() == 0


def test_config_starts_run_and_its_errors_name_the_path(client: Client, runner: User) -> None:
    config = "name: whole\nenvironments: [capitals]\nmodels: [small, nobody]\n"
    page = client.post("/runs/new/", {"config": config})
    assert page.status_code == 422
    assert "line 3: models[1]" in page.content.decode()
    answer = client.post("/runs/new/", {"config": config.replace(", nobody", "")})
    assert answer.status_code == 302
    assert Run.objects.get().name == "whole"


def test_new_run_page_without_registered_models_explains_registration(client: Client, runner: User) -> None:
    ModelEndpoint.objects.all().delete()
    page = client.get("/runs/new/").content.decode()
    assert "Ask a member of staff to register one" in page and "Start the run" not in page
    runner.is_staff = True
    runner.save()
    assert 'href="/endpoints/new/"' in client.get("/runs/new/").content.decode()


def test_new_run_page_without_environments_shows_prepare_command(client: Client, runner: User) -> None:
    Environment.objects.update(visibility=Environment.Visibility.RETIRED)
    page = client.get("/runs/new/").content.decode()
    assert "manage.py prepare" in page and "Start the run" not in page


@pytest.mark.django_db(transaction=True)
def test_run_from_site_is_executed_and_page_shows_results(client: Client, runner: User) -> None:
    config = {"name": "x", "environments": ["capitals"], "models": ["small"], "tracking": {"mlflow": False}}
    client.post("/runs/new/", {"config": json.dumps(config)})
    execute_queued_runs()
    run = Run.objects.get()
    assert run.status == Run.Status.COMPLETED, run.message
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "66.7 %" in page and ">Norway</a>" in page


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["gpt-4.1-mini", "org/model:free"])
def test_model_name_with_special_characters_is_accepted_by_site_and_rest(
    client: Client, runner: User, server: Endpoint, name: str
) -> None:
    ModelEndpoint.objects.create(name=name, model=name, base_url=server.url)
    config = {"name": "r", "environments": ["capitals"], "models": [name], "tracking": {"mlflow": False}}
    started = client.post("/api/v1/runs/", json.dumps(config), content_type="application/json")
    assert started.status_code == 201, started.content
    assert client.post("/runs/new/", form(models=[name])).status_code == 302
    assert name in [item["name"] for item in client.get("/api/v1/models/").json()["results"]]
    while Run.objects.filter(status="queued").exists():
        execute_queued_runs()
    for run in Run.objects.all():
        assert run.status == "completed", run.message
        responses = client.get(f"/api/v1/runs/{run.pk}/responses/", {"model": name}).json()["results"]
        assert len(responses) == 3 and {item["model"] for item in responses} == {name}
        assert f'href="/models/{name}/"' in client.get(f"/runs/{run.pk}/").content.decode()
    assert "capitals@1.0.0" in client.get(f"/models/{name}/").content.decode()
