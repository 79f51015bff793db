"""A broker that cannot be reached: the run stays queued, and pages, REST and commands say so."""

import json
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings
from rest_framework.test import APIClient

from hub.models import Environment
from hub.services import import_bundle
from runs.models import ModelEndpoint, Run
from runs.tasks import execute_queued_runs
from tests.endpoint import endpoint
from tests.members import member
from tests.processes import start_eval
from tests.runs.capitals import answer_capital, config_text

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def broker_is_down(settings: Settings) -> None:
    settings.TASK_APPLICATION = "tests.runs.unreachable_broker.app"


def registered_config(folder: Path, url: str) -> str:
    version = import_bundle(bundle=str(folder / "capitals"))
    Environment.objects.filter(pk=version.environment_id).update(visibility=Environment.Visibility.PUBLISHED)
    ModelEndpoint.objects.create(name="small", model="m", base_url=url)
    return json.dumps({"name": "t", "environments": [{"environment": "capitals"}], "models": ["small"]})


def test_rest_responds_with_503_and_the_queued_run_is_executed_later(
    folder: Path, settings: Settings, broker_is_down: None
) -> None:
    client = APIClient()
    client.force_login(member("Runner"))
    with endpoint(answer_capital) as server:
        config = registered_config(folder, server.url)
        for _ in range(2):  # the repeated request starts no second run
            answer = client.post(
                "/api/v1/runs/", config, content_type="application/json", headers={"Idempotency-Key": "once"}
            )
            run = Run.objects.get()
            assert (answer.status_code, answer.json()["code"], answer.json()["run"]) == (
                503,
                "broker_unavailable",
                run.pk,
            )
            assert "nothing is lost" in answer.json()["message"]
        assert run.status == Run.Status.QUEUED
        execute_queued_runs()  # as the sweep does when the broker works again
    run.refresh_from_db()
    assert run.status == Run.Status.COMPLETED


def test_page_of_the_run_says_that_it_waits_for_the_broker(client: Client, folder: Path, broker_is_down: None) -> None:
    client.force_login(member("Runner"))
    with endpoint(answer_capital) as server:
        config = registered_config(folder, server.url)
        page = client.post("/runs/new/", {"config": config, "do": "start-yaml"}, follow=True)
    assert page.status_code == 200
    assert "the broker cannot be reached" in page.content.decode()
    assert "nothing is lost" in page.content.decode()
    assert Run.objects.get().status == Run.Status.QUEUED


@pytest.mark.exhaustive
def test_one_click_and_scoring_again_start_runs_that_wait_for_the_broker(
    client: Client, folder: Path, broker_is_down: None
) -> None:
    client.force_login(member("Runner"))
    with endpoint(answer_capital) as server:
        registered_config(folder, server.url)
        started = client.post("/runs/start/capitals/", {"model": "small", "cases": "all"}, follow=True)
        assert started.status_code == 200 and "the broker cannot be reached" in started.content.decode()
        execute_queued_runs()
    run = Run.objects.get()
    assert run.status == Run.Status.COMPLETED
    again = client.post(f"/runs/{run.pk}/rescore/", follow=True)
    assert again.status_code == 200 and "the broker cannot be reached" in again.content.decode()
    assert Run.objects.get(rescored_from=run).status == Run.Status.QUEUED


@pytest.mark.exhaustive
def test_eval_with_enqueue_ends_with_exit_code_3(folder: Path) -> None:
    with endpoint(answer_capital) as server:
        (folder / "eval.yaml").write_text(config_text(server.url))
        process = start_eval(
            folder,
            "--config",
            str(folder / "eval.yaml"),
            "--enqueue",
            extra={"CELERY_BROKER_URL": "redis://127.0.0.1:1/0"},
        )
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 3, errors
    assert f"Run {Run.objects.get().pk} is queued, and nothing is lost" in errors
    assert "Traceback" not in errors
