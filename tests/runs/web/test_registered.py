"""Configs from the web and REST: registered models and environments of the hub, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from hub.models import Environment
from hub.services import import_bundle
from runs.config.parsed import ConfigError
from runs.config.registered import resolve_registered, resolve_registered_text
from runs.models import ModelEndpoint
from runs.services import config_of, create_run
from tests.hub.bundle_files import write_bundle
from tests.members import member

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(tmp_path: Path) -> User:
    version = import_bundle(bundle=write_bundle(tmp_path / "capitals"))
    Environment.objects.filter(pk=version.environment_id).update(visibility=Environment.Visibility.PUBLISHED)
    ModelEndpoint.objects.create(
        name="small",
        model="gpt-5-mini",
        base_url="http://vllm:8000/v1",
        parameters={"temperature": 0},
        price_input=0.25,
        price_output=2.0,
    )
    ModelEndpoint.objects.create(name="off", model="m", enabled=False)
    ModelEndpoint.objects.create(name="keyed", model="m", api_key_env="OPENAI_API_KEY")
    return member("Runner")


def config(**changes: Any) -> dict[str, Any]:
    given = {"name": "one", "environments": ["capitals"], "models": ["small"], **changes}
    return {key: value for key, value in given.items() if value is not None}


def problems(user: User, **changes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        resolve_registered(config(**changes), user=user)
    return str(caught.value)


def test_a_registered_name_becomes_the_model_as_it_is_registered(user: User) -> None:
    spec = resolve_registered(config(), user=user).config.models[0]
    assert (spec.name, spec.provider, spec.parameters) == ("small", "openai", {"temperature": 0})
    assert spec.options["base_url"] == "http://vllm:8000/v1"
    assert spec.price is not None and (spec.price.input, spec.price.output) == (0.25, 2.0)


def test_the_run_that_comes_of_it_can_be_read_back_and_executed(user: User) -> None:
    resolved = resolve_registered(config(environments=[{"environment": "capitals", "sample": 2}], seed=3), user=user)
    run = create_run(config=resolved.config, environments=resolved.environments, user=user)
    assert config_of(run).models[0].options == resolved.config.models[0].options
    assert run.environments.get().case_count == 2


def test_yaml_and_json_are_read_alike_and_yaml_names_the_line(user: User) -> None:
    text = "name: one\nenvironments: [capitals]\nmodels:\n  - small\n  - nobody\n"
    with pytest.raises(ConfigError) as caught:
        resolve_registered_text(text, user=user)
    assert [problem.line for problem in caught.value.problems] == [5]
    assert resolve_registered_text(json.dumps(config()), user=user).config.name == "one"
    for wrong in ("[1, 2]", "name: [", ""):
        with pytest.raises(ConfigError):
            resolve_registered_text(wrong, user=user)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"models": ["nobody"]}, "no model is registered as 'nobody'; known are keyed, small"),
        ({"models": ["off"]}, "no model is registered as 'off'"),
        ({"models": [{"name": "x", "provider": "openai", "model": "m", "base_url": "http://10.0.0.1/"}]}, "models[0]"),
        ({"models": [{"name": "x", "provider": "replay", "responses": "/etc/passwd"}]}, "models[0]"),
        ({"models": "small"}, "a list"),
        ({"models": None}, "models: missing"),
        ({"models": []}, "models"),
        ({"models": ["small", "small"]}, "is also the name"),
        ({"models": ["keyed"]}, "the key of 'keyed' is not set on this server"),
        ({"roles": {"rubric": [{"name": "x", "provider": "openai", "model": "m"}]}}, "roles.rubric[0]"),
        ({"roles": {"rubric": "nobody"}}, "no model is registered as 'nobody'"),
        ({"environments": [{"path": "/etc"}]}, "environments[0].path"),
        ({"environments": ["nothing"]}, "there is no environment 'nothing'; known are capitals"),
        ({"environments": ["capitals@9.9.9"]}, "no version 9.9.9"),
        ({"environments": [{"environment": "capitals", "cases": ["x"]}]}, "capitals has no case 'x'"),
        ({"name": "${OPENAI_API_KEY}"}, "may be used on the command line only"),
        ({"tracking": {"experiment": "${HOME}"}}, "may be used on the command line only"),
        ({"attempts": 0}, "attempts"),
        ({"nonsense": 1}, "unknown key"),
    ],
)
def test_everything_else_is_refused_where_it_stands(user: User, changes: dict[str, Any], said: str) -> None:
    assert said in problems(user, **changes)


def test_all_problems_are_told_at_once(user: User) -> None:
    said = problems(
        user, environments=["nothing", {"path": "x"}], models=["nobody", {"name": "x"}], attempts=0, name="${X}"
    )
    for part in ("'nothing'", "environments[1].path", "'nobody'", "models[1]", "attempts", "name:"):
        assert part in said
    assert len(said.splitlines()) == 6


def test_an_environment_private_to_others_is_as_if_not_there(user: User) -> None:
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE, owner=member(name="owner"))
    said = problems(user)
    assert "there is no environment 'capitals'; none is there yet" in said


def test_what_a_problem_says_never_holds_an_address_or_a_key(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    ModelEndpoint.objects.create(name="broken", model="m", base_url="ftp://secret.internal/", api_key_env="NOT_ALLOWED")
    said = problems(user, models=["broken"])
    assert "secret.internal" not in said


@pytest.mark.parametrize("sandbox", [{"backend": "local"}, {"accept": ["A", "B", "C"]}, {"backend": "auto"}])
def test_the_sandbox_is_the_operators_choice_and_not_that_of_a_config_from_the_web(
    user: User, sandbox: dict[str, Any]
) -> None:
    said = problems(user, sandbox=sandbox)
    assert f"sandbox.{next(iter(sandbox))}: for the command line" in said
