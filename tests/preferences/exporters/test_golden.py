"""Bytes of every export of preferences, compared with files: trainers read them, so no key or order may change."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from preferences.exporters import FORMATS, export_preferences
from preferences.models import Preference
from preferences.selectors import current_preferences
from tests.preferences.exporters.test_exports import record, responses

pytestmark = pytest.mark.django_db

GOLDEN = Path(__file__).parent / "golden"


def without_ids(text: str) -> str:
    """Replace what differs between databases: ids and times."""
    text = re.sub(r'"(run|response|id|suggestion)": \d+', r'"\1": 0', text)
    text = re.sub(r'\\"(run|response|id|suggestion)\\": \d+', r'\\"\1\\": 0', text)
    return re.sub(r'"created_at": "20\d\d-[^"]+"', '"created_at": "TIME"', text)


def read(path: Path) -> str:
    if path.suffix == ".parquet":  # its bytes depend on the release of pyarrow
        return "".join(json.dumps(row) + "\n" for row in pq.read_table(path).to_pylist())
    return path.read_text("utf-8")


@pytest.fixture(autouse=True)
def only_critiques(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out other fields of decisions: tests/review/test_decision_fields.py finds each of them in the exports."""
    monkeypatch.setattr(Preference, "DECISION_FIELDS", ("critique",))


@pytest.mark.parametrize("format", list(FORMATS))
def test_exports_match_golden_files(tmp_path: Path, format: str) -> None:
    record(*responses("one é", "two\u2028"), "second")
    record(*responses("three", "four", statuses="pf"), by="judge")
    record(*responses("five", "six"), "tie")
    record(*responses("<think>only</think>", "seven"))
    written = export_preferences(current_preferences(), tmp_path / "out", format=format)
    found = {path.name: read(path) for path in written.files if path.name != "README.md"}
    for name, text in found.items():
        golden = GOLDEN / format / f"{name.removesuffix('.parquet')}.txt"
        assert without_ids(text) == golden.read_text("utf-8"), name
