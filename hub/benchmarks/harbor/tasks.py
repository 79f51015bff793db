"""Tasks in Harbor's format, read from their folders. Tasks that cannot run here are refused by name."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hub.benchmarks.harbor.installs import Installs, find_installs
from hub.benchmarks.harbor.scripts import solution_script
from hub.benchmarks.harbor.task_files import files_below, get_table, read_file
from hub.benchmarks.harbor.unsupported import find_unsupported, is_built_from_root
from hub.common.errors import UserError
from hub.harnesses.boxes.options import RESERVED

_MAX_DISK_MB = 2048  # of the work folder, which is in memory
_HIDDEN = ("tests", "solution", "task.toml", "instruction.md")


class TaskRefused(Exception):
    """Task that cannot be imported; the message has all reasons."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))


@dataclass(frozen=True, slots=True)
class HarborTask:
    """A task folder and what its environment needs. `solution` is the script of its gold answer, "" without one.

    `labels` are the values of `[metadata]` by which reports group results.
    """

    id: str
    folder: Path
    instruction: str
    workdir: str
    limits: Mapping[str, float]
    installs: Installs
    environment: Mapping[str, str]
    verifier_environment: Mapping[str, str]
    labels: Mapping[str, str | list[str]] = field(default_factory=dict)
    solution: str = ""
    without_solution: str = ""  # the reason
    from_root: bool = False

    def context(self) -> dict[str, Path]:
        """Return the files that its image is built from, by their path: `environment/`, or the task's whole folder.

        The whole folder is without what the agent must not see.
        """
        if not self.from_root:
            return files_below(self.folder / "environment")
        files = {path: file for path, file in files_below(self.folder).items() if path.partition("/")[0] not in _HIDDEN}
        return {**files, "Dockerfile": self.folder / "environment" / "Dockerfile"}


@dataclass(slots=True)
class FoundTasks:
    """Tasks below a folder, and the refused ones with their reasons, by name."""

    tasks: list[HarborTask] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def _earlier_format(path: Path) -> str:
    """Return advice if *path* has tasks of Terminal-Bench, whose format is the one before Harbor's; "" otherwise."""
    if not (path / "task.yaml").is_file() and not any(path.glob("*/task.yaml")):
        return ""
    return " Tasks of Terminal-Bench (task.yaml) are converted by Harbor: harbor tasks migrate -i TASKS -o CONVERTED."


def find_tasks(path: Path) -> FoundTasks:
    """Read the task at *path*, or all tasks in the folder *path*. Raises UserError if there is none."""
    found = FoundTasks()
    if not path.is_dir():
        raise UserError(f"{path}: there is no such folder.")
    folders = [path] if (path / "task.toml").is_file() else sorted(item.parent for item in path.glob("*/task.toml"))
    if not folders:
        advice = _earlier_format(path)
        raise UserError(f"{path}: there is no task.toml here, nor in the folders directly below.{advice}")
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
    """Read one task. Raises TaskRefused with all reasons why it cannot be imported."""
    try:
        config = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TaskRefused(f"task.toml cannot be read: {error}") from None
    environment, verifier = get_table(config, "environment"), get_table(config, "verifier")
    reasons = list(find_unsupported(folder, config, environment, verifier))
    if reasons:
        raise TaskRefused(*reasons)
    installs = find_installs(read_file(folder / "tests" / "test.sh"), "tests/test.sh")
    solving = find_installs(read_file(folder / "solution" / "solve.sh"), "solution/solve.sh")
    reasons += [*installs.problems, *solving.problems]
    if solving and not solving.problems:
        reasons.append("it needs network: solution/solve.sh installs packages")
    workdir = _workdir(folder, environment)
    if not workdir.startswith("/") or "$" in workdir or ":" in workdir:
        reasons.append(f"the work folder {workdir} is not an absolute path")
    elif workdir in RESERVED:
        reasons.append(f"the work folder is {workdir}; only a folder of its own can be changed in a box")
    environments = [get_table(table, "env") for table in (environment, verifier, get_table(config, "solution"))]
    for name, table in zip(("environment.env", "verifier.env", "solution.env"), environments, strict=True):
        if needed := [key for key, value in table.items() if "${" in str(value)]:
            reasons.append(f"it needs variables of the host: {', '.join(needed)} ({name})")
    if reasons:
        raise TaskRefused(*reasons)
    variables, verifier_variables, solution_variables = (
        {key: str(value) for key, value in table.items()} for table in environments
    )
    solution, without = solution_script(folder, solution_variables)
    return HarborTask(
        id=re.sub(r"[^A-Za-z0-9_-]+", "-", folder.resolve().name).strip("-"),
        folder=folder,
        instruction=read_file(folder / "instruction.md"),
        workdir=workdir,
        limits={
            "cpus": _number(environment, "cpus", 1, 0.1, 64),
            "memory_mb": int(_megabytes(environment, "memory", 2048, 65_536)),
            "disk_mb": int(_megabytes(environment, "storage", _MAX_DISK_MB, _MAX_DISK_MB)),
            "build_s": int(_number(environment, "build_timeout_sec", 600, 1, 7200)),
            "agent_s": int(_number(get_table(config, "agent"), "timeout_sec", 1800, 30, 86_400)),
            "verifier_s": int(_number(verifier, "timeout_sec", 600, 1, 3600)),
        },
        installs=installs,
        environment=variables,
        verifier_environment=verifier_variables,
        labels=_labels(config),
        solution=solution,
        without_solution=without,
        from_root=is_built_from_root(folder),
    )


def _labels(config: dict[str, object]) -> dict[str, str | list[str]]:
    metadata = get_table(config, "metadata")
    labels: dict[str, str | list[str]] = {
        key: str(metadata[key]) for key in ("difficulty", "category") if metadata.get(key)
    }
    listed = metadata.get("tags")
    tags = [tag for tag in listed if isinstance(tag, str) and tag] if isinstance(listed, list) else []
    return {**labels, "tags": list(dict.fromkeys(tags))} if tags else labels


def _workdir(folder: Path, environment: dict[str, object]) -> str:
    named = re.findall(r"^\s*WORKDIR\s+\"?([^\s\"]+)", read_file(folder / "environment" / "Dockerfile"), re.M | re.I)
    return str(environment.get("workdir") or (named[-1] if named else "/app")).rstrip("/") or "/"


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
