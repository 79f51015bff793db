"""Import of tasks in Harbor's format."""

import json
import shutil
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from hub.benchmarks.harbor.bundle import write_bundle
from hub.benchmarks.harbor.installs import Installs, find_installs
from hub.benchmarks.harbor.tasks import FoundTasks, find_tasks
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
        ({"tests/test.sh": TEST.replace("\n", "\r\n")}, "'tests/test.sh' has line ends of Windows (CRLF)"),
        ({"tests/lib.sh": "set -e\r\n"}, "'tests/lib.sh' has line ends of Windows (CRLF)"),
        (
            {"environment/docker-compose.yaml": "services: {main: {}, db: {}}"},
            "it has services (environment/docker-compose.yaml)",
        ),
        (
            {"environment/docker-compose.yaml": "services: {main: {privileged: true}}"},
            "it changes the container: privileged (environment/docker-compose.yaml)",
        ),
        (
            {"environment/docker-compose.yaml": "services: {main: {build: {context: '${CONTEXT_DIR}/../..'}}}"},
            "it is built from another folder: ${CONTEXT_DIR}/../.. (environment/docker-compose.yaml)",
        ),
        (
            {"environment/docker-compose.yaml": "services: {main: {volumes: ['/data:/data']}}"},
            "it mounts folders of the host: /data:/data (environment/docker-compose.yaml)",
        ),
        (
            {"environment/docker-compose.yaml": "services: {main: {environment: {A: 1, B: '${B}'}}}"},
            "it sets variables of the container: A=1 (environment/docker-compose.yaml)",
        ),
        (
            {"environment/docker-compose.yaml": "services: {main: {build: {dockerfile: Other}}}"},
            "it is built by another Dockerfile: Other (environment/docker-compose.yaml)",
        ),
        ({"tests/test.sh": "curl -LsSf https://x/y | sh\n"}, "line 1 of tests/test.sh: it needs network: `curl`"),
        ({"tests/test.sh": "\nnpm ci\n"}, "line 2 of tests/test.sh: it needs network: `npm`"),
        ({"tests/test.sh": "uv run x\n"}, "line 1 of tests/test.sh: it needs network: `uv run`"),
        ({"tests/test.sh": "pip install $X\n"}, "line 1 of tests/test.sh: it installs $X, which is known only when"),
        ({"tests/test.sh": "pip install -r x\n"}, "line 1 of tests/test.sh: it installs with the option -r"),
        ({"tests/test.sh": "echo 'pip install\n"}, "line 1 of tests/test.sh: it needs network, and cannot be read"),
        ({"solution/solve.sh": "\npip install x\n"}, "it needs network: solution/solve.sh installs packages"),
        (
            {"task.toml": "[environment.env]\nA = '1'\nKEY = '${KEY}'\n"},
            "it needs variables of the host: KEY (environment.env)",
        ),
        (
            {"task.toml": "[verifier.environment]\ncpus = 1\n"},
            "its tests have an image of their own (verifier.environment)",
        ),
        (
            {"task.toml": "[environment]\ngpus = 1\nmcp_servers = ['x']\n"},
            "it needs a GPU (environment.gpus); it needs MCP servers (environment.mcp_servers)",
        ),
        (
            {"environment/Dockerfile": "FROM x\nWORKDIR /app\nRUN cat <<'EOF' > /a\nx\nEOF\n"},
            "it needs BuildKit, which builds here do not use: line 3 of the Dockerfile has <<'EOF",
        ),
        (
            {"environment/Dockerfile": "FROM x\nWORKDIR /app\nCOPY --chmod=755 a b\n"},
            "it needs BuildKit, which builds here do not use: line 3 of the Dockerfile has --chmod=",
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
    with pytest.raises(UserError, match=r"nowhere: there is no such folder"):
        find_tasks(tmp_path / "nowhere")


def test_difficulty_category_and_tags_become_metadata_of_the_case(tmp_path: Path) -> None:
    toml = '[metadata]\ndifficulty = "hard"\ncategory = "security"\ntags = ["a"]\nworkdir = "/other"\n'
    write_task(tmp_path / "tasks" / "one", **{"task.toml": toml})
    write_bundle(find_tasks(tmp_path / "tasks"), tmp_path / "out", slug="tasks", version="1.0.0")
    metadata = json.loads((tmp_path / "out" / "cases.jsonl").read_text())["metadata"]
    assert {key: metadata[key] for key in ("difficulty", "category", "tags", "workdir")} == {
        "difficulty": "hard",
        "category": "security",
        "tags": ["a"],
        "workdir": "/app",
    }


@pytest.mark.parametrize(
    ("tags", "imported"),
    [('["a", "b", "a", ""]', ["a", "b"]), ('[1, true, "x"]', ["x"]), ('"one"', None), ("[]", None)],
)
def test_tags_that_are_not_texts_are_left_out(tmp_path: Path, tags: str, imported: list[str] | None) -> None:
    write_task(tmp_path / "one", **{"task.toml": f"[metadata]\ntags = {tags}\n"})
    [task] = find_tasks(tmp_path).tasks
    assert task.labels.get("tags") == imported


@pytest.mark.parametrize("below", ["", "one"])
def test_tasks_of_terminal_bench_are_reported_with_the_command_that_converts_them(tmp_path: Path, below: str) -> None:
    (tmp_path / below).mkdir(exist_ok=True)
    (tmp_path / below / "task.yaml").write_text("instruction: Greet.\n")
    with pytest.raises(UserError, match=r"task\.yaml.*harbor tasks migrate"):
        find_tasks(tmp_path)


def test_slug_and_version_of_a_written_bundle_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_task(tmp_path / "tasks" / "good")
    arguments = ["import_harbor", str(tmp_path / "tasks"), "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit):
        call_command(*arguments, "--slug", "Not a slug", "--bundle-version", "one")
    printed = capsys.readouterr().err
    assert '(slug): "Not a slug" does not have the required form' in printed
    assert '(version): "one" does not have the required form' in printed
    assert not (tmp_path / "out").exists()


def test_table_names_every_task_and_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_task(tmp_path / "tasks" / "good")
    shutil.rmtree(write_task(tmp_path / "tasks" / "unsolved") / "solution")
    write_task(
        tmp_path / "tasks" / "refused", **{"task.toml": "[environment]\ngpus = 1\n", "environment/Dockerfile": ""}
    )
    (tmp_path / "tasks" / "refused" / "tests" / "test.sh").unlink()
    arguments = ["import_harbor", str(tmp_path / "tasks"), "--slug", "x", "--out"]
    with pytest.raises(SystemExit):
        call_command(*arguments, str(tmp_path / "first"))
    printed = capsys.readouterr()
    assert printed.err.startswith("1 task of ")
    assert printed.out.splitlines() == [
        "  imported  good",
        "  imported  unsolved (without a gold answer: it has no solution/solve.sh)",
        "  refused   refused: it needs a GPU (environment.gpus); it has no tests/test.sh",
        "3 tasks: 2 imported, 1 of them with a gold answer; 1 refused.",
    ]
    with pytest.raises(SystemExit):
        call_command(*arguments, str(tmp_path / "second"), "--json")
    assert json.loads(capsys.readouterr().out) == {
        "imported": ["good", "unsolved"],
        "without_gold_answer": {"unsolved": "it has no solution/solve.sh"},
        "refused": {"refused": "it needs a GPU (environment.gpus); it has no tests/test.sh"},
    }


HARBOR_TEST = """#!/bin/bash
# curl in a comment
apt-get update && apt-get install -y -qq curl git > /dev/null 2>&1 || true
curl -LsSf https://astral.sh/uv/0.9.7/install.sh | sh
source $HOME/.local/bin/env
if ! command -v uvx > /dev/null; then pip3 install --break-system-packages "requests>=2" 2>&1; fi
uvx \\
  -p 3.13 \\
  --with pytest==8.4.1 --with=pytest-json-ctrf==0.3.5 \\
  pytest --ctrf /logs/verifier/ctrf.json $TEST_PATH -rA
curl -s http://localhost:80/health
"""


def test_packages_of_a_test_script_are_installed_in_the_image(tmp_path: Path) -> None:
    compose = "services: {main: {build: {context: '${CONTEXT_DIR}'}, volumes: ['${HOST_LOGS}:/logs']}}"
    settings_ = "[environment.env]\nA = 'a b'\n[verifier.env]\nB = '1 2'\n"
    files = {"tests/test.sh": HARBOR_TEST, "environment/docker-compose.yaml": compose, "task.toml": settings_}
    (task,) = find_tasks(write_task(tmp_path / "t", **files)).tasks
    assert task.installs == Installs(
        apt=["curl", "git"], pip=["requests>=2"], uvx=["pytest==8.4.1", "pytest-json-ctrf==0.3.5"], uses_uv=True
    )
    folder = tmp_path / "bundle"
    folder.mkdir()
    write_bundle(FoundTasks([task]), folder, slug="imported", version="1.0.0")
    dockerfile = (folder / "environment" / "t" / "Dockerfile").read_text()
    assert dockerfile.startswith("FROM x\n")
    assert 'ENV A="a b"\n' in dockerfile
    assert "apt-get install -y curl git\n" in dockerfile
    assert "pip install --no-cache-dir 'requests>=2'\n" in dockerfile
    assert "/opt/llmeval-tests/bin/pip install --no-cache-dir pytest==8.4.1 pytest-json-ctrf==0.3.5\n" in dockerfile
    assert "export B='1 2'\n" in (folder / "tests" / "t" / "llmeval-verify.sh").read_text()
    assert "trust: in_process" in (folder / "environment.yaml").read_text()


def test_compose_file_may_build_the_whole_folder_of_a_task_without_its_tests(tmp_path: Path) -> None:
    compose = "services: {main: {build: {context: '${CONTEXT_DIR}/..', dockerfile: '${CONTEXT_DIR}/Dockerfile'}}}"
    task = write_task(tmp_path / "t", **{"environment/docker-compose.yaml": compose, "app/n.txt": "21\n"})
    folder = tmp_path / "bundle"
    folder.mkdir()
    write_bundle(find_tasks(task), folder, slug="imported", version="1.0.0")
    below = folder / "environment" / "t"
    assert {str(path.relative_to(below)) for path in below.rglob("*") if path.is_file()} == {
        "Dockerfile",
        "app/n.txt",
        "environment/Dockerfile",
        "environment/docker-compose.yaml",
        "environment/n.txt",
    }


def test_tool_of_uvx_is_installed_unless_an_option_names_its_package() -> None:
    def uvx(arguments: str) -> list[str]:
        return find_installs(f"uvx {arguments}", "test.sh").uvx

    assert uvx("pytest x") == ["pytest"]
    assert uvx("pytest@8.4.1 x") == ["pytest==8.4.1"]
    assert uvx("--from 'coverage[toml]==7' coverage run") == ["coverage[toml]==7"]
    assert uvx("-w pytest==8,six pytest -w no") == ["pytest==8", "six"]


@pytest.mark.docker
@pytest.mark.parametrize("workdir", ["/app", pytest.param("/root", marks=pytest.mark.exhaustive)])
def test_imported_task_is_built_and_its_solution_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workdir: str
) -> None:
    monkeypatch.setattr(settings, "WORKSPACE_BUILDS", True)
    task = write_task(tmp_path / "double it", containers.image())
    for name in ("environment/Dockerfile", "tests/check.py", "solution/solve.sh"):
        file = task / name
        file.write_text(file.read_text().replace("/app", workdir))
    found = find_tasks(task)
    folder = tmp_path / "bundle"
    folder.mkdir()
    write_bundle(found, folder, slug="imported", version="1.0.0")
    with open_bundle(folder) as bundle:
        assert validate_bundle(bundle).problems == []
        gates = {gate["name"]: gate for gate in run_gates(bundle, pool=None)["gates"]}
    assert gates["gold"]["failures"] == []
    assert (gates["gold"]["status"], gates["gold"]["checked"]) == ("passed", 1), gates
    assert gates["empty"]["status"] == "passed", gates


# The agent's program has the name of one in the image, and its folder comes first in the image's PATH.
SOLVE = """#!/bin/bash
set -e
n=$(python3 /solution/solve.py)
echo $n > n.txt
mkdir bin notes
echo kept > notes/kept.txt
chmod 600 notes/kept.txt
chmod 500 notes
touch n.sh
printf '#!/bin/sh\\nexit 1\\n' > bin/tool-of-image
chmod 755 bin/tool-of-image
"""


@pytest.mark.exhaustive
@pytest.mark.docker
def test_uvx_of_a_test_script_and_files_of_a_solution_work_without_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Dockerfile makes the virtual environment of the packages, so that the test needs no index of packages."""
    monkeypatch.setattr(settings, "WORKSPACE_BUILDS", True)
    monkeypatch.setattr(Installs, "dockerfile", lambda self: "")
    tool = "mkdir -p /opt/llmeval-tests/bin /opt/tool && ln -s /usr/bin/env /opt/llmeval-tests/bin/python-of-tests"
    tests = """#!/bin/bash
set -e
apt-get update
apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.9.7/install.sh | sh
source $HOME/.local/bin/env
set +e
echo 0 > /logs/verifier/reward.txt
echo changed >> notes/kept.txt && rm n.sh && [ "$(stat -c %a notes/kept.txt notes)" = "600
500" ] || exit 0
uvx -p 3.13 --with pytest==8.4.1 --quiet python-of-tests@1 python3 /tests/check.py
if [ $? -eq 0 ] && [ "$GREETING" = "a b" ] && tool-of-image; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
"""
    image = containers.image()
    task = write_task(
        tmp_path / "double",
        **{
            "task.toml": "[environment]\nmemory_mb = 256\nstorage_mb = 64\n[verifier.env]\nGREETING = 'a b'\n",
            "environment/Dockerfile": f"FROM {image}\nUSER root\nWORKDIR /app\nCOPY n.txt n.txt\nRUN {tool}\n"
            "COPY tool-of-image /opt/tool/tool-of-image\nENV PATH=/app/bin:/opt/tool:$PATH\n",
            "environment/tool-of-image": "#!/bin/sh\nexit 0\n",
            "tests/test.sh": tests,
            "solution/solve.sh": SOLVE,
            "solution/solve.py": "print(int(open('/app/n.txt').read()) * 2)\n",
        },
    )
    folder = tmp_path / "bundle"
    folder.mkdir()
    found = find_tasks(task)
    assert found.tasks[0].installs.uses_uv
    write_bundle(found, folder, slug="imported", version="1.0.0")
    with open_bundle(folder) as bundle:
        assert validate_bundle(bundle).problems == []
        gates = {gate["name"]: gate for gate in run_gates(bundle, pool=None)["gates"]}
    assert gates["gold"]["failures"] == []
    assert (gates["gold"]["status"], gates["gold"]["checked"]) == ("passed", 1), gates
    assert gates["empty"]["status"] == "passed", gates
