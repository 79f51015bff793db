"""Runs that start from the page of an environment, and the recorded demo models."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from hub.models import Environment
from hub.services import import_bundle
from runs.models import ModelEndpoint, Response, Run
from runs.providers.demo import demo_environments
from runs.services import DEMO_MODELS, register_demo_models
from runs.tasks import execute_queued_runs
from tests.factories import stored_version
from tests.hub.bundle_files import write_bundle
from tests.markup import markup
from tests.members import member

CATALOG = settings.BASE_DIR / "hub" / "catalog"
NO_ANSWERS = "has recorded answers only for environments that ship with the product, and none for capitals"


def publish(path: Path) -> Environment:
    environment = import_bundle(bundle=path).environment
    Environment.objects.filter(pk=environment.pk).update(visibility=Environment.Visibility.PUBLISHED)
    return environment


@pytest.fixture
def runner(client: Client, db: None) -> User:
    register_demo_models()
    user = member("Runner")
    client.force_login(user)
    return user


def test_demo_models_are_registered_once_and_stay_switched_off(db: None) -> None:
    register_demo_models()
    ModelEndpoint.objects.filter(name="demo").update(enabled=False)
    register_demo_models()
    assert set(ModelEndpoint.objects.values_list("name", "enabled")) == {("demo", False), ("demo-hasty", True)}
    assert set(DEMO_MODELS) == {"demo", "demo-hasty"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "slug",
    [
        "changing-plans",
        *(
            pytest.param(slug, marks=pytest.mark.exhaustive)
            for slug in ("repair-desk", "explanation-quality", "docs-research")
        ),
    ],
)
def test_one_click_starts_pilot_on_demo_model_that_answers_every_case(client: Client, runner: User, slug: str) -> None:
    publish(CATALOG / slug)
    answer = client.post(f"/runs/start/{slug}/")
    assert answer.status_code == 302, answer.content.decode()
    execute_queued_runs()
    run = Run.objects.get()
    assert (run.status, run.name) == ("completed", f"{slug} pilot, demo"), run.message
    statuses = list(Response.objects.values_list("status", flat=True))
    assert len(statuses) == 10 and set(statuses) <= {"passed", "failed"}
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "Recorded answers, given before this run: demo" in page
    cases = Environment.objects.get(slug=slug).latest.case_count  # type: ignore[union-attr]
    assert f"Run all {cases} cases" in page
    client.post(f"/runs/start/{slug}/", {"model": "demo", "cases": "all"})
    assert Run.objects.first().environments.get().case_count == cases  # type: ignore[union-attr]


def test_every_case_of_the_catalogue_has_gold_and_wrong_answers_for_the_demo() -> None:
    assert len(demo_environments()) >= 10
    for slug in demo_environments():
        wanted = {json.loads(line)["id"] for line in (CATALOG / slug / "cases.jsonl").read_text().splitlines()}
        scripts = CATALOG / slug / "solution"
        assert not scripts.is_dir() or wanted <= {path.stem for path in scripts.iterdir()}, slug
        for name in ("wrong.jsonl",) if scripts.is_dir() else ("gold.jsonl", "wrong.jsonl"):
            rows = (CATALOG / slug / name).read_text().splitlines()
            assert wanted <= {json.loads(line)["case"] for line in rows}, f"{slug}/{name}"


def test_demo_model_is_refused_for_other_environments_at_its_field(
    client: Client, runner: User, tmp_path: Path
) -> None:
    publish(write_bundle(tmp_path / "capitals"))
    page = client.post("/runs/start/capitals/", {"model": "demo"})
    assert page.status_code == 422 and not Run.objects.exists()
    assert NO_ANSWERS in page.content.decode()


def test_no_model_is_chosen_if_none_can_answer_the_environment(client: Client, runner: User, tmp_path: Path) -> None:
    publish(write_bundle(tmp_path / "capitals"))
    why = f"No registered model can answer this environment: demo {NO_ANSWERS}."
    shown = client.get("/runs/start/capitals/").content.decode()
    assert why in shown and "selected" not in shown and "Run a pilot" not in shown
    posted = client.post("/runs/start/capitals/")
    assert posted.status_code == 422 and why in posted.content.decode()
    ModelEndpoint.objects.all().delete()
    assert "No model is registered yet." in client.get("/runs/start/capitals/").content.decode()


def test_model_used_last_is_the_default(client: Client, runner: User, tmp_path: Path) -> None:
    publish(write_bundle(tmp_path / "capitals"))
    ModelEndpoint.objects.create(name="small", model="m", base_url="http://localhost:1/v1")
    shown = client.get("/runs/start/capitals/").content.decode()
    assert 'value="small" selected' in shown  # the demo models have no answers to this environment
    assert "free: recorded answers" not in client.get("/runs/start/capitals/?model=demo").content.decode()
    assert client.post("/runs/start/capitals/", {"model": "small"}).status_code == 302
    assert 'value="small" selected' in client.get("/runs/start/capitals/").content.decode()
    assert client.post("/runs/start/capitals/").status_code == 302
    assert [run.name for run in Run.objects.all()] == ["capitals, small"] * 2


def test_estimate_uses_length_of_cases_and_price(client: Client, runner: User) -> None:
    version = stored_version("sums", cases=40)
    Environment.objects.update(visibility="published", latest=version)
    ModelEndpoint.objects.create(name="priced", model="m", price_input=1, price_output=1000)
    page = client.get("/runs/start/sums/?model=priced", headers={"HX-Target": "start"}).content.decode()
    assert "<html" not in page
    assert "about 10 requests, $5" in page and "about 40 requests, $20" in page
    ModelEndpoint.objects.filter(name="priced").update(price_input=None, price_output=None)
    assert "cost unknown: the model has no price" in client.get("/runs/start/sums/?model=priced").content.decode()


def test_prepare_registers_demo_models(
    db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.VAR_DIR = tmp_path
    monkeypatch.setattr("llmeval_site.management.commands.prepare.call_command", lambda *args, **options: None)
    call_command("prepare")
    assert ModelEndpoint.objects.filter(name="demo", enabled=True).exists()


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_best_result_on_all_cases_is_put_into_the_catalogue(client: Client, runner: User) -> None:
    publish(CATALOG / "repair-desk")
    assert "best-repair-desk" in client.get("/hub/").content.decode()
    client.post("/runs/start/repair-desk/")
    execute_queued_runs()
    shown = client.get("/runs/best/?environment=repair-desk").content.decode()
    assert "No completed run has evaluated all cases of the latest version." in shown
    client.post("/runs/start/repair-desk/", {"cases": "all"})
    execute_queued_runs()
    shown = markup(client.get("/runs/best/?environment=repair-desk&environment=other"))
    assert 'id="best-repair-desk" hx-swap-oob="true"' in shown and "80.0 %" in shown and "demo, recorded" in shown
