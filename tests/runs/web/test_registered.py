"""Configs from the site and REST API: only registered models and environments of the hub are allowed."""

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


def test_registered_name_resolves_to_registered_endpoint(user: User) -> None:
    spec = resolve_registered(config(), user=user).config.models[0]
    assert (spec.name, spec.provider, spec.parameters) == ("small", "openai", {"temperature": 0})
    assert spec.options["base_url"] == "http://vllm:8000/v1"
    assert spec.price is not None and (spec.price.input, spec.price.output) == (0.25, 2.0)


def test_rate_limits_of_a_registered_model_apply_to_its_spec(user: User) -> None:
    ModelEndpoint.objects.filter(name="small").update(requests_per_minute=60, tokens_per_minute=9000)
    spec = resolve_registered(config(), user=user).config.models[0]
    assert (spec.requests_per_minute, spec.tokens_per_minute) == (60, 9000)


def test_run_of_registered_model_can_be_loaded_and_executed(user: User) -> None:
    resolved = resolve_registered(config(environments=[{"environment": "capitals", "sample": 2}], seed=3), user=user)
    run = create_run(config=resolved.config, environments=resolved.environments, user=user)
    assert config_of(run).models[0].options == resolved.config.models[0].options
    assert run.environments.get().case_count == 2


def test_yaml_and_json_configs_are_equal_and_yaml_errors_name_the_line(user: User) -> None:
    text = "name: one\nenvironments: [capitals]\nmodels:\n  - small\n  - nobody\n"
    with pytest.raises(ConfigError) as caught:
        resolve_registered_text(text, user=user)
    assert [problem.line for problem in caught.value.problems] == [5]
    assert resolve_registered_text(json.dumps(config()), user=user).config.name == "one"
    for wrong in ("[1, 2]", "name: [", ""):
        with pytest.raises(ConfigError):
            resolve_registered_text(wrong, user=user)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"models": ["nobody"]}, "no model is registered as 'nobody'; known are keyed, small"),
        (
            {"models": ["off"]},
            "models[0]: the model 'off' is disabled; staff who register models can set it to 'In use'",
        ),
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
def test_unregistered_values_are_rejected_with_their_path(user: User, changes: dict[str, Any], expected: str) -> None:
    assert expected in problems(user, **changes)


def test_all_errors_of_config_are_reported_together(user: User) -> None:
    errors = problems(
        user, environments=["nothing", {"path": "x"}], models=["nobody", {"name": "x"}], attempts=0, name="${X}"
    )
    for part in ("'nothing'", "environments[1].path", "'nobody'", "models[1]", "attempts", "name:"):
        assert part in errors
    assert len(errors.splitlines()) == 6


def test_private_environment_of_another_user_is_reported_as_unknown(user: User) -> None:
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE, owner=member(name="owner"))
    errors = problems(user)
    assert "there is no environment 'capitals'; none is there yet" in errors


def test_error_messages_contain_no_url_and_no_key(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    ModelEndpoint.objects.create(name="broken", model="m", base_url="ftp://secret.internal/", api_key_env="NOT_ALLOWED")
    errors = problems(user, models=["broken"])
    assert "secret.internal" not in errors


@pytest.mark.parametrize("sandbox", [{"backend": "local"}, {"accept": ["A", "B", "C"]}, {"backend": "auto"}])
def test_config_from_web_cannot_select_sandbox(user: User, sandbox: dict[str, Any]) -> None:
    errors = problems(user, sandbox=sandbox)
    assert f"sandbox.{next(iter(sandbox))}: for the command line" in errors
