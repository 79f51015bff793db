"""Tasks in Harbor's format, converted to one bundle of workspaces. Tasks that cannot run here are refused by name."""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from hub.common.errors import UserError

_NETWORK = re.compile(
    r"\b(apt-get\s+(?:-\S+\s+)*(?:update|install)|apt\s+(?:update|install)|apk\s+add|pip3?\s+install|uvx"
    r"|npm\s+(?:ci|install)|git\s+clone|curl|wget)\b"
)
_LOCAL = re.compile(r"localhost|127\.0\.0\.1|0\.0\.0\.0")
_RESERVED = ("/", "/tmp", "/root", "/usr", "/etc", "/bin", "/lib", "/sbin", "/proc", "/sys", "/dev")  # noqa: S108
_MAX_DISK_MB = 2048  # of the work folder, which is in memory
_SCRIPT = "llmeval-verify.sh"
_VERIFY = """#!/bin/bash
mkdir -p /verify/logs
cd "$WORKDIR" || exit 1
bash /tests/test.sh
code=$?
for name in json txt; do
    if [ -s /logs/verifier/reward.$name ]; then cp /logs/verifier/reward.$name "$REWARD"; exit 0; fi
done
echo "tests/test.sh wrote no reward file"
exit $code
"""


class TaskRefused(Exception):
    """Task that cannot be imported; the message is the reason."""


@dataclass(frozen=True, slots=True)
class HarborTask:
    """A task folder and what its environment needs."""

    id: str
    folder: Path
    instruction: str
    workdir: str
    limits: dict[str, float]
    has_solution: bool


@dataclass(slots=True)
class FoundTasks:
    """Tasks below a folder, and the refused ones with their reasons, by name."""

    tasks: list[HarborTask] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def find_tasks(path: Path) -> FoundTasks:
    """Read the task at *path*, or all tasks in the folder *path*. Raises UserError if there is none."""
    found = FoundTasks()
    folders = [path] if (path / "task.toml").is_file() else sorted(item.parent for item in path.glob("*/task.toml"))
    if not folders:
        raise UserError(f"{path}: there is no task.toml here, nor in the folders directly below.")
    for folder in folders:
        try:
            task = read_task(folder)
            if any(other.id == task.id for other in found.tasks):
                raise TaskRefused(f"another task has the id {task.id}, too")
            found.tasks.append(task)
        except TaskRefused as error:
            found.refused[folder.resolve().name] = str(error)
    return found


def read_task(folder: Path) -> HarborTask:
    """Read one task. Raises TaskRefused."""
    try:
        config = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TaskRefused(f"task.toml cannot be read: {error}") from None
    environment = _table(config, "environment")
    _check_supported(folder, config, environment)
    for name in ("instruction.md", "environment/Dockerfile", "tests/test.sh"):
        if not (folder / name).is_file():
            raise TaskRefused(f"it has no {name}")
    for name in ("tests/test.sh", "solution/solve.sh"):
        _check_offline(folder, name)
    for item in folder.rglob("*"):
        if item.is_symlink():
            raise TaskRefused(f"{item.relative_to(folder)} is a link")
    solution = folder / "solution" / "solve.sh"
    alone = solution.is_file() and len(list((folder / "solution").iterdir())) == 1
    return HarborTask(
        id=re.sub(r"[^A-Za-z0-9_-]+", "-", folder.resolve().name).strip("-"),
        folder=folder,
        instruction=(folder / "instruction.md").read_text(encoding="utf-8", errors="replace"),
        workdir=_workdir(folder, environment),
        limits={
            "cpus": _number(environment, "cpus", 1, 0.1, 64),
            "memory_mb": int(_megabytes(environment, "memory", 2048, 65_536)),
            "disk_mb": int(_megabytes(environment, "storage", _MAX_DISK_MB, _MAX_DISK_MB)),
            "build_s": int(_number(environment, "build_timeout_sec", 600, 1, 7200)),
            "agent_s": int(_number(_table(config, "agent"), "timeout_sec", 1800, 30, 86_400)),
            "verifier_s": int(_number(_table(config, "verifier"), "timeout_sec", 600, 1, 3600)),
        },
        has_solution=alone,
    )


def write_bundle(found: FoundTasks, folder: Path, *, slug: str, version: str) -> None:
    """Write the tasks as a bundle into the new or empty *folder*."""
    rows, answers = [], []
    for task in found.tasks:
        for part in ("environment", "tests"):
            for path in _files(task.folder / part):
                target = folder / part / task.id / path.relative_to(task.folder / part)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
        (folder / "tests" / task.id / _SCRIPT).write_text(_VERIFY, encoding="utf-8")
        if task.has_solution:
            target = folder / "solution" / f"{task.id}.sh"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((task.folder / "solution" / "solve.sh").read_bytes())
            answers.append({"case": task.id, "script": f"solution/{task.id}.sh"})
        rows.append(
            {"id": task.id, "input": task.instruction, "metadata": {"workdir": task.workdir, **task.limits}},
        )
    (folder / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    if answers:
        (folder / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers), encoding="utf-8")
    manifest = {
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
                }
            ]
        },
        **({"gold": "gold.jsonl"} if answers else {}),
    }
    (folder / "environment.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False), encoding="utf-8")


def _check_supported(folder: Path, config: dict[str, object], environment: dict[str, object]) -> None:
    if config.get("steps") or (folder / "steps").is_dir():
        raise TaskRefused("it has several steps")
    for key, what in (("gpus", "a GPU"), ("tpu", "a TPU"), ("skills_dir", "skills"), ("mcp_servers", "MCP servers")):
        if environment.get(key):
            raise TaskRefused(f"it needs {what} (environment.{key})")
    if str(environment.get("os", "linux")).lower() != "linux":
        raise TaskRefused(f"it needs {environment['os']} (environment.os)")
    for name in ("docker-compose.yaml", "docker-compose.yml"):
        if (folder / "environment" / name).exists():
            raise TaskRefused(f"it has services (environment/{name})")


def _check_offline(folder: Path, name: str) -> None:
    path = folder / name
    if not path.is_file():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        used = _NETWORK.search(line)
        if used and not line.lstrip().startswith("#") and not _LOCAL.search(line):
            raise TaskRefused(f"it needs network: line {number} of {name} uses `{used[1].strip()}`")


def _workdir(folder: Path, environment: dict[str, object]) -> str:
    text = (folder / "environment" / "Dockerfile").read_text(encoding="utf-8", errors="replace")
    named = re.findall(r"^\s*WORKDIR\s+\"?([^\s\"]+)", text, re.M | re.I)
    workdir = str(environment.get("workdir") or (named[-1] if named else "/app")).rstrip("/") or "/"
    if not workdir.startswith("/") or "$" in workdir or ":" in workdir:
        raise TaskRefused(f"the work folder {workdir} is not an absolute path")
    if workdir in _RESERVED:
        raise TaskRefused(f"the work folder is {workdir}; only a folder of its own can be changed in a box")
    return workdir


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _table(config: dict[str, object], key: str) -> dict[str, object]:
    value = config.get(key)
    return value if isinstance(value, dict) else {}


def _number(table: dict[str, object], key: str, default: float, low: float, high: float) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TaskRefused(f"{key} in task.toml must be a number")
    return min(max(value, low), high)


def _megabytes(table: dict[str, object], key: str, default: float, high: float) -> float:
    text = table.get(key)
    if isinstance(text, str):  # the older spelling, such as 4G
        units = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG])i?B?", text.strip(), re.I)
        if match is None:
            raise TaskRefused(f"{key} in task.toml must be a size such as 4G")
        return min(max(float(match[1]) * units[match[2].upper()], 32), high)
    return _number(table, f"{key}_mb", default, 32, high)
