"""Exports: the shapes that trainers read, what the linter keeps out, and provenance of every line."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from hub.models import Environment
from preferences.evidence import evidence_of
from preferences.exporters import FORMATS, ExportError, preferences_export
from preferences.models import AppendOnly, Preference
from preferences.selectors import filtered, preferences_current
from preferences.services import JudgeIdentity, Judgment, Reaction, preference_record
from runs.models import Response
from tests.factories import stored_response, stored_run, stored_version

pytestmark = pytest.mark.django_db


def responses(*texts: str, statuses: str = "", held_out: bool = False, messages: Any = None) -> list[Response]:
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
            messages=[
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "0 + 1?"},
                *said[i],
            ],
        )
        for i, label in enumerate(labels)
    ]


def record(
    first: Response, second: Response, verdict: str = "first", *, by: str = "ann", **reaction: Any
) -> Preference:
    judge = JudgeIdentity(label="j", fingerprint="f", prompt_version="pair-1") if by == "judge" else None
    user = User.objects.get_or_create(username=by)[0] if by not in ("judge", "execution") else None
    judgment = Judgment(
        verdict=verdict,
        evidence=evidence_of(first, second),
        reviewer=user,
        judge=judge,
        reaction=Reaction(**reaction),
    )
    return preference_record(first=first, second=second, judgment=judgment)


def exported(tmp_path: Path, format: str = "trl") -> tuple[list[dict[str, Any]], dict[str, Any]]:
    written = preferences_export(preferences_current(), tmp_path / "out", format=format)
    lines = (tmp_path / "out" / "data.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines], written.report


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
    assert sum(report["dropped"].values()) == 1


def test_openai_rows_have_one_assistant_message_on_each_side(tmp_path: Path) -> None:
    record(*responses("one", "two"))
    rows, _ = exported(tmp_path, "openai-dpo")
    assert rows == [
        {
            "input": {
                "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "0 + 1?"}],
                "tools": [],
                "parallel_tool_calls": True,
            },
            "preferred_output": [{"role": "assistant", "content": "one"}],
            "non_preferred_output": [{"role": "assistant", "content": "two"}],
        }
    ]


def test_a_conversation_fits_the_conversational_format_alone(tmp_path: Path) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    long = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "1"},
        {"role": "assistant", "content": "one"},
    ]
    record(*responses("one", "two", messages=[long, [{"role": "assistant", "content": "two"}]]))
    rows, _ = exported(tmp_path, "trl-conversational")
    assert rows[0]["chosen"] == long
    with pytest.raises(ExportError, match="use trl-conversational"):
        exported(tmp_path, "trl")


def test_jsonl_and_parquet_hold_everything_and_ties(tmp_path: Path) -> None:
    record(*responses("one", "two"), "tie")
    rows, _ = exported(tmp_path, "jsonl")
    assert (rows[0]["verdict"], rows[0]["reviewer"], rows[0]["first"]["model"]) == ("tie", "ann", "m0")
    preferences_export(preferences_current(), tmp_path / "all.parquet", format="parquet")
    table = pq.read_table(tmp_path / "all.parquet").to_pylist()
    assert (table[0]["id"], json.loads(table[0]["first"])["model"]) == (rows[0]["id"], "m0")


def test_every_line_leads_to_its_run_responses_and_digests(tmp_path: Path) -> None:
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


def test_ties_go_to_their_own_file(tmp_path: Path) -> None:
    record(*responses("one", "two"))
    record(*responses("three", "four"), "tie")
    rows, report = exported(tmp_path)
    assert (len(rows), report["ties"]) == (1, 1)
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
def test_what_must_not_be_trained_on_is_left_out_and_counted(tmp_path: Path, make: Any, why: str) -> None:
    record(*responses("good", "bad"))
    make()
    rows, report = exported(tmp_path)
    assert [row["chosen"] for row in rows] == ["good"]
    assert [why in reason for reason in report["dropped"]] == [True]


def test_a_verdict_against_execution_stays_where_a_defect_was_filed(tmp_path: Path) -> None:
    record(*responses("one", "two", statuses="fp"), disputes_tests=True)
    assert exported(tmp_path)[0][0]["chosen"] == "one"


def test_one_row_stands_for_a_pair_and_people_outrank_judges(tmp_path: Path) -> None:
    first, second = responses("one", "two")
    record(first, second, "second", by="judge")
    record(first, second, "first", by="ann")
    record(second, first, "second", by="bob")
    rows, report = exported(tmp_path)
    assert [row["chosen"] for row in rows] == ["one"]
    assert sum(report["dropped"].values()) == 2


def test_people_who_contradict_each_other_leave_nothing(tmp_path: Path) -> None:
    first, second = responses("one", "two")
    record(first, second, "first", by="ann")
    record(first, second, "second", by="bob")
    with pytest.raises(ExportError, match="contradict each other"):
        exported(tmp_path)


def test_cycles_are_left_out_and_what_hangs_on_them_stays(tmp_path: Path) -> None:
    a, b, c, d = responses("a", "b", "c", "d")
    for better, worse in ((a, b), (b, c), (c, a), (a, d)):
        record(better, worse)
    rows, report = exported(tmp_path)
    assert [(row["chosen"], row["rejected"]) for row in rows] == [("a", "d")]
    assert report["dropped"] == {"part of a cycle (A over B over C over A)": 3}


def test_held_out_data_alone_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    record(*responses("one", "two", held_out=True))
    with pytest.raises(ExportError, match="held-out"):
        exported(tmp_path)
    assert not (tmp_path / "out").exists()


def test_a_superseded_preference_is_not_exported_and_none_is_ever_changed(tmp_path: Path) -> None:
    first, second = responses("one", "two")
    old = record(first, second)
    judgment = Judgment(verdict="second", evidence={}, reviewer=User.objects.get())
    preference_record(first=first, second=second, judgment=judgment, supersedes=old)
    assert exported(tmp_path)[0][0]["chosen"] == "two"
    old.verdict = "tie"
    with pytest.raises(AppendOnly):
        old.save()


def test_filters_narrow_what_is_exported() -> None:
    mine = record(*responses("one", "two"))
    record(*responses("three", "four"), by="judge")
    assert list(filtered(preferences_current(), source="human")) == [mine]
    assert list(filtered(preferences_current(), run=mine.run_id)) == [mine]
    assert list(filtered(preferences_current(), environment=mine.version.environment.slug)) == [mine]
    assert not filtered(preferences_current(), since=mine.created_at.date().replace(year=2099))


def test_the_command_writes_a_file_with_card_and_provenance_beside_it(tmp_path: Path, capsys: Any) -> None:
    record(*responses("one", "two"))
    call_command("export_preferences", "--format", "trl", "--out", str(tmp_path / "p.jsonl"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.card.md", "p.jsonl", "p.provenance.jsonl"]
    assert "Wrote 1 rows" in capsys.readouterr().out


def test_the_command_ends_with_2_where_nothing_matches(tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        call_command("export_preferences", "--format", "trl", "--out", str(tmp_path / "p"))
    assert ended.value.code == 2
    assert "No preference matches" in capsys.readouterr().err


@pytest.mark.parametrize("format", ["trl", "trl-conversational", "kto", "openai-dpo"])
def test_the_datasets_library_loads_what_was_written(tmp_path: Path, format: str, monkeypatch: Any) -> None:
    datasets = pytest.importorskip("datasets")
    record(*responses("one", "two"))
    record(*responses("three", "four"), "second")
    rows, _ = exported(tmp_path, format)
    loaded = datasets.load_dataset(
        "json", data_files=str(tmp_path / "out" / "data.jsonl"), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert loaded.column_names == list(rows[0])
    assert len(loaded) == len(rows)


def test_every_format_is_offered() -> None:
    assert list(FORMATS) == ["trl", "trl-conversational", "kto", "openai-dpo", "jsonl", "parquet"]
