"""docs/ci.md: the commands of its pipelines run as written, with recorded models, at night and then for a change."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from django.conf import settings

ROOT: Path = settings.BASE_DIR
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
PIPELINES = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
SINGLE = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).splitlines()

Execute = Callable[[list[str]], list[int]]


def github_commands(event: str) -> list[str]:
    """Return the commands of the steps that are executed for *event*."""
    steps = PIPELINES[0]["jobs"]["evaluate"]["steps"]
    other = "!=" if event == "pull_request" else "=="
    return [step["run"] for step in steps if "run" in step and f"{other} 'pull_request'" not in step.get("if", "")]


def gitlab_commands(job: str) -> list[str]:
    return [*PIPELINES[1][".evaluate"]["before_script"], *PIPELINES[1][job]["script"]]


@pytest.fixture
def execute(tmp_path: Path) -> Execute:
    """Execute commands in a folder like a fresh clone, with nothing else in the environment; return the exit codes."""
    for name in ("manage.py", "configs"):
        (tmp_path / name).symlink_to(ROOT / name)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    variables = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    variables |= {"LLMEVAL_VAR": str(tmp_path / "var"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    variables["CONFIG"] = PIPELINES[0]["env"]["CONFIG"]

    def run(commands: list[str]) -> list[int]:
        return [
            subprocess.run(["bash", "-e", "-c", text], cwd=tmp_path, env=variables, check=False).returncode
            for text in commands
            if text != "make setup"
        ]

    return run


def test_both_pipelines_use_the_same_config_and_commands() -> None:
    assert PIPELINES[0]["env"]["CONFIG"] == PIPELINES[1]["variables"]["CONFIG"]
    steps = PIPELINES[0]["jobs"]["evaluate"]["steps"]
    summary = [step["run"] for step in steps if step.get("name") == "Write the summary"]
    assert github_commands("pull_request") == gitlab_commands("some-cases") + summary
    assert github_commands("schedule") == gitlab_commands("all-cases") + summary
    assert re.search(r"^setup:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.exhaustive
def test_commands_of_the_pipelines_run_as_written(
    tmp_path: Path, execute: Execute, capfd: pytest.CaptureFixture[str]
) -> None:
    assert execute(gitlab_commands("some-cases")) == [0, 1]  # before the first run of the main branch
    assert "No run has the tag main." in capfd.readouterr().err
    for report in tmp_path.glob("report.*"):
        report.unlink()  # each job begins with a new folder
    assert execute(github_commands("schedule")) == [0, 0]
    for report in tmp_path.glob("report.*"):
        report.unlink()
    assert execute(github_commands("pull_request")) == [0, 0, 0]
    assert "GO: accuracy >= -0.1" in capfd.readouterr().out.splitlines()
    suites = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert {suite.get("tests") for suite in suites} == {"40"}
    summary = (tmp_path / "summary").read_text(encoding="utf-8")
    assert summary.count("# eval-v1") == 2 and summary.count("# Comparison") == 1


@pytest.mark.exhaustive
def test_single_commands_run_as_written(execute: Execute) -> None:
    assert len(SINGLE) == 2 and execute(SINGLE) == [0, 0]
