"""Workspace environments of the catalogue: solutions score, wrong and empty answers do not, in boxes of this source."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from hub.bundles.loader import open_bundle
from hub.gates.runner import run_gates
from hub.management.commands.load_catalog import CATALOG
from tests.sandbox import containers

SAMPLED = 1  # cases of an environment in the default suite; the exhaustive tests take all of them


def _manifest(folder: Path) -> dict[str, object]:
    manifest: dict[str, object] = yaml.safe_load((folder / "environment.yaml").read_text(encoding="utf-8"))
    return manifest


def _is_workspace(folder: Path) -> bool:
    harness = _manifest(folder).get("harness")
    return isinstance(harness, dict) and harness.get("type") == "workspace"


FOLDERS = sorted(path.parent for path in CATALOG.glob("*/environment.yaml") if _is_workspace(path.parent))
named = pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def failures(folder: Path, cases: list[str], target: Path) -> list[object]:
    """Run the gates on *cases* of the bundle and return what failed."""
    shutil.copytree(folder, target)
    text = (target / "environment.yaml").read_text(encoding="utf-8")
    image = yaml.safe_load(text)["harness"]["image"]
    (target / "environment.yaml").write_text(text.replace(f"image: {image}", f"image: {containers.image()}"))
    for name, key in (("cases.jsonl", "id"), ("wrong.jsonl", "case")):
        selected = [row for row in rows(target / name) if row[key] in cases]
        (target / name).write_text("".join(json.dumps(row) + "\n" for row in selected), encoding="utf-8")
    with open_bundle(target) as bundle:
        gates = run_gates(bundle, pool=None)["gates"]
    assert {gate["name"]: gate["checked"] for gate in gates}["gold"] == len(cases)
    return [failure for gate in gates for failure in gate["failures"]]


@named
def test_every_case_has_a_wrong_answer_with_its_reason_and_metadata(folder: Path) -> None:
    wrong = rows(folder / "wrong.jsonl")
    assert {row["case"] for row in wrong} == {row["id"] for row in rows(folder / "cases.jsonl")}
    assert all(row["why"] for row in wrong)
    for row in rows(folder / "cases.jsonl"):
        metadata = row["metadata"]
        assert isinstance(metadata, dict) and metadata["skill"] and metadata["difficulty"] in ("easy", "medium", "hard")


@named
def test_no_script_of_the_bundle_is_left_over(folder: Path) -> None:
    ids = {row["id"] for row in rows(folder / "cases.jsonl")}
    assert {path.stem for path in (folder / "solution").iterdir()} == ids
    named_scripts = {row["script"] for row in rows(folder / "wrong.jsonl") if "script" in row}
    assert {f"wrong/{path.name}" for path in (folder / "wrong").iterdir()} == named_scripts


@named
def test_no_model_can_forge_a_score(folder: Path) -> None:
    with open_bundle(folder) as bundle:
        assert bundle.compile(bundle.manifest).forgeable_rules == []


@pytest.mark.docker
@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(path, id=path.name, marks=[] if path.name == "shell-tasks" else [pytest.mark.exhaustive])
        for path in FOLDERS
    ],
)
def test_sampled_solutions_score_and_wrong_answers_do_not(folder: Path, tmp_path: Path) -> None:
    ids = [str(row["id"]) for row in rows(folder / "cases.jsonl")]
    assert failures(folder, ids[3 :: len(ids) // SAMPLED][:SAMPLED], tmp_path / "bundle") == []


@pytest.mark.docker
@pytest.mark.exhaustive
@pytest.mark.release
@named
def test_all_solutions_score_and_wrong_answers_do_not(folder: Path, tmp_path: Path) -> None:
    assert failures(folder, [str(row["id"]) for row in rows(folder / "cases.jsonl")], tmp_path / "bundle") == []
