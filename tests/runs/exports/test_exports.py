"""Exports of failing cases and of recordings: rows, left-out cases and errors."""

import json
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.core.management import call_command

from hub.models import Case, EnvironmentVersion
from hub.protocols.calls import CallKey
from hub.services import import_bundle
from runs.exports import FORMATS, ExportError, FailureFilters, export_failures, export_responses
from runs.exports.failure_formats.base import find_passing
from runs.exports.protocol import ExportFormat, ExportReport, export_items
from runs.models import Response, Run, RunModel
from runs.providers.replay import open_recording
from tests.commands import run_command
from tests.factories import accepted_defect, stored_outcomes, stored_response, stored_run, stored_score, stored_version

pytestmark = pytest.mark.django_db

CASES = [{"question": f"{i} + 1?", "target": str(i + 1)} for i in range(4)]
GOLD = [{"case": str(i + 1), "content": f"gold {i}"} for i in range(3)]


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def imported(folder: Path, *, gold: Any = GOLD, **manifest: Any) -> EnvironmentVersion:
    """A small environment: four cases without ids of their own, so that their numbers serve as ids."""
    folder.mkdir()
    write_lines(folder / "data.jsonl", CASES)
    write_lines(folder / "wrong.jsonl", [{"case": "1", "content": "no"}, {"case": "2", "content": "no"}])
    if isinstance(gold, list):
        write_lines(folder / "gold.jsonl", gold)
    (folder / "README.md").write_text("Sums.", encoding="utf-8")
    document = {
        "spec": 1,
        "slug": "sums",
        "version": "1.0.0",
        "title": "Sums",
        "summary": "Small sums.",
        "category": "reasoning",
        "dataset": {"path": "data.jsonl", "fields": {"input": "question"}},
        "harness": {"type": "single_turn", "system": "Be brief."},
        "scoring": {"rules": [{"type": "exact_match"}]},
        "gold": "gold.jsonl" if isinstance(gold, list) else gold,
        "wrong": "wrong.jsonl",
        **manifest,
    }
    (folder / "environment.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return import_bundle(bundle=folder)


def failing_run(version: EnvironmentVersion, outcomes: str = "fpff", **fields: Any) -> Run:
    run = stored_run(version, **fields)
    stored_outcomes(run, outcomes)
    return run


# ---- gold answers that are not text ----------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["sft", "openai"])
def test_numeric_gold_answer_is_exported_as_text(tmp_path: Path, format: str) -> None:
    version = imported(tmp_path / "bundle", gold={"content": "{{ target | int }}"})
    exported = export_failures(failing_run(version), tmp_path / "out.jsonl", format=format)
    assert exported.written == 3
    assert read_lines(tmp_path / "out.jsonl")[0]["messages"][-1] == {"role": "assistant", "content": "1"}


@pytest.mark.parametrize("format", ["sft", "openai"])
def test_stored_gold_answer_that_is_not_text_is_left_out_and_counted(tmp_path: Path, format: str) -> None:
    """As of an environment that was stored before such answers were refused."""
    version = imported(tmp_path / "bundle", gold={"content": "{{ target }}"})
    for case in Case.objects.all():
        case.data["target"] = case.data["row"]["target"] = ["a list"]
        case.save()
    exported = export_failures(failing_run(version), tmp_path / "out.jsonl", format=format)
    assert exported.written == 0
    assert exported.left_out == {"the template of the gold answers does not render to text for the case": 3}


# ---- fine-tuning -----------------------------------------------------------------------------------------------------


def test_sft_pairs_each_failing_prompt_with_the_gold_answer(tmp_path: Path) -> None:
    run = failing_run(imported(tmp_path / "bundle"))
    exported = export_failures(run, tmp_path / "out.jsonl", format="sft")
    first, second = read_lines(tmp_path / "out.jsonl")
    assert first["messages"][-1] == {"role": "assistant", "content": "gold 0"}
    assert [message["role"] for message in first["messages"]] == ["user", "assistant"]
    assert (first["environment"], first["case"], first["failed_response"]) == ("sums@1.0.0", "1", "an answer")
    assert second["case"] == "3"
    assert exported.written == 2
    assert exported.left_out == {"no gold answer": 1}


def test_gold_answer_follows_the_examples_of_its_prompt(tmp_path: Path) -> None:
    run = stored_run(imported(tmp_path / "bundle"))
    prompt = [
        {"role": "user", "content": "0 + 1?"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "1 + 1?"},
    ]
    case = Case.objects.filter(version=run.environments.get().version).order_by("position")[0]
    stored_response(run, case, "failed", messages=[*prompt, {"role": "assistant", "content": "3"}], prompt_messages=3)
    export_failures(run, tmp_path / "out.jsonl", format="sft")
    (row,) = read_lines(tmp_path / "out.jsonl")
    assert row["messages"] == [*prompt, {"role": "assistant", "content": "gold 0"}]


def test_text_parts_of_a_prompt_are_one_text_for_chat_templates(tmp_path: Path) -> None:
    run = stored_run(imported(tmp_path / "bundle"))
    parts = [{"type": "text", "text": "1 + "}, {"type": "text", "text": "1?"}]
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    prompt = [{"role": "user", "content": parts}, {"role": "user", "content": [*parts, picture]}]
    case = Case.objects.filter(version=run.environments.get().version).order_by("position")[0]
    stored_response(run, case, "failed", messages=[*prompt, {"role": "assistant", "content": "3"}])
    export_failures(run, tmp_path / "out.jsonl", format="sft")
    (row,) = read_lines(tmp_path / "out.jsonl")
    assert [message["content"] for message in row["messages"]] == ["1 + 1?", [*parts, picture], "gold 0"]


def answered_by(run: Run, case: int, status: str, text: str, **fields: Any) -> Response:
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}]
    row = Case.objects.filter(version=run.environments.get().version).order_by("position")[case]
    return stored_response(run, row, status, text=text, messages=messages, **fields)


@pytest.fixture
def mixed_run(tmp_path: Path) -> Run:
    """Model alpha fails all four cases; only the first three have gold answers.

    Case 1: beta passes. Case 2: alpha and beta pass in later attempts. Case 3: nobody passes. Case 4: beta passes.
    """
    run = stored_run(imported(tmp_path / "bundle"), ["alpha", "beta"], attempts=2)
    for case in range(4):
        answered_by(run, case, "failed", "no", model="alpha")
    answered_by(run, 1, "passed", "alpha 2", model="alpha", attempt=2)
    for case in (0, 1, 3):
        answered_by(run, case, "passed", f"beta {case + 1}", model="beta")
    return run


@pytest.mark.parametrize(
    ("completion", "answers", "left_out"),
    [
        ("", ["gold 0", "gold 1", "gold 2", "beta 4"], {}),
        ("gold", ["gold 0", "gold 1", "gold 2"], {"no gold answer": 1}),
        ("attempt", ["alpha 2"], {"no other attempt of the model passed": 3}),
        ("model", ["beta 1", "beta 2", "beta 4"], {"no other model passed": 1}),
    ],
)
def test_right_answers_come_from_gold_other_attempts_and_other_models(
    mixed_run: Run, tmp_path: Path, completion: str, answers: list[str], left_out: dict[str, int]
) -> None:
    exported = export_failures(mixed_run, tmp_path / "out.jsonl", FailureFilters(completion=completion), format="sft")
    rows = read_lines(tmp_path / "out.jsonl")
    assert [row["messages"][-1]["content"] for row in rows] == answers
    assert exported.left_out == left_out
    for row in rows:
        source, text = row["completion_source"], row["messages"][-1]["content"]
        if text.startswith("gold"):
            assert source == {"kind": "gold"}
        else:
            response = Response.objects.get(text=text)
            kind = "attempt" if text.startswith("alpha") else "model"
            label = response.run_model.label
            assert source == {"kind": kind, "model": label, "run": mixed_run.pk, "response": response.pk}
        assert row["model"] == "alpha" and row["failed_response"] == "no"
        failed = Response.objects.get(pk=row["response"])
        assert (row["run"], row["attempt"], row["case"]) == (mixed_run.pk, failed.attempt, failed.case.external_id)
        assert row["digest"] == failed.run_environment.version.digest and failed.status == "failed"


@pytest.mark.parametrize(
    ("completion", "failed", "answer"), [("attempt", "beta", "beta 2"), ("model", "alpha", "beta 2")]
)
def test_row_is_made_from_the_failure_that_has_the_wanted_answer(
    tmp_path: Path, completion: str, failed: str, answer: str
) -> None:
    """Both models fail the case; beta passes in another attempt, alpha in none."""
    run = stored_run(imported(tmp_path / "bundle"), ["alpha", "beta"], attempts=2)
    answered_by(run, 0, "failed", "no", model="alpha")
    answered_by(run, 0, "failed", "no", model="beta")
    answered_by(run, 0, "passed", "beta 2", model="beta", attempt=2)
    exported = export_failures(run, tmp_path / "out.jsonl", FailureFilters(completion=completion), format="sft")
    (row,) = read_lines(tmp_path / "out.jsonl")
    assert (row["model"], row["messages"][-1]["content"]) == (failed, answer)
    assert not exported.left_out


def test_failure_of_a_later_model_is_used_if_only_its_answer_is_of_another_model(tmp_path: Path) -> None:
    """Both models fail the case; only alpha, the first model, passes in another attempt."""
    run = stored_run(imported(tmp_path / "bundle"), ["alpha", "beta"], attempts=2)
    answered_by(run, 0, "failed", "no", model="alpha")
    answered_by(run, 0, "passed", "alpha 2", model="alpha", attempt=2)
    answered_by(run, 0, "failed", "no", model="beta")
    export_failures(run, tmp_path / "out.jsonl", FailureFilters(completion="model"), format="sft")
    (row,) = read_lines(tmp_path / "out.jsonl")
    assert (row["model"], row["completion_source"]["kind"]) == ("beta", "model")


def test_attempt_of_the_same_model_is_preferred_to_another_model(mixed_run: Run) -> None:
    (environment,) = mixed_run.environments.all()
    failed = list(Response.objects.filter(status="failed").select_related("run_model"))
    found = find_passing(environment, failed, ["attempt", "model"])
    assert sorted(response.text for response in found.values()) == ["alpha 2", "beta 1", "beta 4"]


def test_right_answer_of_a_tool_episode_is_its_whole_transcript(tmp_path: Path) -> None:
    harness = {"type": "tools", "tools": [SCHEMA]}
    version = imported(tmp_path / "bundle", gold=[], harness=harness)
    run = stored_run(version, ["alpha", "beta"])
    turns = [
        {"role": "user", "content": "1 + 1?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "1", "content": "2"},
        {"role": "assistant", "content": "2"},
    ]
    case = version.cases.order_by("position")[0]
    stored_response(run, case, "failed", model="alpha")
    stored_response(run, case, "passed", model="beta", messages=turns)
    export_failures(run, tmp_path / "out.jsonl", format="openai")
    (row,) = read_lines(tmp_path / "out.jsonl")
    assert [message["role"] for message in row["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert row["tools"][0]["function"]["name"] == "add"


@pytest.mark.parametrize("format", ["sft", "openai"])
def test_right_answer_ends_with_the_last_message_of_the_model(tmp_path: Path, format: str) -> None:
    run = stored_run(imported(tmp_path / "bundle", gold=[]), ["alpha", "beta"])
    case = run.environments.get().version.cases.order_by("position")[0]
    answered = [{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "2"}]
    stored_response(run, case, "failed", model="alpha")
    stored_response(run, case, model="beta", messages=[*answered, {"role": "user", "content": "Thanks."}])
    export_failures(run, tmp_path / "out.jsonl", format=format)
    (row,) = read_lines(tmp_path / "out.jsonl")
    assert row["messages"] == answered


@pytest.mark.parametrize(("format", "kept"), [("sft", {"reasoning_content": "1 and 1 are 2."}), ("openai", {})])
def test_reasoning_beside_the_text_is_in_sft_but_not_in_openai(
    tmp_path: Path, format: str, kept: dict[str, str]
) -> None:
    run = stored_run(imported(tmp_path / "bundle", gold=[]), ["alpha", "beta"])
    case = run.environments.get().version.cases.order_by("position")[0]
    answer = {"role": "assistant", "content": "2"}
    asked = {"role": "user", "content": "1 + 1?"}
    stored_response(run, case, "failed", model="alpha")
    stored_response(run, case, model="beta", messages=[asked, {**answer, "reasoning_content": "1 and 1 are 2."}])
    export_failures(run, tmp_path / "out.jsonl", format=format)
    (row,) = read_lines(tmp_path / "out.jsonl")
    assert row["messages"] == [asked, {**answer, **kept}]


@pytest.mark.parametrize("format", ["sft", "openai"])
@pytest.mark.parametrize("empty", [{"content": None}, {"content": " "}, {"content": "<think>Done.</think>"}])
def test_passed_transcripts_with_an_empty_answer_are_left_out(
    tmp_path: Path, format: str, empty: dict[str, str | None]
) -> None:
    run = stored_run(imported(tmp_path / "bundle", gold=[]), ["alpha", "beta"])
    cases = run.environments.get().version.cases.order_by("position")[:2]
    asked = {"role": "user", "content": "1 + 1?"}
    said = {"role": "assistant", "content": "2"}
    for case, last in zip(cases, ({"role": "assistant", **empty}, said), strict=True):
        stored_response(run, case, "failed", model="alpha")
        stored_response(run, case, model="beta", messages=[asked, said, asked, last])
    exported = export_failures(run, tmp_path / "out.jsonl", format=format)
    assert exported.left_out == {"the answer that passed is empty, or says nothing in one of its turns": 1}
    (row,) = read_lines(tmp_path / "out.jsonl")
    assert row["messages"] == [asked, said, asked, said]


def test_unknown_source_of_right_answers_is_refused(mixed_run: Run, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="choose gold, attempt, model"):
        export_failures(mixed_run, tmp_path / "out.jsonl", FailureFilters(completion="luck"), format="sft")


def test_openai_rows_contain_only_messages(tmp_path: Path) -> None:
    run = failing_run(imported(tmp_path / "bundle", gold={"content": "{{ target }}"}))
    export_failures(run, tmp_path / "out.jsonl", format="openai")
    rows = read_lines(tmp_path / "out.jsonl")
    assert [row["messages"][-1]["content"] for row in rows] == ["1", "3", "4"]
    assert all(set(row) == {"messages"} for row in rows)


def test_case_that_several_models_failed_is_exported_once(tmp_path: Path) -> None:
    run = stored_run(imported(tmp_path / "bundle"), ["alpha", "beta"])
    stored_outcomes(run, "fppp", model="alpha")
    stored_outcomes(run, "ffpp", model="beta")
    export_failures(run, tmp_path / "out.jsonl", format="sft")
    assert [(row["case"], row["model"]) for row in read_lines(tmp_path / "out.jsonl")] == [
        ("1", "alpha"),
        ("2", "beta"),
    ]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"messages": [{"content": "a"}, {"content": "b"}]}, "takes several turns"),
        ({"messages": [{"content": None, "tool_calls": [{"id": "1"}]}]}, "calls tools"),
    ],
)
def test_gold_answers_that_are_not_one_text_are_left_out_with_a_reason(
    tmp_path: Path, answer: dict[str, Any], why: str
) -> None:
    run = failing_run(imported(tmp_path / "bundle", gold=[{"case": "1", **answer}]), "fppp")
    exported = export_failures(run, tmp_path / "out.jsonl", format="sft")
    assert not (tmp_path / "out.jsonl").exists()
    ((found, count),) = exported.left_out.items()
    assert (why in found, count) == (True, 1)


SCHEMA = {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}}}
CALL = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


def test_gold_answers_that_call_tools_are_exported_with_the_tools(tmp_path: Path) -> None:
    gold = [{"case": "1", "messages": [{"content": None, "tool_calls": [CALL]}]}]
    version = imported(tmp_path / "bundle", gold=gold, harness={"type": "tools", "tools": [SCHEMA]})
    run = failing_run(version, "fppp")
    export_failures(run, tmp_path / "sft.jsonl", format="sft")
    export_failures(run, tmp_path / "openai.jsonl", format="openai")
    (sft,), (openai,) = read_lines(tmp_path / "sft.jsonl"), read_lines(tmp_path / "openai.jsonl")
    assert openai["messages"][-1] == {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert sft["messages"][-1]["tool_calls"][0]["function"] == {"name": "add", "arguments": {"a": 1}}
    assert json.loads(sft["tools"]) == openai["tools"]
    assert [tool["function"]["name"] for tool in openai["tools"]] == ["add"]


def test_bundle_of_failures_contains_tool_episodes_with_code_and_answers(tmp_path: Path) -> None:
    version = import_bundle(bundle=settings.BASE_DIR / "hub" / "catalog" / "order-desk")
    run = stored_run(version)
    first, second = version.cases.order_by("position")[:2]
    stored_response(run, first, "failed")
    stored_response(run, second, "failed")
    exported = export_failures(run, tmp_path / "out.zip", format="bundle")
    assert (exported.written, dict(exported.left_out)) == (2, {})
    small = import_bundle(bundle=tmp_path / "out.zip")
    digests = ("external_id", "input_digest", "scoring_digest")
    assert list(small.cases.order_by("position").values_list(*digests)) == [
        tuple(getattr(case, name) for name in digests) for case in (first, second)
    ]


@pytest.mark.parametrize("format", ["sft", "openai"])
@pytest.mark.parametrize("by", ["manifest", "curator"])
def test_training_formats_refuse_held_out_environments(tmp_path: Path, format: str, by: str) -> None:
    version = imported(tmp_path / "bundle", held_out=by == "manifest")
    version.environment.held_out = by == "curator"
    version.environment.save()
    with pytest.raises(ExportError, match=r"sums@1\.0\.0 is held out"):
        export_failures(failing_run(version), tmp_path / "out.jsonl", format=format)
    assert list(tmp_path.glob("out*")) == []


def test_jsonl_exports_held_out_environments(tmp_path: Path) -> None:
    run = failing_run(stored_version(held_out=True))
    assert export_failures(run, tmp_path / "out.jsonl", format="jsonl").written == 3


def test_every_format_declares_whether_it_is_for_training() -> None:
    declared = {name: format.training for name, format in FORMATS.items()}
    assert {"sft": True, "openai": True, "jsonl": False, "bundle": False}.items() <= declared.items()


# ---- everything ------------------------------------------------------------------------------------------------------


def test_jsonl_contains_case_transcript_and_scores(tmp_path: Path) -> None:
    run = stored_run(stored_version(cases=2), ["alpha", "beta"])
    first, second = Case.objects.order_by("position")
    response = stored_response(run, first, "failed", model="beta", input_tokens=7)
    stored_score(response, "answer", 0.0, reason="Expected 1.")
    stored_response(run, second, "failed", model="alpha")
    stored_response(run, second, "errored", model="beta")
    export_failures(run, tmp_path / "out.jsonl", FailureFilters(model="beta"), format="jsonl")
    (row,) = read_lines(tmp_path / "out.jsonl")
    assert (row["response"], row["case"], row["model"], row["status"]) == (response.pk, "c0", "beta", "failed")
    assert row["case_data"] == first.data
    assert row["messages"] == response.messages
    assert row["usage"]["input"] == 7
    assert row["scores"][0]["reason"] == "Expected 1."


def test_quarantined_cases_are_left_out(tmp_path: Path) -> None:
    run = failing_run(stored_version(cases=4))
    accepted_defect(Case.objects.get(external_id="c0"), hours_ago=1)
    exported = export_failures(run, tmp_path / "out.jsonl", format="jsonl")
    assert [row["case"] for row in read_lines(tmp_path / "out.jsonl")] == ["c2", "c3"]
    assert exported.left_out == {"of a case that was found wrong": 1}


@pytest.mark.parametrize(("format", "left_out"), [("sft", True), ("jsonl", False)])
def test_training_data_has_no_cases_of_held_out_splits(tmp_path: Path, format: str, left_out: bool) -> None:
    run = failing_run(imported(tmp_path / "bundle"))
    Case.objects.filter(position=0).update(held_out=True)
    exported = export_failures(run, tmp_path / "out.jsonl", format=format)
    assert ("1" not in [row["case"] for row in read_lines(tmp_path / "out.jsonl")]) is left_out
    assert exported.left_out["of a held-out split"] == left_out


def test_failed_export_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = failing_run(stored_version(cases=4))
    out = tmp_path / "out.jsonl"
    out.write_text("old", encoding="utf-8")
    monkeypatch.setattr("runs.exports.failure_formats.jsonl.FailureJsonl.rows", lambda *_: [{"not JSON": object()}])
    with pytest.raises(TypeError):
        export_failures(run, out, format="jsonl", force=True)
    assert out.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [out]


# ---- a bundle --------------------------------------------------------------------------------------------------------


def test_bundle_of_failures_has_the_same_cases_and_digests(tmp_path: Path) -> None:
    version = imported(tmp_path / "bundle")
    run = failing_run(version)
    assert export_failures(run, tmp_path / "out.zip", format="bundle").written == 3
    small = import_bundle(bundle=tmp_path / "out.zip")
    assert str(small).startswith(f"sums-failures@1.0.{run.pk}-c")
    digests = ("external_id", "data__input", "scoring_digest", "input_digest")
    wanted = Case.objects.filter(version=version, external_id__in=["1", "3", "4"])
    found = Case.objects.filter(version=small)
    assert list(found.order_by("position").values_list(*digests)) == list(
        wanted.order_by("position").values_list(*digests)
    )
    assert small.readme == "Sums."


def test_bundle_of_failures_has_only_answers_to_its_cases(tmp_path: Path) -> None:
    run = failing_run(imported(tmp_path / "bundle"), "ppff")
    export_failures(run, tmp_path / "out.zip", format="bundle")
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert sorted(archive.namelist()) == ["README.md", "environment.yaml", "failing-cases.jsonl", "gold.jsonl"]
        assert json.loads(archive.read("gold.jsonl"))["case"] == "3"
        assert "wrong" not in yaml.safe_load(archive.read("environment.yaml"))


def test_bundle_of_failures_keeps_the_held_out_splits_of_its_cases(tmp_path: Path) -> None:
    split = "{{ 'test' if target == '1' else 'train' }}"
    fields = {"input": "question", "metadata": {"split": split}}
    version = imported(tmp_path / "bundle", held_out_splits=["test"], dataset={"path": "data.jsonl", "fields": fields})
    run = failing_run(version, "ffpp")
    for cases, expected in (({"1", "2"}, {"1": True, "2": False}), ({"2"}, {"2": False})):
        export_failures(run, tmp_path / "out.zip", FailureFilters(cases=cases), format="bundle", force=True)
        small = import_bundle(bundle=tmp_path / "out.zip")
        assert dict(small.cases.values_list("external_id", "held_out")) == expected


def test_bundle_of_failures_keeps_held_out_splits_that_only_an_earlier_version_names(tmp_path: Path) -> None:
    fields = {"input": "question", "metadata": {"split": "{{ 'test' if target == '1' else 'train' }}"}}
    dataset = {"path": "data.jsonl", "fields": fields}
    imported(tmp_path / "first", held_out_splits=["test"], dataset=dataset)
    run = failing_run(imported(tmp_path / "second", version="1.1.0", dataset=dataset), "ffpp")
    export_failures(run, tmp_path / "out.zip", FailureFilters(cases={"1", "2"}), format="bundle")
    small = import_bundle(bundle=tmp_path / "out.zip")
    assert dict(small.cases.values_list("external_id", "held_out")) == {"1": True, "2": False}


@pytest.mark.parametrize("by", ["manifest", "curator"])
def test_bundle_of_failures_of_a_held_out_environment_is_held_out(tmp_path: Path, by: str) -> None:
    version = imported(tmp_path / "bundle", held_out=by == "manifest")
    version.environment.held_out = True
    version.environment.save()
    export_failures(failing_run(version), tmp_path / "out.zip", format="bundle")
    assert import_bundle(bundle=tmp_path / "out.zip").environment.held_out


def test_bundle_requires_a_single_environment(tmp_path: Path) -> None:
    versions = [stored_version("one", 1), stored_version("two", 1)]
    run = stored_run(versions)
    for version in versions:
        stored_outcomes(run, "f", version=version)
    with pytest.raises(ExportError, match="several have failures: one, two") as refused:
        export_failures(run, tmp_path / "out.zip", format="bundle")
    assert "--" not in str(refused.value) and refused.value.path == "environment"


# ---- recordings ------------------------------------------------------------------------------------------------------


def test_examples_in_the_prompt_are_not_exported_as_answers(tmp_path: Path) -> None:
    run = stored_run(stored_version(cases=1), ["alpha"])
    prompt = [{"role": "user", "content": "1 + 1"}, {"role": "assistant", "content": "2"}]
    prompt.append({"role": "user", "content": "2 + 2"})
    messages = [*prompt, {"role": "assistant", "content": "4"}]
    stored_response(run, Case.objects.get(), messages=messages, prompt_messages=3)
    export_responses(run, tmp_path / "out")
    (line,) = (tmp_path / "out" / "alpha.jsonl").read_text().splitlines()
    assert json.loads(line)["content"] == "4"


def test_replay_provider_reads_exported_responses(tmp_path: Path) -> None:
    run = stored_run(stored_version(cases=3), ["alpha", "or/ange"], attempts=2)
    first, second, third = Case.objects.order_by("position")
    stored_response(run, first, "failed", finish_reason="length", input_tokens=5, output_tokens=2)
    stored_response(run, first, attempt=2, messages=[{"role": "assistant", "content": "again"}])
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}]
    turns += [{"role": "tool", "content": "4", "tool_call_id": "1"}, {"role": "assistant", "content": "4"}]
    stored_response(run, second, messages=turns)
    stored_response(run, third, "errored", error_kind="timeout")
    stored_response(run, first, model="or/ange")
    exported = export_responses(run, tmp_path / "out")
    assert exported.left_out == {"errored, without an answer": 1}
    recording = open_recording(tmp_path / "out" / "alpha.jsonl")

    def find(case: str, attempt: int = 1) -> Any:
        return recording.find(CallKey(purpose="answer", environment="sums", case=case, attempt=attempt), "")

    assert (find("c0").content, find("c0").finish_reason, find("c0").usage.input) == ("an answer", "length", 5)
    assert find("c0", 2).content == "again"
    assert [message.get("content") for message in find("c1").messages] == [None, "4"]
    assert find("c2") is None
    (other,) = (path for path in exported.files if path.name != "alpha.jsonl")
    assert other.name.startswith("or_ange-")


def test_simulated_users_are_recovered_from_the_transcripts(tmp_path: Path) -> None:
    user = {"role": "user", "prompt": "Play a customer.", "stop": "BYE"}
    version = imported(tmp_path / "bundle", harness={"type": "multi_turn", "prompt": "{{ input }}", "user": user})
    run = stored_run(version)
    RunModel.objects.create(
        run=run, label="customer", role="user", position=0, provider="openai", spec={}, fingerprint="x"
    )
    first, second = Case.objects.order_by("position")[:2]

    def turns(*texts: str) -> list[dict[str, str]]:
        return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]

    stored_response(run, first, messages=turns("1 + 1?", "what?", "the sum", "2"), turns=2)
    stored_response(run, second, messages=turns("2 + 1?", "3", "thanks"), turns=1)
    export_responses(run, tmp_path / "out")
    rows = read_lines(tmp_path / "out" / "user-customer.jsonl")
    assert [(row["case"], row["turn"], row["content"], row["model"]) for row in rows] == [
        ("1", 0, "the sum", "alpha"),
        ("1", 1, "BYE", "alpha"),
        ("2", 0, "thanks BYE", "alpha"),
    ]


def test_judged_workspaces_have_no_simulated_user(tmp_path: Path) -> None:
    harness = {"type": "workspace", "image": "any", "user": 1000}
    rule = {"name": "tone", "type": "judge", "role": "grader", "criteria": [{"name": "good", "text": "Good."}]}
    run = stored_run(imported(tmp_path / "bundle", harness=harness, scoring={"rules": [rule]}))
    RunModel.objects.create(
        run=run, label="strict", role="grader", position=0, provider="openai", spec={}, fingerprint="x"
    )
    response = stored_response(run, Case.objects.order_by("position")[0])
    stored_score(response, "tone", detail={"judges": [{"seat": 0, "said": "{}"}]})
    export_responses(run, tmp_path / "out")
    (file,) = (tmp_path / "out").glob("grader-*.jsonl")
    assert [row["content"] for row in read_lines(file)] == ["{}"]


def test_messages_of_tools_are_not_exported_as_simulated_users(tmp_path: Path) -> None:
    user = {"role": "user", "prompt": "Play a customer."}
    tools = [{"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}]
    harness = {"type": "tools", "tools": tools, "protocol": "text", "user": user}
    version = imported(tmp_path / "bundle", harness=harness)
    run = stored_run(version)
    RunModel.objects.create(
        run=run, label="customer", role="user", position=0, provider="openai", spec={}, fingerprint="x"
    )
    texts = ["1 + 1?", "```tool_call\nnonsense\n```", "No tool was called: …", "Which?", "The sum.", "2"]
    messages = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]
    stored_response(run, Case.objects.order_by("position")[0], messages=messages, turns=3)
    export_responses(run, tmp_path / "out")
    assert [row["content"] for row in read_lines(tmp_path / "out" / "user-customer.jsonl")] == ["The sum.", "###"]


def test_replies_of_each_rubric_judge_are_exported_to_a_file(tmp_path: Path) -> None:
    rules = [
        {"name": name, "type": "judge", "role": role, "criteria": [{"name": "good", "text": "Good."}]}
        for name, role in (("tone", "grader"), ("facts", "expert"))
    ]
    version = imported(tmp_path / "bundle", scoring={"rules": rules})
    run = stored_run(version, ["alpha", "beta"])
    for role, position, label in (("grader", 0, "strict"), ("grader", 1, "kind"), ("expert", 0, "strict")):
        RunModel.objects.create(
            run=run, label=label, role=role, position=position, provider="openai", spec={}, fingerprint="x"
        )
    response = stored_response(run, Case.objects.order_by("position")[0], "failed", model="beta")
    tone = {"judges": [{"seat": 0, "said": "0 marks"}, {"seat": 1, "said": "5 marks"}]}
    stored_score(response, "tone", detail=tone)
    stored_score(response, "facts", detail={"judges": [{"seat": 0, "said": "3 marks"}]})
    export_responses(run, tmp_path / "out")
    found = {path.name: read_lines(path) for path in (tmp_path / "out").glob("*-*.jsonl")}
    names = ("rule", "seat", "model", "content")
    told = {path: [tuple(row[name] for name in names) for row in rows] for path, rows in found.items()}
    assert told == {
        "grader-strict.jsonl": [("tone", 0, "beta", "0 marks")],
        "grader-kind.jsonl": [("tone", 1, "beta", "5 marks")],
        "expert-strict.jsonl": [("facts", 0, "beta", "3 marks")],
    }
    key = CallKey(purpose="rubric", environment="sums", case="1", model="beta", role="grader", rule="tone", seat=1)
    recorded = open_recording(tmp_path / "out" / "grader-kind.jsonl").find(key, "")
    assert recorded is not None and recorded.content == "5 marks"


# ---- commands --------------------------------------------------------------------------------------------------------


def test_command_reports_written_and_left_out_cases(tmp_path: Path, capsys: Any) -> None:
    run = failing_run(imported(tmp_path / "bundle"))
    out = tmp_path / "out.jsonl"
    call_command("export_failures", str(run.pk), "--format", "sft", "--out", str(out))
    said = capsys.readouterr()
    assert said.out.strip() == f"Wrote 2 rows to {out}."
    assert said.err.strip() == "Left out 1: no gold answer."
    call_command("export_responses", str(run.pk), "--out", str(tmp_path / "recorded"))
    assert "alpha.jsonl" in capsys.readouterr().out


def test_commands_report_as_json(tmp_path: Path) -> None:
    run = failing_run(imported(tmp_path / "bundle"))
    failures, recorded, rollouts = tmp_path / "out.jsonl", tmp_path / "recorded", tmp_path / "rollouts.jsonl"
    said = run_command("export_failures", run.pk, "--format", "sft", "--out", failures, "--json")
    assert json.loads(said) == {"rows": 2, "left_out": {"no gold answer": 1}, "files": [str(failures)]}
    said = run_command("export_responses", run.pk, "--out", recorded, "--json")
    report = json.loads(said)
    assert report["rows"] == Response.objects.filter(run_model__run=run).count()
    assert report["files"] == [str(path) for path in sorted(recorded.iterdir())]
    said = run_command("export_rollouts", "--run", run.pk, "--out", rollouts, "--json")
    assert json.loads(said)["files"] == [str(rollouts)]
    said = run_command("export_failures", run.pk, "--format", "sft", "--out", failures, "--json", code=2)
    assert "--force" in json.loads(said)["message"]


def test_command_errors_name_the_option_to_correct(tmp_path: Path, capsys: Any) -> None:
    versions = [stored_version("one", 1), stored_version("two", 1)]
    run = stored_run(versions)
    for version in versions:
        stored_outcomes(run, "f", version=version)
    with pytest.raises(SystemExit):
        call_command("export_failures", str(run.pk), "--format", "bundle", "--out", str(tmp_path / "out.zip"))
    assert capsys.readouterr().err.strip().endswith("Choose one of them. (Option: --environment.)")


def test_command_has_the_filters_of_the_response_list(tmp_path: Path) -> None:
    run = stored_run(stored_version(cases=3))
    marks: list[dict[str, Any]] = [{"truncated": True}, {"reason": "Off."}, {}]
    for case, fields in zip(Case.objects.order_by("position"), marks, strict=True):
        stored_response(run, case, "failed", **fields)
    for options, cases in (
        (["--flag", "truncated"], ["c0"]),
        (["--search", "off"], ["c1"]),
        (["--search", "C2"], ["c2"]),
    ):
        out = tmp_path / f"{cases[0]}.jsonl"
        call_command("export_failures", str(run.pk), "--format", "jsonl", "--out", str(out), *options)
        assert [row["case"] for row in read_lines(out)] == cases


def test_export_of_nothing_exits_with_2_and_creates_no_file(tmp_path: Path) -> None:
    run = failing_run(stored_version(cases=2), "pp")
    for format in FORMATS:
        if not FORMATS[format].training:
            said = run_command("export_failures", run.pk, "--format", format, "--out", tmp_path / "out", code=2)
            assert said == "There is no failing case to export, so nothing was written.\n"
    Response.objects.all().delete()
    said = run_command("export_responses", run.pk, "--out", tmp_path / "out", code=2)
    assert said == "There is no response to export, so nothing was written.\n"
    assert list(tmp_path.iterdir()) == []


def test_unknown_names_in_filters_suggest_close_ones(tmp_path: Path) -> None:
    run = failing_run(stored_version("order-desk", cases=2), "pf")
    for option, given, known in (("--model", "alhpa", "alpha"), ("--environment", "order-dexk", "order-desk")):
        for words in (
            ["export_failures", run.pk, "--format", "jsonl"],
            ["export_rollouts", "--run", run.pk],
        ):
            said = run_command(*words, "--out", tmp_path / "out", option, given, code=2)
            assert f"{given!r}; did you mean {known!r}? (Option: {option}.)" in said


@pytest.mark.parametrize(
    "arguments",
    [["999"], ["{run}", "--model", "nobody"], ["{run}", "--environment", "nowhere"]],
)
def test_unknown_run_model_and_environment_exit_2(tmp_path: Path, arguments: list[str]) -> None:
    run = failing_run(stored_version(cases=4))
    given = [argument.format(run=run.pk) for argument in arguments]
    with pytest.raises(SystemExit) as left:
        call_command("export_failures", *given, "--format", "jsonl", "--out", str(tmp_path / "out"))
    assert left.value.code == 2


def test_cases_quarantined_after_the_run_are_left_out_of_training_data(tmp_path: Path) -> None:
    run = failing_run(stored_version(cases=4))
    Run.objects.update(started_at=run.started_at - timedelta(hours=2))
    accepted_defect(Case.objects.get(external_id="c0"), hours_ago=1)
    export_failures(run, tmp_path / "out.jsonl", format="jsonl")
    assert [row["case"] for row in read_lines(tmp_path / "out.jsonl")] == ["c2", "c3"]


def test_failed_write_ends_the_query(tmp_path: Path) -> None:
    ended = []

    class FullDisk(ExportFormat[int]):
        def rows(self, item: int) -> list[Any]:
            return [{}]

        def write(self, rows: Any, path: Path) -> None:
            next(rows)
            raise OSError("no space")

    def read() -> Any:
        try:
            yield from (1, 2)
        finally:
            ended.append(True)

    with pytest.raises(OSError, match="no space") as caught:
        export_items(FullDisk(), read, tmp_path / "x", ExportReport())
    assert ended and caught
