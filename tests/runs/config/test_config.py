"""Parsing of configs: accepted values, and problems with their line and the correction."""

import json
from pathlib import Path
from typing import Any

import pytest

from hub.protocols.calls import CallKey
from runs.config.parsed import ConfigError
from runs.config.parsing import read_config_text
from runs.config.schema import RunConfig
from runs.config_source import ConfigSource
from runs.providers.registry import PROVIDERS
from runs.providers.replay import RecordingError, open_recording

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


def source(tmp_path: Path, **variables: str) -> ConfigSource:
    return ConfigSource(
        name="demo.yaml",
        base_dir=tmp_path,
        lookup=variables.get,
        variables=frozenset({"OPENAI_BASE_URL"}),
        key_variables=frozenset({"OPENAI_API_KEY"}),
    )


def problems_of(text: str, tmp_path: Path, overrides: list[str] | None = None, **variables: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_config_text(text, source(tmp_path, **variables), overrides).require_valid()
    return [str(problem) for problem in caught.value.problems]


def good(tmp_path: Path, *overrides: str) -> RunConfig:
    return read_config_text(GOOD, source(tmp_path, OPENAI_API_KEY="sk-secret"), list(overrides)).require_valid()


def test_valid_config_is_parsed(tmp_path: Path) -> None:
    config = good(tmp_path)
    assert [(ref.slug, ref.version, ref.selection) for ref in config.environments] == [
        ("python-functions", "1.0.0", {}),
        ("word-problems", None, {"sample": 40}),
    ]
    assert config.models[0].options["base_url"] == "https://api.example.org/v1"
    assert [spec.name for spec in config.roles["user"]] == ["customer"]
    assert (config.attempts, config.limits.budget_usd, config.concurrency) == (2, 5.0, 16)


def test_stored_config_has_no_key_and_parses_to_the_same_config(tmp_path: Path) -> None:
    stored = good(tmp_path).stored()
    assert "sk-secret" not in str(stored)
    again = read_config_text(str(stored).replace("None", "null"), source(tmp_path, OPENAI_API_KEY="x")).require_valid()
    assert again.stored() == stored


def test_all_problems_are_reported_together_with_line_numbers(tmp_path: Path) -> None:
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
    assert problems_of(text, tmp_path) == [
        "line 3: environments[0]: 'Bad Slug' is not slug or slug@version, such as word-problems@1.0.0; did you "
        "mean 'bad-slug'?",
        "line 4: environments[1].limit: must be greater than or equal to 1 (found 0)",
        "line 7: models[0].provider: unknown provider 'opnai'; did you mean 'openai'?",
        "line 8: models[1].name: 'small' is also the name of models[0]; names are labels",
        "line 8: models[1].model: missing; this key is required",
        "line 10: models[1].colour: unknown key; known are name, provider, family, parameters, price, "
        "requests_per_minute, tokens_per_minute, model, base_url, api_key_env, timeout_s; parameters of requests "
        "belong under `parameters`",
        "line 11: attemps: unknown key; did you mean 'attempts'?",
        "line 12: concurrency: must be greater than or equal to 1 (found 0)",
    ]


def test_literal_key_and_missing_recording_are_reported_with_other_problems(tmp_path: Path) -> None:
    text = GOOD.replace(
        "api_key_env: OPENAI_API_KEY", "api_key_env: sk-proj-abcdefghijklmnopqrstuv\n    timeout_s: soon"
    )
    text = text.replace("attempts: 2", "  - {name: old, provider: replay, responses: gone.jsonl, recorded_from: 3}")
    found = problems_of(text, tmp_path)
    assert [line.split(";")[0].split(" (")[0] for line in found] == [
        "line 10: models[0].api_key_env: this looks like a key",
        "line 11: models[0].timeout_s: must be a valid number",
        "line 14: models[1].recorded_from: must be a valid string",
        f"line 14: models[1].responses: there is no file '{tmp_path}/gone.jsonl'",
    ]
    assert "sk-proj" not in "".join(found)


def test_problems_of_overrides_name_the_option_set(tmp_path: Path) -> None:
    overrides = ["attempts=0", "limts.turns=3", "models.0.price.inptu=1"]
    assert sorted(problems_of(GOOD, tmp_path, overrides, OPENAI_API_KEY="x")) == [
        "--set attempts=0: attempts: must be greater than or equal to 1 (found 0)",
        "--set limts.turns=3: limts: unknown key; did you mean 'limits'?",
        "--set models.0.price.inptu=1: models[0].price.inptu: unknown key; did you mean 'input'?",
    ]


def test_misspelt_keys_of_a_model_without_a_provider_are_reported(tmp_path: Path) -> None:
    text = "name: demo\nenvironments: [a]\nmodels:\n  - nmae: small\n    provder: openai\n    model: m\n"
    assert problems_of(text, tmp_path) == [
        "line 4: models[0].name: missing; this key is required",
        "line 4: models[0].provider: missing; this key is required, one of demo, openai, replay",
        "line 4: models[0].nmae: unknown key; did you mean 'name'?",
        "line 5: models[0].provder: unknown key; did you mean 'provider'?",
    ]


def test_repeated_problems_are_shortened(tmp_path: Path) -> None:
    models = "".join(f"  - {{name: m{i}, provider: openai, model: m}}\n" for i in range(9)).replace("openai", "nobody")
    with pytest.raises(ConfigError) as caught:
        read_config_text(f"name: d\nenvironments: [a]\nmodels:\n{models}", source(tmp_path)).require_valid()
    assert len(caught.value.problems) == 9
    assert len(caught.value.lines()) == 4
    assert caught.value.lines()[-1].strip() == "and 6 more like it"


def test_unset_variable_is_one_problem(tmp_path: Path) -> None:
    text = GOOD.replace("${OPENAI_BASE_URL:-https://api.example.org/v1}", "${OPENAI_BASE_URL}")
    assert problems_of(text, tmp_path, OPENAI_API_KEY="x") == [
        "line 9: models[0].base_url: the variable OPENAI_BASE_URL is not set; export it, or write "
        "${OPENAI_BASE_URL:-default}"
    ]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("attempts", "many", 'must be a valid integer (found "many")'),
        ("attempts", "1.5", "must be a valid integer, got a number with a fractional part (found 1.5)"),
        ("attempts", "[1]", "must be a valid integer (found a list)"),
        *(
            (key, "true", f"{key}: must be a number, not a boolean (found true)")
            for key in ("attempts", "concurrency", "seed", "limits.turns", "limits.retries", "limits.case_seconds")
        ),
        ("environments.1.sample", "true", "environments[1].sample: must be a number, not a boolean"),
        ("models.0.requests_per_minute", "true", "requests_per_minute: must be a number, not a boolean"),
        ("models.0.price.input", "false", "price.input: must be a number, not a boolean (found false)"),
        ("review.overlap", "true", "review.overlap: must be a number, not a boolean"),
        ("models", "{}", "must be a list (found a mapping)"),
        ("models", "{name: m}", "must be a list; begin each item with `- ` (found a mapping)"),
        *(
            (key, number, f'{key.rpartition(".")[2]}: must be a finite number (found "{number}")')
            for key in ("limits.budget_usd", "limits.case_seconds", "models.0.price.output")
            for number in ("Infinity", "inf", "NaN")
        ),
        ("models", "[]", "must have at least 1 item"),
        ("name", "''", "must have at least 1 character"),
        ("limits.case_seconds", "soon", 'must be a valid number (found "soon")'),
        ("limits.turn", "3", "unknown key; did you mean 'turns'?"),
        ("sandbox.backend", "docer", "must be 'auto', 'local', 'docker' or 'socket'; did you mean 'docker'?"),
        ("sandbox", "local", 'must be a mapping with `backend`, `accept` (found "local")'),
    ],
)
def test_wrong_types_are_reported_with_the_value_found(tmp_path: Path, key: str, value: str, expected: str) -> None:
    (found,) = problems_of(GOOD, tmp_path, [f"{key}={value}"], OPENAI_API_KEY="x")
    assert expected in found


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "provider: openai\n    model",
            "provider: opnai\n    model",
            "unknown provider 'opnai'; did you mean 'openai'?",
        ),
        ("api_key_env: OPENAI_API_KEY", "api_key_env: sk-proj-abcdefghijklmnopqrstuv", "looks like a key"),
        ("api_key_env: OPENAI_API_KEY", "api_key_env: sk-123", "looks like a key"),
        ("api_key_env: OPENAI_API_KEY", "api_key_env: HOME", "'HOME' is not an allowed variable"),
        ("${OPENAI_BASE_URL:-https://api.example.org/v1}", "${HOME}", "${HOME} may not be used"),
        ("${OPENAI_BASE_URL:-https://api.example.org/v1}", "${OPENAI_BASE_URL}", "OPENAI_BASE_URL is not set"),
        ("${OPENAI_BASE_URL:-https://api.example.org/v1}", "example.org", "must start with http"),
        ("name: demo", "name: demo\nname: again", "the key 'name' is given twice"),
        ("name: demo", "name: demo\n  bad: [", "line 2: mapping values are not allowed here"),
        ("budget_usd: 5", "budget_usd: -1", "limits.budget_usd"),
        ("sample: 40", "sample: 40, limit: 3", "one of `limit`, `sample` and `cases`"),
        ("name: customer", "name: customer, price: {inputs: 1}", "roles.user[0].price.inputs: unknown key"),
        ("name: demo", "name: 'a\tb'", "name: must be visible text on one line"),
        ("name: small", "name: small#1", "models[0].name: must not contain a `#`"),
        ("attempts: 2", "retries: 2", "retries: unknown key; it belongs under `limits`"),
        ("    provider: openai\n", "", f"provider: missing; this key is required, one of {', '.join(PROVIDERS)}"),
        ("model: gpt-x", "model: gpt-x\n    top_p: 1", "write `parameters: {top_p: ...}`"),
        ("{temperature: 0}", "{stream: true}", "parameters.stream: must not be sent; replies are not streamed"),
        ("cached_input: 0.025, output: 2.0", "cached_input: 0.025", "`output` is missing; its tokens would count as"),
        ("api_key_env: OPENAI_API_KEY", "api_key_env: $OPENAI_API_KEY", "did you mean 'OPENAI_API_KEY'?"),
        ("api_key_env: OPENAI_API_KEY", 'api_key_env: "${OPENAI_API_KEY}"', "write `api_key_env: OPENAI_API_KEY`"),
        ("example.org/v1", "example.org/v1/chat/completions", "must end before /chat/completions"),
        ("python-functions@1.0.0", "Python_functions@latest", "did you mean 'python-functions'?"),
        ("python-functions@1.0.0", "7", "environments[0]: an item is a slug (word-problems, word-problems@1.0.0), or"),
        ("python-functions@1.0.0", "{slug: a}", "environments[0].slug: unknown key; an item is a slug (word-problems,"),
        ("python-functions@1.0.0", "{environment: a, limt: 3}", "environments[0].limt: unknown key; did you mean"),
        ("[{name: grader, provider: openai, model: big}]", "[]", "roles.rubric: must have at least 1 item"),
        ("[{name: grader, provider: openai, model: big}]", "gpt-x", "roles.rubric[0]: must be a mapping with `name`"),
    ],
)
def test_problem_is_described(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in GOOD
    found = problems_of(GOOD.replace(old, new, 1), tmp_path, OPENAI_API_KEY="x")
    assert any(expected in line for line in found), found


def test_unset_key_variable_is_reported_with_the_command_to_set_it(tmp_path: Path) -> None:
    assert any("export OPENAI_API_KEY=" in line for line in problems_of(GOOD, tmp_path))


def test_duplicate_model_names_are_rejected(tmp_path: Path) -> None:
    text = GOOD.replace("attempts: 2", "  - {name: small, provider: openai, model: other}\nattempts: 2")
    found = problems_of(text, tmp_path, OPENAI_API_KEY="x")
    assert found == ["line 13: models[1].name: 'small' is also the name of models[0]; names are labels"]


def test_missing_and_invalid_recordings_are_reported_with_line_numbers(tmp_path: Path) -> None:
    def config(file: str) -> str:
        return f"name: d\nenvironments: [a]\nmodels:\n  - {{name: r, provider: replay, responses: {file}}}\n"

    (tmp_path / "broken.jsonl").write_text('{"case": "1", "content": "x"}\n{"case": "2"}\n')
    (tmp_path / "twice.jsonl").write_text('{"case": "1", "content": "x"}\n' * 2)
    assert f"there is no file '{tmp_path}/none.jsonl'" in problems_of(config("none.jsonl"), tmp_path)[0]
    assert "broken.jsonl:2: give either `content` or `messages`" in problems_of(config("broken.jsonl"), tmp_path)[0]
    assert "twice.jsonl:2: a second recording" in problems_of(config("twice.jsonl"), tmp_path)[0]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"seat": -1}, "seat: must be greater than or equal to 0 (found -1)"),
        ({"turn": -1}, "turn: must be greater than or equal to 0 (found -1)"),
        ({"purpose": "rubric", "model": "a"}, "`rule` is missing, which identifies a reply of the purpose rubric"),
        ({"purpose": "rubric", "rule": "q"}, "`model` is missing: the model under test in whose episode the reply was"),
        ({"purpose": "user"}, "`model` is missing: the model under test in whose episode the reply was given"),
        (
            {"purpose": "pair", "first": "a#1"},
            "`second` is missing, which identifies a reply of the purpose pair",
        ),
        ({"rule": "q"}, "only a line of the purpose rubric has `rule`, and this one has the purpose answer"),
        ({"first": "a#1"}, "only a line of the purpose pair has `first`, and this one has the purpose answer"),
    ],
)
def test_recording_that_no_call_could_get_is_rejected(tmp_path: Path, keys: dict[str, Any], problem: str) -> None:
    good = {"case": "1", "content": "x"}
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (good, {**good, "case": "2", **keys})))
    with pytest.raises(RecordingError) as caught:
        open_recording(tmp_path / "r.jsonl")
    assert str(caught.value).startswith(f"r.jsonl:2: {problem}")


def test_messages_of_a_recording_may_be_texts(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text('{"case": "1", "messages": ["a", {"content": "b"}]}\n')
    found = open_recording(tmp_path / "r.jsonl").find(CallKey(purpose="answer", environment="e", case="1"), "e")
    assert found is not None and found.messages == [{"content": "a"}, {"content": "b"}]


def test_recording_written_on_windows_is_read(tmp_path: Path) -> None:
    lines = '{"case": "1", "content": "a"}\r\n\r\n{"case": "2", "content": "b"}\r\n'
    (tmp_path / "r.jsonl").write_bytes(lines.encode("utf-8-sig"))
    recording = open_recording(tmp_path / "r.jsonl")
    found = [recording.find(CallKey(purpose="answer", environment="e", case=case), "e") for case in "12"]
    assert [recorded and recorded.content for recorded in found] == ["a", "b"]


def test_first_invalid_lines_of_a_recording_are_reported(tmp_path: Path) -> None:
    def found(lines: str) -> list[str]:
        (tmp_path / "r.jsonl").write_text(lines)
        text = "name: d\nenvironments: [a]\nmodels:\n  - {name: r, provider: replay, responses: r.jsonl}\n"
        return [line.partition("r.jsonl")[2] for line in problems_of(text, tmp_path)]

    assert found('{"case": "1", "content": 3, "attempt": 0}\n\nplain\n') == [
        ":1: attempt: must be greater than or equal to 1 (found 0); "
        "content: must be a valid string; put it in quotes (found 3)",
        ':3: not a line of JSON such as {"case": "c", "content": "..."} (expected value at column 1)',
    ]
    assert found('{"case": "1", "content": "half of an emoji: \\ud83d"}\n') == [
        ':1: not a line of JSON such as {"case": "c", "content": "..."} (unexpected end of hex escape at column 51)'
    ]
    assert found("[]\n" * 7)[4:] == [":5: must be a mapping with `case` (found a list)", ""]
    assert found("\n") == [" has no recorded answer"]


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("attempts=5", lambda c: c.attempts == 5),
        ("models.0.parameters.temperature=0.7", lambda c: c.models[0].parameters == {"temperature": 0.7}),
        ("limits.turns=3", lambda c: c.limits.turns == 3),
        ("environments=[a]", lambda c: [ref.slug for ref in c.environments] == ["a"]),
        ("models[0].family=x", lambda c: c.models[0].family == "x"),
        ("roles.rubric=null", lambda c: set(c.roles) == {"user"}),
    ],
)
def test_set_overrides_a_key(tmp_path: Path, override: str, read: Any) -> None:
    assert read(good(tmp_path, override))


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("attempts", "expected path.to.key=value"),
        ("=3", "expected path.to.key=value"),
        ("limits..turns=3", "expected path.to.key=value"),
        ("models.9.name=x", "models is a list of 1; '9' is not in it; write models.0"),
        ("models.small.name=x", "models is a list of 1; 'small' is not in it; write models.0"),
        ("environments.x=y", "environments is a list of 2; 'x' is not in it; write environments.0 to environments.1"),
        ("name.first=x", "name is a single value and has no keys"),
        ("roles.grader=null", "there is no roles.grader to remove"),
        ("name=[", "while parsing a flow node: expected the node content, but found '<stream end>'"),
    ],
)
def test_set_of_an_unknown_key_is_rejected(tmp_path: Path, override: str, expected: str) -> None:
    assert problems_of(GOOD, tmp_path, [override], OPENAI_API_KEY="x") == [f"--set {override}: {expected}"]


def test_variables_are_rejected_if_the_source_has_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config_text(GOOD, ConfigSource(name="web")).require_valid()
    assert any("command line only" in str(problem) for problem in caught.value.problems)


def test_config_with_too_many_items_is_rejected_before_they_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("the config was looked through")

    monkeypatch.setattr(RunConfig, "model_validate", fail)
    text = "name: x\nenvironments: [" + ", ".join(f"e{i}" for i in range(20_000)) + "]\nmodels: []\n"
    with pytest.raises(ConfigError) as caught:
        read_config_text(text, source(tmp_path)).require_valid()
    (problem,) = caught.value.problems
    assert problem.path == "environments"
    assert "20,000 items; a config has at most 500 here" in problem.message
    seats = ", ".join(["{name: a, provider: openai, model: m}"] * 51)
    with pytest.raises(ConfigError, match=r"roles\.user"):
        read_config_text(
            f"name: x\nenvironments: [a]\nmodels: []\nroles: {{user: [{seats}]}}\n", source(tmp_path)
        ).require_valid()
