"""Bytes of every export of a run, compared with files: trainers read these formats, so no key or order may change."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from hub.models import EnvironmentVersion
from runs.exports import RolloutSelection, export_failures, export_responses, export_run_rollouts
from runs.models import Run
from tests.factories import stored_response, stored_run, stored_score
from tests.runs.exports.test_exports import CALL, SCHEMA, imported

pytestmark = pytest.mark.django_db

GOLDEN = Path(__file__).parent / "golden"
TURNS = [
    {"role": "user", "content": "1 + 1? é \ud800"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "2"},
    {"role": "assistant", "content": "<think>two</think>3"},
]


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    gold = [
        {"case": "1", "messages": [{"content": None, "tool_calls": [CALL]}]},
        {"case": "2", "messages": [{"content": "gold"}]},
    ]
    version: EnvironmentVersion = imported(tmp_path / "bundle", gold=gold, harness={"type": "tools", "tools": [SCHEMA]})
    run = stored_run(version, ["alpha", "be/ta"])
    cases = list(version.cases.order_by("position"))
    fields = {"cost_usd": 0.25, "latency_ms": 12, "input_tokens": 7, "output_tokens": 2, "seed": 5, "turns": 2}
    for case in cases[:3]:
        response = stored_response(run, case, "failed", messages=TURNS, text="3", **fields)
        stored_score(response, "answer", 0.0, reason="Expected 2.", detail={"got": "3"})
    stored_response(run, cases[3], "errored", error_kind="timeout")
    passed = stored_response(
        run, cases[0], "passed", model="be/ta", messages=[*TURNS[:1], TURNS[3]], **fields | {"turns": 1}
    )
    stored_score(passed, "answer", 1.0)
    return run


def without_ids(text: str, run: Run) -> str:
    """Replace what differs between databases: ids, digests and times."""
    text = re.sub(rf"run-{run.pk}-response-\d+", "run-RUN-response-ID", text)
    text = re.sub(r'"(run|response|id)": \d+', r'"\1": 0', text)
    text = re.sub(r'"([a-z_]*digest)": "[0-9a-f]+"', r'"\1": "DIGEST"', text)
    return re.sub(rf'"created_at": "{timezone.now().year}[^"]+"', '"created_at": "TIME"', text)


def compare(name: str, text: str) -> None:
    path = GOLDEN / name
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("format", ["sft", "openai", "jsonl"])
def test_failures_have_the_bytes_of_the_golden_file(run: Run, tmp_path: Path, format: str) -> None:
    export_failures(run, tmp_path / "out.jsonl", format=format)
    compare(f"failures-{format}.jsonl", without_ids((tmp_path / "out.jsonl").read_text("utf-8"), run))


def test_rollouts_have_the_bytes_of_the_golden_file(run: Run, tmp_path: Path) -> None:
    export_run_rollouts(run, tmp_path / "out.jsonl", RolloutSelection())
    compare("rollouts.jsonl", _without_ids_and_run((tmp_path / "out.jsonl").read_text("utf-8"), run))


@pytest.mark.parametrize("format", ["sft", "sft-objects", "grpo", "grpo-objects", "atif"])
def test_formats_of_rollouts_have_the_bytes_of_the_golden_files(run: Run, tmp_path: Path, format: str) -> None:
    export_run_rollouts(run, tmp_path / "out.jsonl", RolloutSelection(), format=format)
    compare(f"rollouts-{format}.jsonl", _without_ids_and_run((tmp_path / "out.jsonl").read_text("utf-8"), run))


def _without_ids_and_run(text: str, run: Run) -> str:
    return without_ids(text, run).replace(f'"run-{run.pk}-', '"run-RUN-')


def test_recordings_have_the_bytes_of_the_golden_files(run: Run, tmp_path: Path) -> None:
    report = export_responses(run, tmp_path / "out")
    assert len(report.files) == 2
    for path in report.files:
        compare(f"recordings-{path.name}", path.read_text("utf-8"))
