"""A new run as YAML: copied, pasted, used on the command line; and a new run with the settings of an earlier one."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from django.test import Client

from hub.bundles.stored import ArchiveUnavailable
from hub.models import Environment, EnvironmentVersion
from hub.services import import_bundle
from runs.management.config_file import load_config
from runs.models import ModelEndpoint, Run
from runs.services import create_run
from tests.hub.bundle_files import write_bundle
from tests.members import member
from tests.runs.web.new_run.test_new_run import URL, chosen, error_of, form, publish, show

ADDRESS = "http://localhost:1/v1"


@pytest.fixture
def runner(client: Client, tmp_path: Path, db: None) -> User:
    version = import_bundle(bundle=write_bundle(tmp_path / "capitals"))
    Environment.objects.filter(pk=version.environment_id).update(visibility=Environment.Visibility.PUBLISHED)
    for name in ("small", "other"):
        ModelEndpoint.objects.create(name=name, model="m", base_url=ADDRESS, price_input=1, price_output=2)
    user = member("Runner")
    client.force_login(user)
    return user


def yaml_of(page: str) -> str:
    found = re.search(r'<pre id="run-yaml">(.*?)</pre>', page, re.DOTALL)
    assert found is not None
    return unescape(found[1])


def fill(client: Client, text: str, **changes: Any) -> Any:
    return client.post(URL, form(do="fill", config=text, **changes), follow=True)


STATE = (
    f"{URL}?name=nightly&environment=capitals:sample=2&model=small&model=other&limit=3&attempts=2&concurrency=4"
    "&budget=2.5&seed=-1&other=judge:%0A%20%20model:%20small%0Alimits:%0A%20%20turns:%207%0A"
)


def test_page_shows_run_as_yaml_with_names_of_registered_models(client: Client, runner: User) -> None:
    text = yaml_of(show(client, STATE))
    assert yaml.safe_load(text) == {
        "name": "nightly",
        "environments": [{"environment": "capitals", "sample": 2}],
        "models": ["small", "other"],
        "attempts": 2,
        "concurrency": 4,
        "seed": -1,
        "limits": {"budget_usd": 2.5, "turns": 7},
        "judge": {"model": "small"},
    }
    assert ADDRESS not in text


def test_yaml_of_the_page_can_be_run_on_the_command_line(client: Client, runner: User, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(yaml_of(show(client, STATE)))
    resolved = load_config(path, overrides=[], limit=None)
    assert [(spec.name, spec.options["base_url"]) for spec in resolved.config.models] == [
        ("small", ADDRESS),
        ("other", ADDRESS),
    ]
    assert [(item.label, item.count) for item in resolved.environments] == [("capitals@1.0.0", 2)]
    assert resolved.config.role_specs()["judge"][0].name == "small"


def test_yaml_of_the_page_fills_the_same_form(client: Client, runner: User) -> None:
    page = show(client, STATE)
    answer = fill(client, yaml_of(page), environment=None, model=None)
    filled = unescape(answer.content.decode())
    assert "Kept under “Other settings”: limits.turns, judge.model." in filled
    assert yaml.safe_load(yaml_of(filled)) == yaml.safe_load(yaml_of(page))
    assert chosen(filled, "models") == ["small", "other"]


def test_same_selection_of_all_environments_becomes_the_one_of_the_form(client: Client, runner: User) -> None:
    publish("sums")
    refs = [{"environment": "capitals@1.0.0", "limit": 2}, {"environment": "sums", "limit": 2}]
    page = unescape(
        fill(client, json.dumps({"name": "x", "environments": refs[:1], "models": ["small"]})).content.decode()
    )
    assert chosen(page) == ["Capitals 1.0.0"]
    assert '<option value="limit" selected>' in page and 'name="count" value="2"' in page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "Paste a config first."),
        ("name: [", "line 1: "),
        ("just text", "line 1: a config is a mapping"),
        ("name: x\nenvironments: [capitals]\nmodels: [small, nobody]\n", "line 3: models[1]: no model is registered"),
        ("name: x\nenvironments: [secret]\nmodels: [small]\n", "line 2: environments[0]: there is no environment"),
        ("name: x\nmodels: [small]\n", "environments: "),
        ("name: x\nenvironments: [capitals]\nmodels: [small]\nattempts: 0\n", "line 4: attempts: "),
        (
            "name: x\nenvironments: [capitals]\nmodels:\n- {name: a, provider: openai, model: m}\n",
            "line 4: models[0]: give a registered model's name",
        ),
        (
            "name: x\nenvironments:\n- {environment: capitals, cases: [Norway]}\nmodels: [small]\n",
            "line 3: environments[0].cases: 1 case of capitals selected by id; the form cannot select cases by id.",
        ),
        (
            "name: x\nenvironments: [capitals]\nmodels: [small]\nroles:\n  rubric: [small, other]\n",
            "line 5: roles.rubric: 2 models for one role; the form has one. Start the YAML as it is instead.",
        ),
    ],
)
def test_errors_of_pasted_yaml_have_line_and_reason_and_nothing_is_lost(
    client: Client, runner: User, text: str, expected: str
) -> None:
    answer = fill(client, text, name="kept name", other="limits: {turns: 5}")
    page = unescape(answer.content.decode())
    assert answer.status_code == 422
    assert expected in error_of(answer.content.decode(), "config")
    assert text in page and 'value="kept name"' in page and "limits: {turns: 5}" in page
    assert chosen(page) == ["Capitals"] and "everything else that you entered is kept" in page
    assert Run.objects.count() == 0


def test_yaml_that_the_form_cannot_express_can_be_started_as_it_is(client: Client, runner: User) -> None:
    text = "name: whole\nenvironments:\n- {environment: capitals, cases: [Norway]}\nmodels: [small]\n"
    answer = client.post(URL, form(do="start-yaml", config=text))
    assert answer.status_code == 302
    run = Run.objects.get()
    assert (run.name, run.environments.get().case_count) == ("whole", 1)
    bad = client.post(URL, form(do="start-yaml", config=text.replace("small", "nobody")))
    assert bad.status_code == 422 and "line 4: models[0]" in unescape(bad.content.decode())
    assert Run.objects.count() == 1


def test_long_yaml_is_refused(client: Client, runner: User) -> None:
    answer = fill(client, "a" * (1024 * 1024 + 1))
    assert answer.status_code == 422 and "at most 1,048,576 are read" in error_of(answer.content.decode(), "config")


def test_missing_archive_is_reported_at_the_field(
    client: Client, runner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(version: EnvironmentVersion) -> None:
        raise ArchiveUnavailable(f"The archive of {version} is missing.")

    monkeypatch.setattr("runs.config.resolve.compile_version", fail)
    said = "The archive of capitals@1.0.0 is missing."
    text = "name: x\nenvironments: [capitals]\nmodels: [small]\n"
    assert said in error_of(fill(client, text).content.decode(), "config")
    answer = client.post(URL, form())
    assert answer.status_code == 422 and said in error_of(answer.content.decode(), "environment")


# ---- edit and run


def start(client: Client, config: dict[str, Any]) -> Run:
    text = json.dumps({"name": "first", "environments": ["capitals"], "models": ["small"], **config})
    assert client.post(URL, form(do="start-yaml", config=text)).status_code == 302
    return Run.objects.latest("pk")


def test_edit_and_run_opens_the_form_with_the_settings_of_the_run(client: Client, runner: User) -> None:
    config = {
        "environments": [{"environment": "capitals", "sample": 2}],
        "models": ["other", "small"],
        "attempts": 3,
        "seed": 9,
        "limits": {"budget_usd": 4, "turns": 6},
        "judge": {"model": "small", "max_pairs": 5},
        "tracking": {"mlflow": False},
    }
    run = start(client, config)
    assert f'href="/runs/new/?run={run.pk}"' in show(client, f"/runs/{run.pk}/")
    page = show(client, f"{URL}?run={run.pk}")
    assert f'href="/runs/{run.pk}/">run {run.pk}</a>' in page
    again = yaml.safe_load(yaml_of(page))
    judge = again.pop("judge")
    assert again.pop("tracking")["mlflow"] is False
    assert again == {
        "name": "first",
        "environments": [{"environment": "capitals", "sample": 2}],
        "models": ["other", "small"],
        "attempts": 3,
        "seed": 9,
        "limits": {"budget_usd": 4.0, "turns": 6},
    }
    assert (judge["model"], judge["max_pairs"]) == ("small", 5)
    assert ADDRESS not in page


def test_edit_and_run_keeps_an_older_version(client: Client, runner: User) -> None:
    run = start(client, {})
    environment = Environment.objects.get()
    environment.latest = publish("sums").latest
    environment.save()
    assert chosen(show(client, f"{URL}?run={run.pk}")) == ["Capitals 1.0.0"]


def test_edit_and_run_lists_what_the_form_cannot_express(client: Client, runner: User) -> None:
    run = start(client, {"environments": [{"environment": "capitals", "cases": ["Norway"]}]})
    page = show(client, f"{URL}?run={run.pk}")
    assert "1 case of capitals selected by id; the form cannot select cases by id" in page
    assert "cases:\n  - Norway" in page and '<textarea id="id_config"' in page


def test_edit_and_run_shows_models_that_are_disabled(client: Client, runner: User) -> None:
    run = start(client, {})
    ModelEndpoint.objects.filter(name="small").update(enabled=False)
    assert "The model 'small' is disabled" in error_of(show(client, f"{URL}?run={run.pk}"), "model")


def test_edit_and_run_of_a_limited_run_from_a_terminal(client: Client, runner: User, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    for selection, expected in (({}, "limit"), ({"sample": 2}, "cases")):
        ref = {"environment": "capitals", **selection}
        path.write_text(json.dumps({"name": "x", "environments": [ref], "models": ["small"]}))
        resolved = load_config(path, overrides=[], limit=1)
        run = create_run(config=resolved.config, environments=resolved.environments)
        page = show(client, f"{URL}?run={run.pk}")
        assert ('name="count" value="1"' in page) == (expected == "limit")
        assert ("1 case of capitals selected by id" in page) == (expected == "cases")


@pytest.mark.parametrize("number", ["0", "99999", "x", "9" * 30])
def test_unknown_run_is_not_found_or_ignored(client: Client, runner: User, number: str) -> None:
    assert client.get(f"{URL}?run={number}").status_code == (404 if number in ("0", "99999") else 200)


def test_run_of_a_private_environment_is_not_shown_to_others(client: Client, runner: User) -> None:
    run = start(client, {})
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE, owner=member(name="owner"))
    assert client.get(f"{URL}?run={run.pk}").status_code == 404
