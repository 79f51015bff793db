"""Exports of preferences: row formats, preferences that the linter leaves out, and provenance of each row."""

import errno
import gc
import io
import json
import os
import zipfile
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import pyarrow.parquet as pq
import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.files.storage import storages
from django.core.management import call_command
from django.db import connection

from hub.common.fields import file_names
from hub.models import Environment
from hub.services import import_bundle
from preferences.evidence import evidence_of
from preferences.exporters import FORMATS, ExportError, export, export_preferences, zip_preferences
from preferences.exporters.formats.base import PreferenceFormat
from preferences.exporters.linter import LintedVerdict, LintResult
from preferences.exporters.reports import PreferenceReport
from preferences.models import AppendOnly, Preference
from preferences.selectors import PreferenceFilters, current_preferences, filter_preferences
from preferences.services import JudgeIdentity, NewPreference, Reaction, record_preference
from runs.models import Response
from tests.factories import accepted_defect, stored_response, stored_run, stored_version

pytestmark = pytest.mark.django_db


OPENING = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "0 + 1?"}]


def responses(
    *texts: str, statuses: str = "", held_out: bool = False, messages: Any = None, openings: Any = None
) -> list[Response]:
    """Responses of as many models to one case."""
    version = stored_version(f"sums{Environment.objects.count()}", 1, held_out=held_out)
    labels = [f"m{i}" for i in range(len(texts))]
    run = stored_run(version, labels)
    case = version.cases.get()
    said = messages or [[{"role": "assistant", "content": text}] for text in texts]
    words = {"p": "passed", "f": "failed"}
    return [
        stored_response(
            run,
            case,
            words[statuses[i]] if statuses else "passed",
            model=label,
            text=texts[i],
            messages=[*(openings[i] if openings else OPENING), *said[i]],
        )
        for i, label in enumerate(labels)
    ]


def record(
    first: Response, second: Response, verdict: str = "first", *, by: str = "ann", **reaction: Any
) -> Preference:
    judge = JudgeIdentity(label="j", fingerprint="f", prompt_version="pair-1") if by == "judge" else None
    user = User.objects.get_or_create(username=by)[0] if by not in ("judge", "execution") else None
    return record_preference(
        NewPreference(
            first=first,
            second=second,
            verdict=verdict,
            evidence=evidence_of(first, second),
            reviewer=user,
            judge=judge,
            reaction=Reaction(**reaction),
        )
    )


def exported(tmp_path: Path, format: str = "trl") -> tuple[list[dict[str, Any]], dict[str, Any]]:
    written = export_preferences(current_preferences(), tmp_path / "out", format=format, force=True)
    lines = (tmp_path / "out" / "data.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines], written.to_json()


def calling(arguments: Any) -> list[dict[str, Any]]:
    """A conversation with one call of a tool."""
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "1"},
        {"role": "assistant", "content": "one"},
    ]


def test_trl_rows_are_prompt_chosen_and_rejected(tmp_path: Path) -> None:
    record(*responses("one", "two"), "second")
    rows, _ = exported(tmp_path)
    assert rows == [{"prompt": "Be brief.\n\n0 + 1?", "chosen": "two", "rejected": "one"}]


def test_trl_conversational_rows_are_lists_of_messages(tmp_path: Path) -> None:
    record(*responses("one", "two"))
    rows, _ = exported(tmp_path, "trl-conversational")
    assert rows[0]["prompt"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "0 + 1?"}]
    assert rows[0]["chosen"] == [{"role": "assistant", "content": "one"}]
    assert rows[0]["rejected"] == [{"role": "assistant", "content": "two"}]


def test_kto_labels_both_responses_and_takes_both_bad(tmp_path: Path) -> None:
    record(*responses("one", "two"))
    record(*responses("three", "four"), "both_bad")
    record(*responses("five", "six"), "tie")
    rows, report = exported(tmp_path, "kto")
    assert [(row["completion"], row["label"]) for row in rows] == [
        ("one", True),
        ("two", False),
        ("three", False),
        ("four", False),
    ]
    assert sum(report["left_out"].values()) == 1
    assert report["dropped"] == report["left_out"]


def test_kto_has_one_row_per_response_and_none_if_it_won_and_lost(tmp_path: Path) -> None:
    best, middle, worst = responses("best", "middle", "worst")
    for better, worse in ((best, middle), (middle, worst), (best, worst)):
        record(better, worse)
    rows, report = exported(tmp_path, "kto")
    assert [(row["completion"], row["label"]) for row in rows] == [("best", True), ("worst", False)]
    assert report["left_out"] == {
        "an answer that won one comparison and lost another": 2,
        "an answer that is already in the file, with the same label": 2,
    }


def test_openai_rows_have_one_assistant_message_on_each_side(tmp_path: Path) -> None:
    record(*responses("one", "two"))
    rows, _ = exported(tmp_path, "openai-dpo")
    assert rows == [
        {
            "input": {
                "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "0 + 1?"}],
            },
            "preferred_output": [{"role": "assistant", "content": "one"}],
            "non_preferred_output": [{"role": "assistant", "content": "two"}],
        }
    ]


def test_multi_turn_pair_is_exported_in_conversational_format_only(tmp_path: Path) -> None:
    record(*responses("one", "two", messages=[calling('{"n": 1}'), [{"role": "assistant", "content": "two"}]]))
    rows, _ = exported(tmp_path, "trl-conversational")
    assert rows[0]["chosen"] == calling({"n": 1})  # TRL's examples hold objects, where the wire has text
    with pytest.raises(ExportError, match="use trl-conversational"):
        exported(tmp_path, "trl")


def turns(*texts: str) -> list[dict[str, Any]]:
    """Assistant and user in turns, the assistant first."""
    return [{"role": ("assistant", "user")[i % 2], "content": text} for i, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        (turns("Which?", "All.", "one"), turns("Which?", "All.", "two"), 2),
        (turns("Which?", "All.", "one", "No.", "1"), turns("Which?", "All.", "two", "No.", "2"), 2),
        (turns("Which?", "All.", "one"), turns("Which?", "None.", "one"), 0),
        (turns("Which?", "All.", "So?", "Go.", "one"), turns("Which?", "All.", "So?", "Stop.", "one"), 2),
        (turns("Which?", "All.", "one"), turns("What?", "All.", "one"), 0),
        (turns("one", "And?", "two"), turns("one"), 0),
        ([*calling('{"n": 1}')[:2], *turns("one")], [*calling('{"n":1}')[:2], *turns("two")], 2),
    ],
)
def test_shared_messages_of_conversations_are_the_prompt(tmp_path: Path, first: Any, second: Any, shared: int) -> None:
    """The prompt reaches to the first difference, and both sides begin with an answer."""
    record(*responses("one", "two", messages=[first, second]))
    (row,), _ = exported(tmp_path, "trl-conversational")
    assert len(row["prompt"]) == len(OPENING) + shared
    assert [m["role"] for m in row["prompt"]] == [m["role"] for m in [*OPENING, *first[:shared]]]
    assert [m["content"] for m in row["chosen"]] == [m["content"] for m in first[shared:]]
    assert [m["content"] for m in row["rejected"]] == [m["content"] for m in second[shared:]]


def test_ids_of_calls_do_not_end_the_shared_prompt(tmp_path: Path) -> None:
    other = calling('{"n": 1}')
    other[0]["tool_calls"][0]["id"] = other[1]["tool_call_id"] = "other"
    other[2]["content"] = "two"
    record(*responses("one", "two", messages=[calling('{"n": 1}'), other]))
    (row,), _ = exported(tmp_path, "trl-conversational")
    assert [m["role"] for m in row["prompt"]] == ["system", "user", "assistant", "tool"]
    assert (row["chosen"], row["rejected"]) == (turns("one"), turns("two"))


def test_balance_and_lengths_are_of_the_written_rows(tmp_path: Path) -> None:
    messages = [calling('{"n": 1}'), [{"role": "assistant", "content": "two"}]]
    record(*responses("one", "two", messages=messages), "first")
    for longer in ("three", "seven"):
        record(*responses("one", longer), "second")
    rows, report = exported(tmp_path, "trl")
    assert [row["chosen"] for row in rows] == ["three", "seven"]
    assert (report["kept"], report["first_chosen"]) == (2, 0.0)
    assert "was chosen in 0.0 % of the pairs" in (tmp_path / "out" / "README.md").read_text()


def test_ties_that_kto_leaves_out_are_counted_once(tmp_path: Path) -> None:
    record(*responses("one", "two"), "tie")
    with pytest.raises(ExportError, match=r"exported: a tie, which makes no response good or bad \(1\)\. Nothing"):
        exported(tmp_path, "kto")


def test_conversation_that_differs_in_last_message_is_exported_for_openai(tmp_path: Path) -> None:
    record(*responses("one", "two", messages=[turns("Which?", "All.", "one"), turns("Which?", "All.", "two")]))
    (row,), _ = exported(tmp_path, "openai-dpo")
    assert row["input"]["messages"] == [*OPENING, *turns("Which?", "All.")]
    assert (row["preferred_output"], row["non_preferred_output"]) == (turns("one"), turns("two"))
    with pytest.raises(ExportError, match="use trl-conversational"):
        exported(tmp_path, "trl")


@pytest.mark.parametrize("format", ["trl", "trl-conversational", "kto", "openai-dpo"])
def test_training_formats_omit_reasoning(tmp_path: Path, format: str) -> None:
    texts = "<think>Hm, one?</think>\n\none", "I think so.\n</think>\n\ntwo"
    record(*responses(*texts))
    rows, _ = exported(tmp_path, format)
    assert "think" not in json.dumps(rows) and "Hm" not in json.dumps(rows)
    assert '"one"' in json.dumps(rows) and '"two"' in json.dumps(rows)


def test_reasoning_in_shared_prompt_is_omitted_and_not_compared(tmp_path: Path) -> None:
    first, second = turns("<think>a</think>Which?", "All.", "one"), turns("<think>b</think>Which?", "All.", "two")
    record(*responses("one", "two", messages=[first, second]))
    (row,), _ = exported(tmp_path, "trl-conversational")
    assert row["prompt"] == [*OPENING, *turns("Which?", "All.")]


def test_sides_end_with_the_last_message_of_the_model(tmp_path: Path) -> None:
    thanks = {"role": "user", "content": "Thanks."}
    record(*responses("one", "two", messages=[[*turns("one"), thanks], [*turns("two"), thanks]]))
    rows, _ = exported(tmp_path, "trl-conversational")
    assert (rows[0]["chosen"], rows[0]["rejected"]) == (turns("one"), turns("two"))
    rows, _ = exported(tmp_path, "openai-dpo")
    assert (rows[0]["preferred_output"], rows[0]["non_preferred_output"]) == (turns("one"), turns("two"))


@pytest.mark.parametrize("format", ["trl", "trl-conversational", "openai-dpo"])
def test_sides_that_differ_after_the_last_answer_are_identical(tmp_path: Path, format: str) -> None:
    ends = ({"role": "user", "content": text} for text in ("Thanks.", "No."))
    record(*responses("one", "one", messages=[[*turns("one"), end] for end in ends]))
    with pytest.raises(ExportError, match="identical sides"):
        exported(tmp_path, format)


def test_answers_that_differ_in_reasoning_alone_are_identical(tmp_path: Path) -> None:
    record(*responses("<think>a</think>one", "<think>b</think>one"))
    with pytest.raises(ExportError, match="identical sides"):
        exported(tmp_path)


@pytest.mark.parametrize("format", ["trl", "trl-conversational", "kto", "openai-dpo"])
def test_answer_of_reasoning_alone_is_left_out_and_counted(tmp_path: Path, format: str) -> None:
    record(*responses("one", "<think>Hm"))
    with pytest.raises(ExportError, match="only reasoning"):
        exported(tmp_path, format)


@pytest.mark.parametrize("format", ["trl", "trl-conversational", "kto", "openai-dpo"])
@pytest.mark.parametrize("empty", ["", " \n"])
def test_pair_whose_chosen_answer_is_empty_is_left_out_and_counted(tmp_path: Path, format: str, empty: str) -> None:
    record(*responses("one", empty), "second")
    with pytest.raises(ExportError, match=r"an empty answer that was chosen \(1\)"):
        exported(tmp_path, format)


@pytest.mark.parametrize("format", ["trl", "trl-conversational", "kto"])
def test_rejected_answer_may_be_empty(tmp_path: Path, format: str) -> None:
    record(*responses("one", ""), "first")
    rows, _ = exported(tmp_path, format)
    empty = [{"role": "assistant", "content": ""}] if format == "trl-conversational" else ""
    assert [row.get("rejected", row.get("completion")) for row in rows][-1] == empty


def test_openai_takes_no_empty_answer(tmp_path: Path) -> None:
    record(*responses("one", " "), "first")
    with pytest.raises(ExportError, match="OpenAI does not accept"):
        exported(tmp_path, "openai-dpo")


def test_images_are_exported_as_messages_and_not_dropped_from_texts(tmp_path: Path) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    shown = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}]
    record(*responses("a cat", "a dog", openings=[shown, shown]))
    rows, _ = exported(tmp_path, "trl-conversational")
    assert [row["prompt"] for row in rows] == [shown]
    for format in ("trl", "kto"):
        with pytest.raises(ExportError, match="images or other parts"):
            exported(tmp_path, format)


def test_tools_column_lists_offered_tools(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"
    version = import_bundle(bundle=settings.BASE_DIR / "hub" / "catalog" / "order-desk")
    run = stored_run(version, ["m0", "m1"])
    case = version.cases.order_by("position")[0]
    pair = [
        stored_response(run, case, model=f"m{i}", text=text, messages=[*OPENING, *calling("{}")[:2], *turns(text)])
        for i, text in enumerate(("one", "two"))
    ]
    record(*pair)
    (trl,), _ = exported(tmp_path, "trl-conversational")
    (openai,), _ = exported(tmp_path, "openai-dpo")
    tools = json.loads(trl["tools"])
    assert {"name", "description", "parameters"} <= tools[0]["function"].keys()
    assert openai["input"]["tools"] == tools
    assert openai["input"]["messages"][2]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert trl["prompt"][2]["tool_calls"][0]["function"]["arguments"] == {}


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e400"])
def test_arguments_with_numbers_that_are_not_json_stay_text(tmp_path: Path, number: str) -> None:
    arguments = f'{{"n": [{number}]}}'
    record(*responses("one", "two", messages=[calling(arguments), turns("two")]))
    exported(tmp_path, "trl-conversational")
    line = (tmp_path / "out" / "data.jsonl").read_text()
    row = json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert row["chosen"][0]["tool_calls"][0]["function"]["arguments"] == arguments


def test_jsonl_and_parquet_contain_all_fields_and_ties(tmp_path: Path) -> None:
    record(*responses("one", "two"), "tie")
    rows, _ = exported(tmp_path, "jsonl")
    assert (rows[0]["verdict"], rows[0]["reviewer"], rows[0]["first"]["model"]) == ("tie", "ann", "m0")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "was chosen" not in card  # no pair has a winner, so there is no share
    assert "Correlation" not in card
    export_preferences(current_preferences(), tmp_path / "all.parquet", format="parquet")
    table = pq.read_table(tmp_path / "all.parquet").to_pylist()
    assert (table[0]["id"], json.loads(table[0]["first"])["model"]) == (rows[0]["id"], "m0")


def test_provenance_of_row_names_run_responses_and_digests(tmp_path: Path) -> None:
    preference = record(*responses("one", "two"))
    exported(tmp_path)
    (line,) = map(json.loads, (tmp_path / "out" / "provenance.jsonl").read_text().splitlines())
    assert line["line"] == 1
    assert (line["id"], line["run"], line["config_hash"]) == (preference.pk, preference.run_id, preference.config_hash)
    assert line["environment_digest"] == preference.version.digest
    assert line["first"]["response"] == preference.first_id
    card = (tmp_path / "out" / "README.md").read_text()
    assert "Models compared: m0, m1" in card
    assert "first response was chosen in 100.0 %" in card


def test_correlation_of_length_keeps_its_sign_however_small_it_is() -> None:
    lengths = [(1000, "second"), (-1000, "second"), (999, "first"), (-1000, "first")]
    verdicts = [LintedVerdict(i, 2 * i, 2 * i + 1, "human", word, longer) for i, (longer, word) in enumerate(lengths)]
    report = PreferenceReport(lint=LintResult(kept=verdicts), preferences={0, 1, 2, 3})
    assert "Correlation between being longer and being chosen: -0.0003." in list(report.figure_lines())


def test_ties_go_to_their_own_file(tmp_path: Path) -> None:
    record(*responses("one", "two"))
    record(*responses("three", "four"), "tie")
    rows, report = exported(tmp_path)
    assert (len(rows), report["kept"], report["ties"]) == (1, 1, 1)
    assert json.loads((tmp_path / "out" / "ties.jsonl").read_text())["verdict"] == "tie"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: record(*responses("same", "same")), "identical sides"),
        (lambda: record(*responses("one", "two", held_out=True)), "of a held-out environment"),
        (lambda: record(*responses("one", "two", statuses="fp")), "contradicts execution"),
        (lambda: record(*responses("one", "two"), by="bob", check_result="failed"), "accepted wrong suggestions"),
    ],
)
def test_untrainable_pairs_are_left_out_and_counted(tmp_path: Path, make: Any, why: str) -> None:
    record(*responses("good", "bad"))
    make()
    rows, report = exported(tmp_path)
    assert [row["chosen"] for row in rows] == ["good"]
    assert [why in reason for reason in report["left_out"]] == [True]


@pytest.mark.parametrize(
    ("failed", "checks", "kept"),
    [(1, 1, 0), (2, 2, 0), (1, 5, 4), (3, 5, 2), (4, 5, 0), (3, 3, 0), (5, 10, 5), (6, 10, 0)],
)
def test_reviewer_is_left_out_only_for_significantly_many_failed_checks(
    tmp_path: Path, failed: int, checks: int, kept: int
) -> None:
    record(*responses("good", "bad"), by="bob")
    record(*responses("mine", "other"), by="ann")
    for i in range(checks):
        result = "failed" if i < failed else "passed"
        record(*responses(f"a{i}", f"b{i}"), by="ann", check_result=result)
    rows, _ = exported(tmp_path)
    careless = (failed, checks) in [(4, 5), (3, 3), (6, 10)]
    assert len(rows) == (1 if careless else 2 + kept)


def test_undone_check_decision_counts_once(tmp_path: Path) -> None:
    record(*responses("mine", "other"), by="ann")
    first, second = responses("one", "two")
    old = record(first, second, by="ann", check_result="failed")
    for _ in range(3):
        old = record_preference(
            NewPreference(
                first=first,
                second=second,
                supersedes=old,
                verdict="first",
                evidence={},
                reviewer=User.objects.get(),
                reaction=Reaction(check_result="failed"),
            )
        )
    assert [row["chosen"] for row in exported(tmp_path)[0]] == ["mine"]


def test_verdict_against_execution_is_exported_if_defect_was_accepted(tmp_path: Path) -> None:
    first, second = responses("one", "two", statuses="fp")
    defect = accepted_defect(first.case, hours_ago=1)
    record(first, second, disputes_tests=True, defect=defect)
    assert exported(tmp_path)[0][0]["chosen"] == "one"


def test_one_row_per_pair_with_people_before_judges(tmp_path: Path) -> None:
    first, second = responses("one", "two")
    record(first, second, "second", by="judge")
    record(first, second, "first", by="ann")
    record(second, first, "second", by="bob")
    rows, report = exported(tmp_path)
    assert [row["chosen"] for row in rows] == ["one"]
    assert sum(report["left_out"].values()) == 2


def test_contradicting_reviewers_export_no_row(tmp_path: Path) -> None:
    first, second = responses("one", "two")
    record(first, second, "first", by="ann")
    record(first, second, "second", by="bob")
    with pytest.raises(ExportError, match="contradict each other"):
        exported(tmp_path)


@pytest.mark.parametrize("filters", [{"reviewer": "ann"}, {"verdict": "first"}, {"source": "llm"}])
def test_verdict_outside_of_filters_contradicts_those_that_match(tmp_path: Path, filters: PreferenceFilters) -> None:
    first, second = responses("one", "two")
    record(first, second, "first", by="ann")
    record(first, second, "first", by="judge")
    record(first, second, "second", by="bob")
    with pytest.raises(ExportError, match="contradict each other"):
        export_preferences(current_preferences(), tmp_path / "out", format="trl", filters=filters)


def test_verdict_outside_of_filters_contradicts_no_verdict_that_takes_precedence(tmp_path: Path) -> None:
    first, second = responses("one", "two")
    record(first, second, "first", by="ann")
    record(first, second, "first", by="bob")
    record(first, second, "second", by="judge")
    report = export_preferences(current_preferences(), tmp_path / "out", format="trl", filters={"reviewer": "ann"})
    assert (report.written, dict(report.left_out)) == (1, {})


def test_cycles_are_left_out_and_adjacent_pairs_kept(tmp_path: Path) -> None:
    a, b, c, d = responses("a", "b", "c", "d")
    for better, worse in ((a, b), (b, c), (c, a), (a, d)):
        record(better, worse)
    rows, report = exported(tmp_path)
    assert [(row["chosen"], row["rejected"]) for row in rows] == [("a", "d")]
    assert report["left_out"] == {"part of a cycle (A over B over C over A)": 3}


def test_export_of_held_out_data_only_is_rejected_without_files(tmp_path: Path) -> None:
    record(*responses("one", "two", held_out=True))
    with pytest.raises(ExportError, match="held-out"):
        exported(tmp_path)
    assert not (tmp_path / "out").exists()


def test_superseded_preference_is_not_exported_and_none_is_ever_changed(tmp_path: Path) -> None:
    first, second = responses("one", "two")
    old = record(first, second)
    record_preference(
        NewPreference(
            first=first, second=second, supersedes=old, verdict="second", evidence={}, reviewer=User.objects.get()
        )
    )
    assert exported(tmp_path)[0][0]["chosen"] == "two"
    old.verdict = "tie"
    with pytest.raises(AppendOnly):
        old.save()


def test_filters_narrow_what_is_exported() -> None:
    mine = record(*responses("one", "two"))
    record(*responses("three", "four"), by="judge")
    assert list(filter_preferences(current_preferences(), source="human")) == [mine]
    assert list(filter_preferences(current_preferences(), run=mine.run_id)) == [mine]
    assert list(filter_preferences(current_preferences(), environment=mine.version.environment.slug)) == [mine]
    assert not filter_preferences(current_preferences(), since=mine.created_at.date().replace(year=2099))


@pytest.mark.parametrize(
    ("openings", "why"),
    [
        ([OPENING, [{"role": "user", "content": "Hello, what is 0 + 1?"}]], "sides with different prompts"),
        ([OPENING[:1], OPENING[:1]], "does not end with a user's message"),
        ([[], []], "does not end with a user's message"),
    ],
)
@pytest.mark.parametrize("format", ["trl", "trl-conversational", "openai-dpo", "kto"])
def test_pair_without_user_message_in_prompt_is_left_out(tmp_path: Path, format: str, openings: Any, why: str) -> None:
    record(*responses("one", "two", openings=openings))
    with pytest.raises(ExportError, match=why):
        exported(tmp_path, format)


def test_jsonl_keeps_full_transcripts_if_prompts_differ(tmp_path: Path) -> None:
    first, second = responses("one", "two", openings=[OPENING, OPENING[1:]])
    record(first, second)
    (row,), _ = exported(tmp_path, "jsonl")
    assert (row["prompt"], row["first_messages"], row["second_messages"]) == ([], first.messages, second.messages)


# ---- the command -----------------------------------------------------------------------------------------------------


def command(*arguments: Any) -> None:
    call_command("export_preferences", "--format", "trl", *map(str, arguments))


def refused(capsys: Any, *arguments: Any) -> str:
    """What the command says when it ends with 2."""
    with pytest.raises(SystemExit) as ended:
        command(*arguments)
    assert ended.value.code == 2
    said: str = capsys.readouterr().err
    return said.strip()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_command_writes_file_card_and_provenance(tmp_path: Path, capsys: Any) -> None:
    record(*responses("one", "two"))
    command("--out", tmp_path / "p.jsonl")
    assert names(tmp_path) == ["p.card.md", "p.jsonl", "p.provenance.jsonl"]
    assert "Wrote 1 row:" in capsys.readouterr().out


def test_export_replaces_files_only_with_force_and_removes_old_ties(tmp_path: Path, capsys: Any) -> None:
    record(*responses("one", "two"))
    tie = record(*responses("three", "four"), "tie")
    command("--out", tmp_path / "p.jsonl")
    assert "p.ties.jsonl" in names(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert refused(capsys, "--out", tmp_path / "p.jsonl").endswith("p.jsonl exists already; --force replaces it.")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    record_preference(
        NewPreference(
            first=tie.first,
            second=tie.second,
            supersedes=tie,
            verdict="second",
            evidence={},
            reviewer=User.objects.get(),
        )
    )
    command("--out", tmp_path / "p.jsonl", "--force")
    assert "Wrote 2 rows:" in capsys.readouterr().out
    assert names(tmp_path) == ["p.card.md", "p.jsonl", "p.provenance.jsonl"]


def test_folder_with_export_is_not_overwritten(tmp_path: Path, capsys: Any) -> None:
    record(*responses("one", "two"))
    command("--out", tmp_path / "out")
    assert "--force replaces it" in refused(capsys, "--out", tmp_path / "out")
    command("--out", tmp_path / "out", "--force")
    assert names(tmp_path / "out") == ["README.md", "data.jsonl", "provenance.jsonl"]


def test_unwritable_output_is_reported_in_a_sentence(tmp_path: Path, capsys: Any) -> None:
    record(*responses("one", "two"))
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.jsonl").mkdir()
    assert "there is no folder" in refused(capsys, "--out", tmp_path / "missing" / "p.jsonl")
    assert "is not a folder" in refused(capsys, "--out", tmp_path / "file" / "p.jsonl")
    assert "is a folder; name a file in it" in refused(capsys, "--out", tmp_path / "folder.jsonl")
    assert "is a file; name a folder" in refused(capsys, "--out", tmp_path / "file")
    assert "a file of the format trl ends in .jsonl" in refused(capsys, "--out", tmp_path / "p.parquet")
    assert "Name a file" in refused(capsys, "--out", "-")
    assert "cannot be written" in refused(capsys, "--out", "/proc/p.jsonl")
    assert names(tmp_path) == ["file", "folder.jsonl"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_interrupted_export_keeps_previous_files(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    record(*responses("one", "two"))
    command("--out", tmp_path / "old.jsonl")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def cut_off(self: PreferenceFormat, rows: Any, path: Path) -> None:
        path.write_text("half a li")
        raise error

    monkeypatch.setattr(PreferenceFormat, "write", cut_off)
    for out in ("old.jsonl", "new"):
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            command("--out", tmp_path / out, "--force")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert isinstance(error, KeyboardInterrupt) or "no space left on device" in capsys.readouterr().err


def test_rejection_with_json_option_is_json(tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        command("--out", tmp_path / "p", "--json")
    assert json.loads(capsys.readouterr().out)["message"].startswith("There are no preferences yet")


def test_single_unexportable_preference_is_reported_with_reason(tmp_path: Path) -> None:
    record(*responses("one", "two"), "tie")
    with pytest.raises(ExportError) as refusal:
        exported(tmp_path)
    assert str(refusal.value) == ("The 1 preference cannot be exported: without a winner (1). Nothing was written.")


def test_command_exits_2_if_nothing_matches(tmp_path: Path, capsys: Any) -> None:
    assert refused(capsys, "--out", tmp_path / "p").startswith("There are no preferences yet, so nothing was written.")
    run = record(*responses("one", "two")).run_id
    assert (
        refused(capsys, "--out", tmp_path / "p", "--source", "llm")
        == "No preference matches the filters, so nothing was written."
    )
    assert f"There is no run {run + 1}" in refused(capsys, "--out", tmp_path / "p", "--run", run + 1)
    assert "There is no environment 'nope'" in refused(capsys, "--out", tmp_path / "p", "--environment", "nope")
    said = refused(capsys, "--out", tmp_path / "p", "--reviewer", "bob")
    assert said.startswith("There is no reviewer 'bob'; known are ann. (Option: --reviewer.)")
    record(*responses("three", "four"), by="anna")
    said = refused(capsys, "--out", tmp_path / "p", "--reviewer", "annna")
    assert said.startswith("There is no reviewer 'annna'; did you mean 'anna'?")
    User.objects.create_user("newcomer")
    assert refused(capsys, "--out", tmp_path / "p", "--reviewer", "newcomer").startswith("No preference matches")
    assert not (tmp_path / "p").exists()


def test_command_filters_and_reports_as_json(tmp_path: Path, capsys: Any) -> None:
    mine = record(*responses("one", "two"), "second")
    record(*responses("three", "four"), by="bob")
    command("--out", tmp_path / "p", "--reviewer", "ann", "--verdict", "second", "--run", mine.run_id, "--json")
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["kept"], report["first_chosen"]) == (1, 1, 0)
    assert report["files"] == [str(tmp_path / "p" / name) for name in ("README.md", "data.jsonl", "provenance.jsonl")]


# ---- as trainers load it ---------------------------------------------------------------------------------------------


def loaded(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What `load_dataset` makes of an export's folder, by the card in it and without a network."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets  # seconds to import, which only these tests should cost

    return datasets.load_dataset(str(folder), split="train", cache_dir=str(cache))


def shape(feature: Any) -> Any:
    """A feature as plain values: `"string"`, `[...]` for a list, `{...}` for a struct, `"Json"` for anything."""
    if isinstance(feature, dict):
        return {name: shape(item) for name, item in feature.items()}
    if hasattr(feature, "feature"):
        return [shape(feature.feature)]
    return getattr(feature, "dtype", None) or type(feature).__name__


MESSAGES = [{"role": "string", "content": "string"}]
FEATURES = {
    "trl": {"prompt": "string", "chosen": "string", "rejected": "string"},
    "trl-conversational": {"prompt": MESSAGES, "chosen": MESSAGES, "rejected": MESSAGES, "tools": "null"},
    "kto": {"prompt": "string", "completion": "string", "label": "bool"},
    "openai-dpo": {
        "input": {"messages": MESSAGES},
        "preferred_output": MESSAGES,
        "non_preferred_output": MESSAGES,
    },
}


@pytest.mark.parametrize("format", FEATURES)
def test_every_training_format_loads_with_its_columns_and_types(
    tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(*responses("one", "two"))
    record(*responses("three", "four"), "second")
    record(*responses("five", "six"), "tie")
    rows, _ = exported(tmp_path, format)
    table = loaded(tmp_path / "out", tmp_path / "cache", monkeypatch)
    assert shape(dict(table.features)) == FEATURES[format]
    assert list(table) == rows


def test_conversations_with_tool_calls_load_beside_plain_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = [{"role": "assistant", "content": "two"}]
    record(*responses("one", "two", messages=[calling('{"n": 1}'), plain]))
    record(*responses("one", "two", messages=[calling('{"path": ["a"]}'), plain]))
    record(*responses("one", "two", messages=[calling("{not JSON"), plain]))
    record(*responses("three", "four"))
    rows, _ = exported(tmp_path, "trl-conversational")
    table = loaded(tmp_path / "out", tmp_path / "cache", monkeypatch)
    assert shape(table.features["chosen"]) == ["Json"]
    assert shape(table.features["rejected"]) == MESSAGES
    assert list(table) == rows  # no key that another row has is added as None
    arguments = [row["chosen"][0]["tool_calls"][0]["function"]["arguments"] for row in table.select(range(3))]
    assert arguments == [{"n": 1}, {"path": ["a"]}, "{not JSON"]


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_full_formats_load_for_every_source_of_verdict(
    tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [
        record(*responses("one", "two", statuses="pf")),
        record(*responses("three", "four", messages=[calling("{}"), calling("{}")[2:]]), by="judge"),
        record(*responses("five", "six", statuses="fp"), "second", by="execution"),
        record(*responses("seven", "eight"), "tie"),
    ]
    written = export_preferences(current_preferences(), tmp_path / "out", format=format)
    table = loaded(tmp_path / "out", tmp_path / "cache", monkeypatch)
    assert table["id"][:] == [item.pk for item in made]
    assert table["source"][:] == ["human", "llm", "execution", "human"]
    assert table["judge"][:] == [None, "j", None, None]
    types = {name: shape(feature) for name, feature in table.features.items()}
    assert (types["id"], types["run"], types["order_sensitive"]) == ("int64", "int64", "bool")
    if format == "parquet":
        assert {types[name] for name in ("evidence", "issues", "first", "prompt", "first_messages")} == {"string"}
        assert (types["confidence"], types["suggestion"], types["reviewer"]) == ("float64", "int64", "string")
    assert written.written == len(table)


def test_provenance_of_every_row_matches_stored_objects(tmp_path: Path) -> None:
    record(*responses("one", "two"))
    second = record(*responses("three", "four"), "second")
    rows, _ = exported(tmp_path, "kto")
    lines = [json.loads(line) for line in (tmp_path / "out" / "provenance.jsonl").read_text().splitlines()]
    assert [line["line"] for line in lines] == [1, 2, 3, 4]
    line, row = lines[3], rows[3]
    preference = Preference.objects.get(pk=line["id"])
    assert preference == second
    response = Response.objects.get(pk=line["second"]["response"])
    assert (response.text, response.run_model.label) == (row["completion"], line["second"]["model"])
    assert response.run_model.fingerprint == line["second"]["model_fingerprint"]
    assert (line["run"], line["config_hash"]) == (response.run_environment.run_id, preference.run.config_hash)
    assert (line["environment"], line["environment_digest"]) == (str(preference.version), preference.version.digest)
    assert (line["case"], line["input_digest"]) == (response.case.external_id, response.case.input_digest)


@pytest.mark.parametrize("format", FORMATS)
def test_export_is_independent_of_chunk_size(tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, verdict in enumerate(("first", "second", "tie", "both_bad") * 4):
        record(*responses(f"one {number}", f"two {number}"), verdict)
    whole = export_preferences(current_preferences(), tmp_path / "whole", format=format)
    monkeypatch.setattr("preferences.exporters.export._CHUNK", 2)
    most = 0
    read = export._read

    def counted(rows: Any, **options: Any) -> Any:
        nonlocal most
        for preference in read(rows, **options):
            there.add(preference)
            gc.collect()
            most = max(most, len(there))
            yield preference

    there: WeakSet[Preference] = WeakSet()
    monkeypatch.setattr(export, "_read", counted)
    gc.freeze()  # so that collecting looks at what is made from here on, and is quick
    try:
        parts = export_preferences(current_preferences(), tmp_path / "parts", format=format)
    finally:
        gc.unfreeze()
    assert {**parts.to_json(), "files": []} == {**whole.to_json(), "files": []}
    assert [path.name for path in parts.files] == [path.name for path in whole.files]
    for one, other in zip(whole.files, parts.files, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert most <= (16 if format == "parquet" else 6)  # parquet is written in groups of a thousand


@pytest.mark.parametrize("format", FORMATS)
def test_zip_has_the_files_of_a_folder(tmp_path: Path, format: str) -> None:
    for number, verdict in enumerate(("first", "second", "tie", "both_bad") * 2):
        record(*responses(f"one {number}", f"two {number}"), verdict)
    written = export_preferences(current_preferences(), tmp_path / "folder", format=format).files
    packed = b"".join(zip_preferences(current_preferences(), format=format, viewer=None))
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            path.name: path.read_bytes() for path in written
        }


def test_zip_begins_before_the_last_rows_are_read_and_is_invalid_if_they_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        record(*responses(f"one {number} {os.urandom(40_000).hex()}", f"two {number}"))
    monkeypatch.setattr("preferences.exporters.export._CHUNK", 2)
    pieces = zip_preferences(current_preferences(), format="jsonl", viewer=None)
    begun = next(pieces)
    Response.objects.update(messages="broken")  # so that reading the next rows fails
    with pytest.raises(Exception, match="str"):
        begun += b"".join(pieces)
    with pytest.raises(zipfile.BadZipFile):
        zipfile.ZipFile(io.BytesIO(begun))


# ---- the same texts under different responses ------------------------------------------------------------------------


def answers_of_runs(*texts: tuple[str, str]) -> list[tuple[Response, Response]]:
    """Two models' answers to the same case, in as many runs as there are *texts*."""
    version = stored_version(f"sums{Environment.objects.count()}", 1)
    case = version.cases.get()
    pairs = []
    for both in texts:
        run = stored_run(version, ["m0", "m1"])
        first, second = (
            stored_response(
                run, case, model=f"m{i}", text=text, messages=[*OPENING, {"role": "assistant", "content": text}]
            )
            for i, text in enumerate(both)
        )
        pairs.append((first, second))
    return pairs


def test_same_texts_of_two_runs_give_one_row(tmp_path: Path) -> None:
    for pair in answers_of_runs(("one", "two"), ("one", "two")):
        record(*pair)
    rows, report = exported(tmp_path)
    assert [row["chosen"] for row in rows] == ["one"]
    assert report["left_out"] == {"another preference has the same verdict on the same answers": 1}


def test_same_texts_with_sides_exchanged_give_one_row(tmp_path: Path) -> None:
    (first, second), (other_first, other_second) = answers_of_runs(("one", "two"), ("two", "one"))
    record(first, second, "first")
    record(other_first, other_second, "second")
    rows, report = exported(tmp_path)
    assert (len(rows), report["left_out"]) == (1, {"another preference has the same verdict on the same answers": 1})


def test_contradictions_about_equal_texts_export_no_row(tmp_path: Path) -> None:
    for pair, verdict in zip(answers_of_runs(("one", "two"), ("one", "two")), ("first", "second"), strict=True):
        record(*pair, verdict)
    with pytest.raises(ExportError, match="contradict each other"):
        exported(tmp_path)


def test_verdict_of_a_person_outranks_judge_on_equal_texts(tmp_path: Path) -> None:
    mine, judged = answers_of_runs(("one", "two"), ("one", "two"))
    record(*mine, "first")
    record(*judged, "second", by="judge")
    rows, report = exported(tmp_path)
    assert [row["chosen"] for row in rows] == ["one"]
    assert report["left_out"] == {"the same pair has a person's verdict": 1}


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        ("first", "another preference has the same verdict on the same answers"),
        ("second", "the same pair has another verdict of execution"),
        ("tie", "the same pair has another verdict of execution"),
    ],
)
def test_execution_outranks_judge_on_equal_texts(tmp_path: Path, verdict: str, reason: str) -> None:
    """The judged pair itself has no result of execution."""
    executed, judged = answers_of_runs(("one", "two"), ("one", "two"))
    record(*executed, "first", by="execution")
    record(*judged, verdict, by="judge")
    rows, report = exported(tmp_path)
    assert [row["chosen"] for row in rows] == ["one"]
    assert report["left_out"] == {reason: 1}


def test_cycles_across_runs_are_found_by_equal_texts(tmp_path: Path) -> None:
    for pair in answers_of_runs(("a", "b"), ("b", "c"), ("c", "a")):
        record(*pair)
    with pytest.raises(ExportError, match="part of a cycle"):
        exported(tmp_path)


def test_same_answers_to_different_prompts_are_two_rows(tmp_path: Path) -> None:
    record(*responses("one", "two"))
    other = [{"role": "user", "content": "1 + 1?"}]
    record(*responses("one", "two", openings=[other, other]), "second")
    rows, _ = exported(tmp_path)
    assert [row["chosen"] for row in rows] == ["one", "two"]


def test_ids_of_tool_calls_do_not_make_answers_different(tmp_path: Path) -> None:
    again = calling('{"n":1}')
    again[0]["tool_calls"][0]["id"] = again[1]["tool_call_id"] = "other"
    two = [{"role": "assistant", "content": "two"}]
    record(*responses("one", "two", messages=[calling('{"n": 1}'), two]))
    record(*responses("one", "two", messages=[again, two]))
    rows, report = exported(tmp_path, "trl-conversational")
    assert (len(rows), report["left_out"]) == (1, {"another preference has the same verdict on the same answers": 1})


# ---- what preferences store about their answers ----------------------------------------------------------------------

UNKNOWN = {"first_digest": "", "second_digest": "", "same_answer": False, "longer": 0}


def stored_comparisons() -> list[dict[str, object]]:
    return list(Preference.objects.order_by("id").values(*UNKNOWN))


def test_preference_stores_how_its_answers_compare() -> None:
    one, two, other = responses("one", "three", "<think>Hm.</think>one")
    for pair in ((one, two), (two, one), (one, other)):
        record(*pair)
    forth, back, same = stored_comparisons()
    assert (forth["longer"], back["longer"], forth["same_answer"], same["same_answer"]) == (-2, 2, False, True)
    assert (forth["first_digest"], forth["second_digest"]) == (back["second_digest"], back["first_digest"])
    assert same["first_digest"] == same["second_digest"] == forth["first_digest"] != forth["second_digest"]


def test_migration_compares_answers_of_earlier_preferences_whose_transcripts_can_be_read() -> None:
    for pair in answers_of_runs(("one", "two"), ("three", "three"), ("x" * 200_000, "lost"), ("four", "five")):
        record(*pair)
    expected = stored_comparisons()
    assert [item["same_answer"] for item in expected] == [False, True, False, False]
    expected[2] = UNKNOWN
    for name in file_names(Response.objects.all()):
        storages["archives"].delete(name)
    Preference.objects.update(**UNKNOWN)
    migration = import_module("preferences.migrations.0003_compared_answers")
    migration.compare_stored_answers(apps, SimpleNamespace(connection=connection))
    assert stored_comparisons() == expected


def test_export_compares_answers_that_no_digest_is_stored_of(tmp_path: Path) -> None:
    for pair in answers_of_runs(("one", "two"), ("one", "two"), ("three", "three")):
        record(*pair)
    Preference.objects.exclude(pk=Preference.objects.earliest("id").pk).update(**UNKNOWN)
    rows, report = exported(tmp_path)
    assert [row["chosen"] for row in rows] == ["one"]
    assert report["left_out"] == {
        "another preference has the same verdict on the same answers": 1,
        "identical sides": 1,
    }
