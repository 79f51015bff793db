"""Export of workspaces in Harbor's format: an import of the result scores the same."""

import io
import json
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.core.management import call_command

from hub.benchmarks.harbor.bundle import write_bundle
from hub.benchmarks.harbor.export import write_tasks
from hub.benchmarks.harbor.tasks import find_tasks
from hub.bundles.loader import open_bundle
from hub.common.errors import UserError
from hub.gates.runner import run_gates
from tests.commands import run_command
from tests.sandbox import containers

CATALOG = settings.BASE_DIR / "hub" / "catalog"


def write_environment(folder: Path, image: str = "x", **harness: object) -> Path:
    manifest = {
        "spec": 1,
        "slug": "greeting",
        "version": "1.0.0",
        "title": "Greeting",
        "summary": "Greets.",
        "category": "tool-use",
        "dataset": {"path": "cases.jsonl"},
        "harness": {"type": "workspace", "image": image, "setup": "setup/{{ id }}.sh", **harness},
        "scoring": {"rules": [{"type": "workspace_script", "path": "tests/{{ id }}.sh"}]},
        "gold": {"script": "solution/{{ id }}.sh"},
    }
    files = {
        "environment.yaml": yaml.safe_dump(manifest),
        "cases.jsonl": json.dumps({"id": "hello", "input": "Greet.", "files": {"greeting.txt": "Hello"}}) + "\n",
        "setup/hello.sh": "printf 'Ann\\n' > names.txt\n",
        "tests/hello.sh": 'found=$(as-agent sh ./greet.sh)\n[ "$found" = "Hello Ann" ] || { echo "$found"; exit 1; }\n',
        "solution/hello.sh": "echo 'echo \"$(cat greeting.txt) $(cat names.txt)\"' > greet.sh\n",
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def test_command_writes_a_task_with_all_its_files(tmp_path: Path) -> None:
    out = tmp_path / "tasks"
    printed = io.StringIO()
    folder = write_environment(tmp_path / "bundle")
    call_command("export_harbor", str(folder), output=str(out), json=True, stdout=printed)
    assert json.loads(printed.getvalue()) == {"written": ["hello"], "refused": {}}
    names = {str(path.relative_to(out / "hello")) for path in out.rglob("*") if path.is_file()}
    assert {"task.toml", "instruction.md", "environment/Dockerfile", "tests/test.sh", "solution/solve.sh"} <= names
    assert [task.id for task in find_tasks(out).tasks] == ["hello"]


def test_labels_of_a_case_are_written_and_imported_again(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "bundle")
    metadata = {"difficulty": 'schwer, "größer"', "category": "security", "tags": ["a", "b"], "other": "x"}
    row = json.loads((folder / "cases.jsonl").read_text())
    lines = [{**row, "metadata": metadata}, {**row, "id": "plain", "metadata": {"difficulty": 3, "tags": "a"}}]
    (folder / "cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for part in ("setup", "tests", "solution"):
        (folder / part / "plain.sh").write_bytes((folder / part / "hello.sh").read_bytes())
    run_command("export_harbor", folder, "--output", tmp_path / "tasks")
    written = [tomllib.loads((tmp_path / "tasks" / name / "task.toml").read_text()) for name in ("hello", "plain")]
    assert [item["metadata"] for item in written] == [
        {"source": "greeting@1.0.0", "case": "hello", "category": "security"}
        | {"difficulty": 'schwer, "größer"', "tags": ["a", "b"]},
        {"source": "greeting@1.0.0", "case": "plain", "category": "tool-use"},
    ]
    labels = {task.id: task.labels for task in find_tasks(tmp_path / "tasks").tasks}
    assert labels["hello"] == {"difficulty": 'schwer, "größer"', "category": "security", "tags": ["a", "b"]}


def test_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "bundle")
    (tmp_path / "file").touch()
    said = run_command("export_harbor", folder, "--output", tmp_path / "file" / "tasks", code=2)
    assert said == f"{tmp_path}/file/tasks cannot be created: not a directory.\n"


def test_no_folder_is_left_if_all_cases_are_refused(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "bundle", network={"allow": ["pypi.org"]})
    said = run_command("export_harbor", folder, "--output", tmp_path / "tasks", code=2)
    assert "refused  hello: network" in said and "No case could be written." in said
    assert not (tmp_path / "tasks").exists()


@pytest.mark.parametrize(
    ("harness", "reason"),
    [
        ({"services": [{"name": "db", "image": "postgres:17"}]}, "services"),
        ({"network": {"allow": ["pypi.org"]}}, "network"),
        ({"artifacts": ["/app/greet.sh"]}, "artifacts other than the work folder"),
    ],
)
def test_what_harbor_cannot_express_is_refused_by_name(tmp_path: Path, harness: dict[str, object], reason: str) -> None:
    with open_bundle(write_environment(tmp_path / "bundle", **harness)) as bundle:
        assert write_tasks(bundle, tmp_path / "tasks").refused == {"hello": reason}


def test_packages_are_refused_by_name(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "bundle")
    with (folder / "environment.yaml").open("a") as manifest:
        manifest.write("\npackages: [numpy]\n")
    with open_bundle(folder) as bundle:
        assert write_tasks(bundle, tmp_path / "tasks").refused == {"hello": "packages"}


@pytest.mark.parametrize(
    ("script", "step"),
    [("ls\n", "RUN sh /llmeval-setup.sh"), ("#!/usr/bin/env python3\nprint()\n", "RUN /llmeval-setup.sh")],
)
def test_setup_is_run_by_the_program_of_its_first_line(tmp_path: Path, script: str, step: str) -> None:
    folder = write_environment(tmp_path / "bundle")
    (folder / "setup" / "hello.sh").write_text(script)
    with open_bundle(folder) as bundle:
        write_tasks(bundle, tmp_path / "tasks")
    assert step in (tmp_path / "tasks" / "hello" / "environment" / "Dockerfile").read_text().splitlines()


def test_setup_with_effects_that_an_image_does_not_keep_is_refused(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "bundle")
    (folder / "setup" / "hello.sh").write_text("sleep 100 &\n")
    with open_bundle(folder) as bundle:
        assert "its setup uses `&`" in write_tasks(bundle, tmp_path / "tasks").refused["hello"]


def test_script_may_have_any_file_name(tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "bundle")
    (folder / "tests" / "hello.sh").rename(folder / "tests" / "it's the test.sh")
    manifest = (folder / "environment.yaml").read_text().replace("tests/{{ id }}.sh", "tests/it's the test.sh")
    (folder / "environment.yaml").write_text(manifest)
    with open_bundle(folder) as bundle:
        assert write_tasks(bundle, tmp_path / "tasks").written == ["hello"]
    script, named = (tmp_path / "tasks" / "hello" / "tests" / "test.sh").read_text(), "/tests/it's the test.sh"
    assert f"script={shlex.quote(named)}" in script.splitlines()


def test_environment_without_workspaces_is_refused(tmp_path: Path) -> None:
    with open_bundle(CATALOG / "word-problems") as bundle, pytest.raises(UserError, match="only workspaces"):
        write_tasks(bundle, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.docker
def test_imported_export_scores_gold_1_and_untouched_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "WORKSPACE_BUILDS", True)
    with open_bundle(write_environment(tmp_path / "bundle", containers.image())) as bundle:
        assert write_tasks(bundle, tmp_path / "tasks").written == ["hello"]
    again = tmp_path / "again"
    again.mkdir()
    write_bundle(find_tasks(tmp_path / "tasks"), again, slug="again", version="1.0.0")
    with open_bundle(again) as bundle:
        gates = {gate["name"]: gate for gate in run_gates(bundle, pool=None)["gates"]}
    assert {name: gates[name]["status"] for name in ("gold", "empty")} == {"gold": "passed", "empty": "passed"}, gates
    assert gates["gold"]["checked"] == 1
