"""Import of tasks in Harbor's format."""

from pathlib import Path

import pytest
from django.conf import settings

from hub.benchmarks.harbor import find_tasks, write_bundle
from hub.bundles.loader import open_bundle
from hub.bundles.validation import validate_bundle
from hub.common.errors import UserError
from hub.gates.runner import run_gates
from tests.sandbox import containers

TEST = """#!/bin/bash
mkdir -p /logs/verifier
if python3 /tests/check.py; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
"""


def write_task(folder: Path, image: str = "x", **files: str) -> Path:
    contents = {
        "task.toml": "[environment]\ncpus = 1\nmemory_mb = 256\nstorage_mb = 64\n[agent]\ntimeout_sec = 60.0\n",
        "instruction.md": "Double the number in n.txt.",
        "environment/Dockerfile": f"FROM {image}\nUSER root\nWORKDIR /app\nCOPY n.txt n.txt\n",
        "environment/n.txt": "21\n",
        "tests/test.sh": TEST,
        "tests/check.py": "import sys; sys.exit(open('/app/n.txt').read().strip() != '42')\n",
        "solution/solve.sh": "#!/bin/bash\nset -e\necho $(( $(cat /app/n.txt) * 2 )) > n.txt\n",
    }
    for path, text in {**contents, **files}.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"task.toml": "[environment]\ngpus = 1\n"}, "it needs a GPU (environment.gpus)"),
        ({"task.toml": '[environment]\nos = "windows"\n'}, "it needs windows (environment.os)"),
        ({"task.toml": "[[steps]]\nname = 'a'\n"}, "it has several steps"),
        ({"task.toml": "[environment]\nskills_dir = '/s'\n"}, "it needs skills (environment.skills_dir)"),
        ({"task.toml": "= 1"}, "task.toml cannot be read: "),
        ({"environment/docker-compose.yaml": ""}, "it has services (environment/docker-compose.yaml)"),
        ({"tests/test.sh": "curl -LsSf https://x/y | sh\n"}, "it needs network: line 1 of tests/test.sh uses `curl`"),
        (
            {"solution/solve.sh": "\npip install x\n"},
            "it needs network: line 2 of solution/solve.sh uses `pip install`",
        ),
        ({"environment/Dockerfile": "FROM x\nWORKDIR /\n"}, "the work folder is /; only a folder"),
    ],
)
def test_tasks_that_cannot_run_are_refused_with_the_reason(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    write_task(tmp_path / "good", **{"tests/test.sh": "curl http://localhost:80\n"})
    write_task(tmp_path / "bad", **files)
    found = find_tasks(tmp_path)
    assert [task.id for task in found.tasks] == ["good"]
    assert found.refused["bad"].startswith(reason)


def test_folder_without_tasks_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no task.toml here"):
        find_tasks(tmp_path)


@pytest.mark.docker
@pytest.mark.xdist_group("workspaces")
def test_imported_task_is_built_and_its_solution_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "WORKSPACE_BUILDS", True)
    found = find_tasks(write_task(tmp_path / "double it", containers.image()))
    folder = tmp_path / "bundle"
    folder.mkdir()
    write_bundle(found, folder, slug="imported", version="1.0.0")
    with open_bundle(folder) as bundle:
        assert validate_bundle(bundle).problems == []
        gates = {gate["name"]: gate for gate in run_gates(bundle, pool=None)["gates"]}
    assert (gates["gold"]["status"], gates["gold"]["checked"]) == ("passed", 1), gates
    assert gates["empty"]["status"] == "passed", gates
