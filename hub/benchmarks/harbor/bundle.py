"""The bundle of imported tasks: a workspace environment with one case for each task."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from hub.benchmarks.harbor.scripts import verify_script
from hub.benchmarks.harbor.task_files import files_below, files_in
from hub.benchmarks.harbor.tasks import FoundTasks, HarborTask

_SCRIPT = "llmeval-verify.sh"
_PYTHON = """
# Boxes need python3.
USER root
RUN command -v python3 || { apt-get update && apt-get install -y python3; } || apk add --no-cache python3
"""


def write_bundle(found: FoundTasks, folder: Path, *, slug: str, version: str) -> None:
    """Write the tasks as a bundle into the new or empty *folder*."""
    for task in found.tasks:
        _write_files(task, folder)
    answers = [{"case": task.id, "script": _solution_path(task)} for task in found.tasks if task.solution]
    _write_lines(folder / "cases.jsonl", [_row(task) for task in found.tasks])
    if answers:
        _write_lines(folder / "gold.jsonl", answers)
    manifest = _manifest(found.tasks, slug=slug, version=version, has_solutions=bool(answers))
    (folder / "environment.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False), encoding="utf-8")


def _write_files(task: HarborTask, folder: Path) -> None:
    """Write the context of the image, the tests and the solution of *task*."""
    for part, files in (("environment", task.context()), ("tests", files_below(task.folder / "tests"))):
        for path, source in files.items():
            target = folder / part / task.id / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    with (folder / "environment" / task.id / "Dockerfile").open("a", encoding="utf-8") as dockerfile:
        dockerfile.write(_added_steps(task))
    (folder / "tests" / task.id / _SCRIPT).write_text(
        verify_script(task.verifier_environment, as_agent=_uses_as_agent(task), installs=bool(task.installs)),
        encoding="utf-8",
    )
    if task.solution:
        target = folder / _solution_path(task)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(task.solution, encoding="utf-8", errors="surrogateescape")


def _solution_path(task: HarborTask) -> str:
    return f"solution/{task.id}.sh"


def _row(task: HarborTask) -> dict[str, object]:
    """Return the row of the dataset with *task*."""
    metadata = {**task.labels, "workdir": task.workdir, **task.limits}
    return {"id": task.id, "input": task.instruction, "metadata": metadata}


def _write_lines(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _manifest(tasks: Sequence[HarborTask], *, slug: str, version: str, has_solutions: bool) -> dict[str, object]:
    """Return the content of environment.yaml."""
    return {
        "spec": 1,
        "slug": slug,
        "version": version,
        "title": slug.replace("-", " ").capitalize(),
        "summary": "Tasks imported from Harbor's format; each runs in a box of its own image.",
        "category": "tool-use",
        "dataset": {"path": "cases.jsonl"},
        "harness": {
            "type": "workspace",
            "build": "environment/{{ id }}/",
            "workdir": "{{ metadata.workdir }}",
            "max_turns": 100,
            "max_calls": 300,
            "call_seconds": 300,
            "tool_seconds": 3600,
            "limits": {
                **{key: f"{{{{ metadata.{key} }}}}" for key in ("cpus", "memory_mb", "disk_mb", "build_s")},
                "episode_s": "{{ metadata.agent_s }}",
            },
        },
        "scoring": {
            "rules": [
                {
                    "name": "tests",
                    "type": "workspace_script",
                    "path": f"tests/{{{{ id }}}}/{_SCRIPT}",
                    "files": "tests/{{ id }}",
                    "reward": "reward.json",
                    "timeout_s": "{{ metadata.verifier_s }}",
                    # Harbor's tests run the agent's programs with the rights of the tests.
                    **({} if all(map(_uses_as_agent, tasks)) else {"trust": "in_process"}),
                }
            ]
        },
        **({"gold": "gold.jsonl"} if has_solutions else {}),
    }


def _uses_as_agent(task: HarborTask) -> bool:
    return any(b"as-agent" in path.read_bytes() for path in files_in(task.folder / "tests"))


def _added_steps(task: HarborTask) -> str:
    """Return what is added to a task's Dockerfile."""
    variables = "".join(f"ENV {key}={json.dumps(value)}\n" for key, value in task.environment.items())
    return "\n" + variables + _PYTHON + (task.installs.dockerfile() if task.installs else "")
