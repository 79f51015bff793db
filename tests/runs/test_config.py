"""Configs: what is accepted, and every mistake named with its place and its remedy."""

from pathlib import Path
from typing import Any

import pytest

from runs.config import ConfigError, RunConfig, Source, parse_text

GOOD = """\
name: demo
environments:
  - python-functions@1.0.0
  - {environment: word-problems, sample: 40}
models:
  - name: small
    provider: openai
    model: gpt-x
    base_url: ${OPENAI_BASE_URL:-https://api.example.org/v1}
    api_key_env: OPENAI_API_KEY
    parameters: {temperature: 0}
    price: {input: 0.25, cached_input: 0.025, output: 2.0}
attempts: 2
limits: {budget_usd: 5}
roles:
  rubric: [{name: grader, provider: openai, model: big}]
  user: {name: customer, provider: openai, model: big}
seed: 7
"""


def source(tmp_path: Path, **variables: str) -> Source:
    return Source(
        name="demo.yaml",
        base_dir=tmp_path,
        lookup=variables.get,
        variables=frozenset({"OPENAI_BASE_URL"}),
        key_variables=frozenset({"OPENAI_API_KEY"}),
    )


def problems_of(text: str, tmp_path: Path, overrides: list[str] | None = None, **variables: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_text(text, source(tmp_path, **variables), overrides)
    return [str(problem) for problem in caught.value.problems]


def good(tmp_path: Path, *overrides: str) -> RunConfig:
    return parse_text(GOOD, source(tmp_path, OPENAI_API_KEY="sk-secret"), list(overrides))


def test_a_good_config_is_read_whole(tmp_path: Path) -> None:
    config = good(tmp_path)
    assert [(ref.slug, ref.version, ref.selection) for ref in config.environments] == [
        ("python-functions", "1.0.0", {}),
        ("word-problems", None, {"sample": 40}),
    ]
    assert config.models[0].options["base_url"] == "https://api.example.org/v1"
    assert [spec.name for spec in config.roles["user"]] == ["customer"]
    assert (config.attempts, config.limits.budget_usd, config.concurrency) == (2, 5.0, 16)


def test_what_is_stored_holds_no_key_and_reads_back_as_the_same_config(tmp_path: Path) -> None:
    stored = good(tmp_path).stored()
    assert "sk-secret" not in str(stored)
    again = parse_text(str(stored).replace("None", "null"), source(tmp_path, OPENAI_API_KEY="x"))
    assert again.stored() == stored


def test_all_mistakes_are_told_at_once_each_with_its_line(tmp_path: Path) -> None:
    text = """\
name: demo
environments:
  - {environment: "Bad Slug"}
  - {environment: a, limit: 0}
models:
  - name: small
    provider: opnai
  - name: small
    provider: openai
    colour: red
attemps: 3
concurrency: 0
"""
    found = problems_of(text, tmp_path)
    assert [line.split(":", 2)[:2] for line in found] == [
        ["line 3", " environments[0]"],
        ["line 4", " environments[1].limit"],
        ["line 11", " attemps"],
        ["line 12", " concurrency"],
    ]
    assert "slug" in found[0] and "unknown key" in found[2] and "(found 0)" in found[3]


def test_models_are_checked_once_the_shape_is_right(tmp_path: Path) -> None:
    text = GOOD.replace("model: gpt-x\n", "colour: red\n") + "\n"
    found = problems_of(text, tmp_path, OPENAI_API_KEY="x")
    assert any("models[0].model: missing" in line for line in found)
    assert any("models[0].colour: unknown key" in line for line in found)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "provider: openai\n    model",
            "provider: opnai\n    model",
            "unknown provider 'opnai'; known are openai, replay",
        ),
        ("api_key_env: OPENAI_API_KEY", "api_key_env: sk-proj-abcdefghijklmnopqrstuv", "looks like a key"),
        ("api_key_env: OPENAI_API_KEY", "api_key_env: HOME", "'HOME' is not an allowed variable"),
        ("${OPENAI_BASE_URL:-https://api.example.org/v1}", "${HOME}", "${HOME} may not be used"),
        ("${OPENAI_BASE_URL:-https://api.example.org/v1}", "${OPENAI_BASE_URL}", "OPENAI_BASE_URL is not set"),
        ("${OPENAI_BASE_URL:-https://api.example.org/v1}", "example.org", "must start with http"),
        ("name: demo", "name: demo\nname: again", "the key 'name' is given twice"),
        ("name: demo", "name: demo\n  bad: [", "line 2: mapping values are not allowed here"),
        ("budget_usd: 5", "budget_usd: -1", "limits.budget_usd"),
        ("sample: 40", "sample: 40, limit: 3", "one of `limit`, `sample` and `cases`"),
        ("name: customer", "name: customer, price: {inputs: 1}", "roles.user[0].price.inputs: unknown key"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    found = problems_of(GOOD.replace(old, new, 1), tmp_path, OPENAI_API_KEY="x")
    assert any(said in line for line in found), found


def test_an_unset_key_variable_says_how_to_set_it(tmp_path: Path) -> None:
    assert any("export OPENAI_API_KEY=" in line for line in problems_of(GOOD, tmp_path))


def test_two_models_of_one_name_are_refused(tmp_path: Path) -> None:
    text = GOOD.replace("attempts: 2", "  - {name: small, provider: openai, model: other}\nattempts: 2")
    found = problems_of(text, tmp_path, OPENAI_API_KEY="x")
    assert found == ["line 13: models[1].name: 'small' is also the name of models[0]; names are labels"]


def test_a_recording_that_is_missing_or_broken_is_named_with_its_line(tmp_path: Path) -> None:
    def config(file: str) -> str:
        return f"name: d\nenvironments: [a]\nmodels:\n  - {{name: r, provider: replay, responses: {file}}}\n"

    (tmp_path / "broken.jsonl").write_text('{"case": "1", "content": "x"}\n{"case": "2"}\n')
    (tmp_path / "twice.jsonl").write_text('{"case": "1", "content": "x"}\n' * 2)
    assert "no file 'none.jsonl'" in problems_of(config("none.jsonl"), tmp_path)[0]
    assert "broken.jsonl:2: give either `content` or `messages`" in problems_of(config("broken.jsonl"), tmp_path)[
        0
    ].replace("Value error, ", "")
    assert "twice.jsonl:2: a second recording" in problems_of(config("twice.jsonl"), tmp_path)[0]


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("attempts=5", lambda c: c.attempts == 5),
        ("models.0.parameters.temperature=0.7", lambda c: c.models[0].parameters == {"temperature": 0.7}),
        ("limits.turns=3", lambda c: c.limits.turns == 3),
        ("environments=[a]", lambda c: [ref.slug for ref in c.environments] == ["a"]),
    ],
)
def test_set_overrides_a_key(tmp_path: Path, override: str, read: Any) -> None:
    assert read(good(tmp_path, override))


@pytest.mark.parametrize("override", ["attempts", "models.9.name=x", "name.first=x", "=3"])
def test_set_that_goes_nowhere_is_refused(tmp_path: Path, override: str) -> None:
    found = problems_of(GOOD, tmp_path, [override], OPENAI_API_KEY="x")
    assert f"--set {override}" in found[-1]


def test_variables_are_forbidden_where_the_source_has_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_text(GOOD, Source(name="web"))
    assert any("command line only" in str(problem) for problem in caught.value.problems)
