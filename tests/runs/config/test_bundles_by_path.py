"""Bundles that a config names by path: they are checked once, and stored when a run is created."""

import os
import weakref
from pathlib import Path
from typing import Any

import pytest

from hub.bundles import checked
from hub.bundles.loader import open_bundle
from hub.models import Case, Environment
from runs.config.parsed import ConfigError
from runs.config.resolve import SelectedEnvironment
from runs.services import create_run
from tests.runs.capitals import CAPITALS, config_text, load, write_bundle
from tests.runs.config.resolution import find_environments

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_bundle(tmp_path / "capitals")
    return tmp_path


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The digest of each bundle that is checked."""
    digests: list[str] = []
    bundle_problems = checked.bundle_problems

    def count(bundle: Any, **options: Any) -> Any:
        digests.append(bundle.digest)
        return bundle_problems(bundle, **options)

    monkeypatch.setattr(checked, "bundle_problems", count)
    return digests


def find(folder: Path, **environment: Any) -> list[SelectedEnvironment]:
    text = config_text("http://127.0.0.1:9/v1", environments=[{"path": "capitals", **environment}])
    return find_environments(load(folder, text))


def start(folder: Path, found: list[SelectedEnvironment]) -> None:
    create_run(config=load(folder, config_text("http://127.0.0.1:9/v1")), environments=found)


def test_bundle_is_checked_once_and_not_again_when_it_is_stored(folder: Path, checks: list[str]) -> None:
    found = find(folder)
    assert len(checks) == 1 and not Environment.objects.exists()
    start(folder, found)
    assert list(Case.objects.order_by("position").values_list("external_id", flat=True)) == list(
        map(str.lower, CAPITALS)
    )
    start(folder, find(folder))
    assert len(checks) == 1 and Case.objects.count() == len(CAPITALS)


def test_changed_bundle_whose_version_was_not_raised_is_a_problem_of_the_config(folder: Path) -> None:
    start(folder, find(folder))
    with (folder / "capitals" / "cases.jsonl").open("a") as rows:
        rows.write('{"id": "chile", "country": "Chile", "capital": "Santiago"}\n')
    with pytest.raises(ConfigError, match=r"environments\[0\]\.path: capitals: .* Raise `version`"):
        find(folder)


@pytest.mark.parametrize("stored", [False, True])
def test_cases_are_selected_whether_or_not_the_bundle_is_stored(folder: Path, stored: bool) -> None:
    if stored:
        start(folder, find(folder))
    assert [item.case_positions for item in find(folder, cases=["cuba", "japan"])] == [[1, 5]]
    assert [(item.count, item.case_positions) for item in find(folder, limit=4)] == [(4, None)]
    assert [(item.count, item.case_positions) for item in find(folder, sample=2)] == [(2, [2, 4])]
    assert [(item.count, item.case_positions) for item in find(folder, sample=20)] == [(6, None)]


def test_bundle_that_changes_before_it_is_stored_is_read_again(folder: Path, checks: list[str]) -> None:
    found = find(folder)
    with (folder / "capitals" / "cases.jsonl").open("a") as rows:
        rows.write('{"id": "chile", "country": "Chile", "capital": "Santiago"}\n')
    start(folder, found)
    assert len(set(checks)) == 2
    assert Case.objects.filter(external_id="chile").exists()


def test_file_of_the_cases_is_closed_once_nobody_uses_them(folder: Path) -> None:
    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = open_files()
    with open_bundle(folder / "capitals") as bundle:
        cases = checked.CheckedCases(bundle)
    assert open_files() == before + 1 and cases.ids() == cases.ids() == list(map(str.lower, CAPITALS))
    gone = weakref.ref(cases)
    del cases
    assert gone() is None and open_files() == before
