"""Formats of rollouts: contents, files that real libraries read, replay of an exported rollout, access."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.json
import pyarrow.parquet
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from hub.common.output.files import CannotWrite
from hub.models import Environment, EnvironmentVersion
from hub.services import import_bundle
from runs.exports import ROLLOUT_FORMATS, RolloutSelection, export_episodes, export_run_rollouts
from runs.exports.rollout_formats.base import flatten_tokens
from runs.models import EpisodeSession
from runs.rollouts.tokens import StepTokens
from tests.factories import stored_outcomes, stored_response, stored_run, stored_version

pytestmark = pytest.mark.django_db(transaction=True)

HARBOR = "harbor==0.25.0"
TOKENS: list[StepTokens | None] = [
    {"prompt_ids": [1, 2], "completion_ids": [3], "logprobs": [-0.5]},
    {"prompt_ids": [1, 2, 3, 9], "completion_ids": [4, 5], "logprobs": [-1.0, -2.0]},
]
FLAT = {
    "prompt_ids": [1, 2],
    "completion_ids": [3, 9, 4, 5],
    "completion_mask": [1, 0, 1, 1],
    "logprobs": [-0.5, 0.0, -1.0, -2.0],
}
USAGE = {"input": 4, "output": 2, "cached_input": 1, "reasoning": 0}
NO_TOKENS = dict.fromkeys(FLAT)


def tool(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": schema}}


def conversation(arguments: str) -> list[dict[str, Any]]:
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": arguments}}
    return [
        {"role": "system", "content": "Add."},
        {"role": "user", "content": [{"type": "text", "text": "1 + 1? \ud800"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "2"},
        {"role": "assistant", "content": "2"},
    ]


@pytest.fixture
def user() -> User:
    return User.objects.create_user("trainer")


@pytest.fixture
def episodes(user: User) -> list[EpisodeSession]:
    """Return a group of three episodes; arguments and schemas differ in their types, and one episode failed."""
    cases = list(stored_version(cases=2).cases.order_by("position"))
    arguments = ['{"n": 1}', '{"n": "x", "m": [1]}', "{not JSON"]
    return [
        EpisodeSession.objects.create(
            user=user,
            case=cases[0],
            attempt=i + 1,
            seed=2**62 + i,
            model="step-100",
            group="a-group",
            done=True,
            reward=0.0 if i == 2 else 1.0,
            score={"status": "failed" if i == 2 else "passed", "value": 1.0, "rules": []},
            state={
                "messages": conversation(text),
                "tools": [tool({"properties": {"n": {"default": i or "x"}}})],
                "stop": "done",
            },
            usage=[USAGE, USAGE],
            tokens=TOKENS if i == 0 else [],
            expires_at=timezone.now(),
        )
        for i, text in enumerate(arguments)
    ]


def export(tmp_path: Path, format: str) -> Path:
    path = tmp_path / f"{format}{ROLLOUT_FORMATS[format].suffix}"
    export_episodes(path, RolloutSelection(), format=format)
    return path


@pytest.mark.parametrize(("format", "name"), [("verl", "rollouts.jsonl"), ("jsonl", "rollouts.parquet")])
def test_file_with_the_suffix_of_another_format_is_refused(
    tmp_path: Path, episodes: list[EpisodeSession], format: str, name: str
) -> None:
    with pytest.raises(CannotWrite, match=f"a file of the format {format} ends in {ROLLOUT_FORMATS[format].suffix}"):
        export_episodes(tmp_path / name, RolloutSelection(), format=format)
    assert not list(tmp_path.iterdir())


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_grpo_has_prompt_completion_group_reward_and_tokens(episodes: list[EpisodeSession], tmp_path: Path) -> None:
    rows = lines(export(tmp_path, "grpo"))
    assert [(row["group"], row["reward"]) for row in rows] == [("a-group", 1.0), ("a-group", 1.0), ("a-group", 0.0)]
    assert [message["role"] for message in rows[0]["prompt"]] == ["system", "user"]
    assert [message["role"] for message in rows[0]["completion"]] == ["assistant", "tool", "assistant"]
    assert [{name: row[name] for name in FLAT} for row in rows] == [FLAT, NO_TOKENS, NO_TOKENS]
    assert rows[0]["completion"][0]["tool_calls"][0]["function"]["arguments"] == '{"n": 1}'


def test_sft_has_only_passed_rollouts_up_to_the_last_answer(episodes: list[EpisodeSession], tmp_path: Path) -> None:
    messages = [*conversation("{}"), {"role": "user", "content": "Thanks."}]
    EpisodeSession.objects.filter(pk=episodes[0].pk).update(state={"messages": messages, "tools": []})
    report = export_episodes(tmp_path / "out.jsonl", RolloutSelection(), format="sft")
    rows = lines(tmp_path / "out.jsonl")
    assert len(rows) == 2 and rows[0]["messages"][-1] == {"role": "assistant", "content": "2"}
    assert report.left_out == {"failed, which is not an example to learn from": 1}


@pytest.mark.parametrize("format", ["sft", "sft-objects"])
@pytest.mark.parametrize("empty", [None, "", " \n", "<think>Done.</think>"])
def test_sft_leaves_out_rollouts_with_an_empty_answer(
    episodes: list[EpisodeSession], tmp_path: Path, format: str, empty: str | None
) -> None:
    messages = conversation("{}")
    messages[-1] = {"role": "assistant", "content": empty}
    EpisodeSession.objects.filter(pk=episodes[0].pk).update(state={"messages": messages, "tools": []})
    report = export_episodes(tmp_path / "out.jsonl", RolloutSelection(), format=format)
    assert report.written == 1 and report.left_out["an empty answer, which is not an example to learn from"] == 1
    assert export_episodes(tmp_path / "grpo.jsonl", RolloutSelection(), format="grpo").written == 3


@pytest.mark.parametrize("arguments", ["", " "])
@pytest.mark.parametrize("format", ["jsonl", "sft", "grpo", "verl"])
def test_empty_arguments_are_exported_as_an_empty_object(
    episodes: list[EpisodeSession], tmp_path: Path, format: str, arguments: str
) -> None:
    EpisodeSession.objects.update(state={"messages": conversation(arguments), "tools": []})
    path = export(tmp_path, format)
    if format == "verl":
        messages = json.loads(pyarrow.parquet.read_table(path).to_pylist()[0]["completion"])
    else:
        messages = lines(path)[0]["completion" if format == "grpo" else "messages"]
    (call,) = next(message for message in messages if message.get("tool_calls"))["tool_calls"]
    assert call["function"]["arguments"] == "{}"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_every_format_has_reasoning_beside_the_text(episodes: list[EpisodeSession], tmp_path: Path, field: str) -> None:
    (prompt, *turns) = conversation("{}")[1:]
    turns[0] = {**turns[0], field: "I add.", "provider_key": 1}
    turns[2] = {**turns[2], field: None}
    EpisodeSession.objects.update(state={"messages": [{**prompt, field: "no model"}, *turns], "tools": []})
    found = {}
    for format in ROLLOUT_FORMATS:
        path = export(tmp_path, format)
        if format == "verl":
            row = pyarrow.parquet.read_table(path).to_pylist()[0]
            messages = [*row["prompt"], *json.loads(row["completion"])]
        else:
            row = lines(path)[0]
            messages = row.get("messages") or row.get("steps") or []
            messages = [*row["prompt"], *row["completion"]] if "prompt" in row else messages
        assert "provider_key" not in str(messages)
        found[format] = [message["reasoning_content"] for message in messages if "reasoning_content" in message]
    assert found == {format: ["I add."] for format in ROLLOUT_FORMATS}


@pytest.mark.parametrize("format", ["sft", "grpo"])
def test_training_formats_have_null_without_tools(episodes: list[EpisodeSession], tmp_path: Path, format: str) -> None:
    """The chat template of Llama 3.1 asks for calls if the list of tools is empty."""
    EpisodeSession.objects.update(state={**episodes[0].state, "tools": []})
    assert {row["tools"] for row in lines(export(tmp_path, format))} == {None}
    assert {row["tools"] for row in lines(export(tmp_path, "jsonl"))} == {"[]"}


@pytest.mark.parametrize(("format", "key"), [("sft", "messages"), ("grpo", "completion")])
def test_formats_with_objects_differ_only_in_arguments(
    episodes: list[EpisodeSession], tmp_path: Path, format: str, key: str
) -> None:
    expected = lines(export(tmp_path, format))[:2]
    for row in expected:
        function = next(message for message in row[key] if "tool_calls" in message)["tool_calls"][0]["function"]
        function["arguments"] = json.loads(function["arguments"])
    assert lines(export(tmp_path, f"{format}-objects")) == expected


@pytest.mark.parametrize("arguments", ["{not JSON", "[1]", '{"n": NaN}'])
def test_calls_without_an_object_are_left_out_of_formats_with_objects(
    episodes: list[EpisodeSession], tmp_path: Path, arguments: str
) -> None:
    EpisodeSession.objects.update(state={"messages": conversation(arguments), "tools": []}, score={"status": "passed"})
    EpisodeSession.objects.filter(pk=episodes[0].pk).update(state={"messages": conversation(""), "tools": []})
    for format, key in (("sft-objects", "messages"), ("grpo-objects", "completion")):
        report = export_episodes(tmp_path / f"{format}.jsonl", RolloutSelection(), format=format)
        (row,) = lines(tmp_path / f"{format}.jsonl")
        assert [call["function"]["arguments"] for message in row[key] for call in message.get("tool_calls", [])] == [{}]
        assert [count for why, count in report.left_out.items() if "no JSON object" in why] == [2]


def test_atif_contains_arguments_with_nan_as_text(episodes: list[EpisodeSession], tmp_path: Path) -> None:
    state = {"messages": conversation('{"n": NaN}'), "tools": []}
    EpisodeSession.objects.filter(pk=episodes[0].pk).update(state=state)
    call = lines(export(tmp_path, "atif"))[0]["steps"][2]["tool_calls"][0]
    assert (call["arguments"], call["extra"]) == ({}, {"invalid_arguments": '{"n": NaN}'})


def test_answers_in_the_prompt_belong_to_the_prompt(episodes: list[EpisodeSession], tmp_path: Path) -> None:
    examples = [{"role": "user", "content": "0 + 1?"}, {"role": "assistant", "content": "1"}]
    EpisodeSession.objects.update(state={"messages": [*examples, *conversation("{}")], "tools": [], "prompt": 4})
    assert [message["role"] for message in lines(export(tmp_path, "grpo"))[0]["prompt"]] == [
        "user",
        "assistant",
        "system",
        "user",
    ]
    steps = lines(export(tmp_path, "atif"))[0]["steps"]
    assert [step.get("is_copied_context") for step in steps] == [None, True, None, None, None, None]
    assert [step.get("metrics", {}).get("completion_token_ids") for step in steps[4:]] == [[3], [4, 5]]


def test_answers_in_the_prompt_of_a_response_belong_to_the_prompt(tmp_path: Path) -> None:
    run = stored_run(stored_version(cases=1))
    case = run.environments.get().version.cases.get()
    examples = [{"role": "user", "content": "0 + 1?"}, {"role": "assistant", "content": "1"}]
    stored_response(run, case, "passed", messages=[*examples, *conversation("{}")[1:]], prompt_messages=3)
    path = tmp_path / "out.jsonl"
    export_run_rollouts(run, path, RolloutSelection(), format="grpo")
    (row,) = [json.loads(line.replace("\\ud800", "")) for line in path.read_text("utf-8").splitlines()]
    assert [message["role"] for message in row["prompt"]] == ["user", "assistant", "user"]
    assert [message["role"] for message in row["completion"]] == ["assistant", "tool", "assistant"]


def test_episode_without_an_answer_of_the_policy_is_no_completion(
    episodes: list[EpisodeSession], tmp_path: Path
) -> None:
    (first, *others) = episodes
    first.state["messages"] = [*first.state["messages"], {"role": "user", "content": "And 1 + 2?"}]
    first.state["prompt"] = len(first.state["messages"])
    first.usage = []  # it was finished before the first step
    first.save()
    written = [row["rollout"] for row in lines(export(tmp_path, "grpo"))]
    assert written == [str(episode.pk) for episode in others]
    (trajectory, *_) = lines(export(tmp_path, "atif"))
    assert [step.get("is_copied_context") for step in trajectory["steps"] if step["source"] == "agent"] == [True, True]


def test_tokens_are_flat_only_if_the_steps_are_one_sequence() -> None:
    assert flatten_tokens(TOKENS) == FLAT
    assert flatten_tokens([TOKENS[0], None]) == flatten_tokens([]) == flatten_tokens(None) == NO_TOKENS
    assert flatten_tokens([TOKENS[1], TOKENS[0]]) == NO_TOKENS
    without: StepTokens = {"prompt_ids": [1, 2], "completion_ids": [3], "logprobs": None}
    assert flatten_tokens([without, TOKENS[1]]) == {**FLAT, "logprobs": None}


def test_verl_file_has_typed_columns(episodes: list[EpisodeSession], tmp_path: Path) -> None:
    rows = pyarrow.parquet.read_table(export(tmp_path, "verl")).to_pylist()
    assert rows[0]["prompt"] == [{"role": "system", "content": "Add."}, {"role": "user", "content": "1 + 1? ?"}]
    assert rows[0]["reward_model"] == {"style": "rule", "ground_truth": "c0"}
    assert [row["extra_info"]["index"] for row in rows] == [0, 1, 2]
    assert rows[1]["extra_info"]["seed"] == 2**62 + 1
    assert (rows[0]["response_ids"], rows[0]["response_mask"]) == (FLAT["completion_ids"], FLAT["completion_mask"])
    assert rows[0]["rollout_log_probs"] == FLAT["logprobs"] and rows[1]["response_ids"] is None
    assert json.loads(rows[2]["completion"])[0]["tool_calls"][0]["function"]["arguments"] == "{not JSON"


@pytest.mark.parametrize("format", ["sft", "grpo"])
def test_lines_have_one_type_for_each_key(episodes: list[EpisodeSession], tmp_path: Path, format: str) -> None:
    """Older versions of `datasets` read JSON with pyarrow alone."""
    EpisodeSession.objects.update(tokens=TOKENS)
    for session in episodes:  # pyarrow rejects lone surrogates, which are tested above
        state = {**session.state, "messages": json.loads(json.dumps(session.state["messages"]).replace("\\ud800", ""))}
        EpisodeSession.objects.filter(pk=session.pk).update(state=state)
    assert pyarrow.json.read_json(export(tmp_path, format)).num_rows == (2 if format == "sft" else 3)


@pytest.mark.parametrize("format", ["sft", "grpo", "verl", "atif"])
def test_messages_with_images_are_left_out(episodes: list[EpisodeSession], tmp_path: Path, format: str) -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}
    EpisodeSession.objects.update(state={"messages": [image, {"role": "assistant", "content": "2"}], "tools": []})
    EpisodeSession.objects.filter(pk=episodes[2].pk).delete()
    report = export_episodes(tmp_path / "out", RolloutSelection(), format=format)
    assert (report.written, [count for why, count in report.left_out.items() if "other than text" in why]) == (0, [2])


def test_atif_steps_have_calls_observations_and_metrics(episodes: list[EpisodeSession], tmp_path: Path) -> None:
    first, _, invalid = lines(export(tmp_path, "atif"))
    assert [step["source"] for step in first["steps"]] == ["system", "user", "agent", "agent"]
    called = first["steps"][2]
    assert called["tool_calls"] == [{"tool_call_id": "1", "function_name": "add", "arguments": {"n": 1}}]
    assert called["observation"] == {"results": [{"source_call_id": "1", "content": "2"}]}
    assert called["metrics"]["completion_token_ids"] == [3] and called["metrics"]["prompt_tokens"] == 4
    assert invalid["steps"][2]["tool_calls"][0]["extra"] == {"invalid_arguments": "{not JSON"}
    assert (first["extra"]["seed"], first["extra"]["reward"]) == (2**62, 1.0)
    assert first["final_metrics"] == {
        "total_prompt_tokens": 8,
        "total_completion_tokens": 4,
        "total_cached_tokens": 2,
        "total_steps": 4,
    }


@pytest.mark.parametrize("format", ["jsonl", "grpo", "verl", "atif"])
def test_exported_rollout_can_be_replayed_without_other_data(
    user: User, folder: Path, tmp_path: Path, format: str
) -> None:
    version: EnvironmentVersion = import_bundle(bundle=folder / "capitals")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    client = APIClient()
    client.force_authenticate(user)
    url = "/api/v1/episodes/"
    start: dict[str, Any] = {"environment": str(version), "case": "peru", "seed": 11, "attempt": 3}
    step = {"message": {"role": "assistant", "content": "Lima"}}
    first = client.post(url, start, format="json").json()["id"]
    client.post(f"{url}{first}/step", step, format="json")
    path = export(tmp_path, format)
    row = pyarrow.parquet.read_table(path).to_pylist()[0] if format == "verl" else lines(path)[0]
    kept = {**row, **(row.get("extra_info") or row.get("extra") or {})}
    again = {name: kept[name] for name in ("environment", "case", "attempt")}
    again |= {"attempt_seed": kept["seed"]}
    second = client.post(url, again, format="json").json()["id"]
    assert client.post(f"{url}{second}/step", step, format="json").json()["reward"] == kept["reward"] == 1.0
    assert EpisodeSession.objects.get(pk=second).seed == EpisodeSession.objects.get(pk=first).seed == kept["seed"]
    del again["case"]
    assert "case" in client.post(url, again, format="json").json()["errors"][0]["path"]


def test_formats_are_offered_by_rest_page_and_command(user: User, tmp_path: Path, capsys: Any) -> None:
    run = stored_run(stored_version(cases=2), created_by=user)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    stored_outcomes(run, "pf")
    api, client = APIClient(), Client()
    api.force_authenticate(user)
    client.force_login(user)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    for name in ROLLOUT_FORMATS:
        address = f"runs/{run.pk}/rollouts?format={name}"
        assert f'href="/{address}"' in page
        by_rest: Any = api.get(f"/api/v1/{address}")
        by_page: Any = client.get(f"/{address}")
        content = b"".join(by_rest.streaming_content)
        assert content and content == b"".join(by_page.streaming_content)
        out = tmp_path / f"{name}{ROLLOUT_FORMATS[name].suffix}"
        call_command("export_rollouts", "--run", str(run.pk), "--format", name, "--out", str(out))
        assert out.read_bytes() == content
    assert "Wrote 1 rollout" in capsys.readouterr().out
    wrong = f"runs/{run.pk}/rollouts?format=nonsense"
    assert api.get(f"/api/v1/{wrong}").status_code == 400
    assert "nonsense" in client.get(f"/{wrong}", follow=True).content.decode()


@pytest.mark.exhaustive
@pytest.mark.parametrize("format", ["sft", "sft-objects", "grpo", "grpo-objects", "verl"])
def test_datasets_loads_each_file(
    episodes: list[EpisodeSession], tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets  # seconds to import

    for session in episodes:
        state = {**session.state, "messages": json.loads(json.dumps(session.state["messages"]).replace("\\ud800", ""))}
        EpisodeSession.objects.filter(pk=session.pk).update(state=state)
    builder, path = ("parquet" if format == "verl" else "json"), export(tmp_path, format)
    table = datasets.load_dataset(builder, data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    assert table.num_rows == (3 if format in ("grpo", "verl") else 2)
    if format != "verl":
        answers = "messages" if format.startswith("sft") else "completion"
        call = next(message for message in table[1][answers] if message["role"] == "assistant")["tool_calls"][0]
        arguments = call["function"]["arguments"]
        expected = {"n": "x", "m": [1]}
        assert arguments == expected if format.endswith("-objects") else json.loads(arguments) == expected


@pytest.mark.exhaustive
@pytest.mark.parametrize("format", ["sft", "sft-objects", "grpo", "grpo-objects"])
def test_datasets_loads_a_large_file_in_one_piece(
    episodes: list[EpisodeSession], tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default `datasets` takes the types from the first 10 MB, in which no message calls a tool here."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets  # seconds to import

    plain = [{"role": "user", "content": "long" * 2_700_000}, {"role": "assistant", "content": "2"}]
    EpisodeSession.objects.filter(pk=episodes[0].pk).update(state={"messages": plain, "tools": []}, usage=[USAGE])
    called = json.loads(json.dumps(conversation('{"n": 1}')).replace("\\ud800", ""))
    for episode in episodes[1:]:
        EpisodeSession.objects.filter(pk=episode.pk).update(state={**episode.state, "messages": called})
    path = export(tmp_path, format)
    assert path.stat().st_size > 10 * 2**20
    table = datasets.load_dataset(
        "json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"), chunksize=path.stat().st_size
    )
    assert table[1]["tools"] and table[1]["messages" if format.startswith("sft") else "completion"][-3]["tool_calls"]


@pytest.mark.exhaustive
def test_harbor_accepts_each_trajectory(episodes: list[EpisodeSession], tmp_path: Path) -> None:
    """The models of the format need only pydantic, so that the other dependencies of Harbor are not installed."""
    target = tmp_path / "harbor"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--ignore-requires-python", "--target"]
    if subprocess.run([*pip, str(target), HARBOR], capture_output=True).returncode:
        pytest.skip(f"{HARBOR} cannot be installed here")
    program = (
        f"import sys; sys.path.insert(0, {str(target)!r})\n"
        "from harbor.models.trajectories import Trajectory\n"
        "for line in open(sys.argv[1], 'rb'): print(len(Trajectory.model_validate_json(line).steps))"
    )
    path = export(tmp_path, "atif")
    text = path.read_text("utf-8").replace("\\ud800", "")
    path.write_text(text, "utf-8")
    checked = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True)
    assert checked.stdout.split() == ["4", "4", "4"], checked.stderr
