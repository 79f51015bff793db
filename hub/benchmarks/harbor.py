"""Tasks in Harbor's format, converted to one bundle of workspaces. Tasks that cannot run here are refused by name."""

import base64
import gzip
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from hub.benchmarks.harbor_installs import STAND_INS, Installs, find_installs
from hub.common.errors import UserError
from sandbox.workspaces.builds import archive

_RESERVED = ("/", "/tmp", "/root", "/usr", "/etc", "/bin", "/lib", "/sbin", "/proc", "/sys", "/dev")  # noqa: S108
_MAX_DISK_MB = 2048  # of the work folder, which is in memory
_SCRIPT = "llmeval-verify.sh"
_MAX_SOLUTION = 60_000  # bytes of a packed solution; a command has at most 100,000
_HIDDEN = ("tests", "solution", "task.toml", "instruction.md")
_ROOT = ("${CONTEXT_DIR}/..", "..")  # contexts of a compose file that mean the task's folder
_BUILDKIT = re.compile(r"^\s*(?:RUN|COPY|ADD)\s.*?(<<-?[\"']?[A-Za-z_]\w*|--mount=|--chmod=|--link\b)", re.I)
_COMPOSE = ("docker-compose.yaml", "docker-compose.yml")
_COMPOSE_KEYS = ("build", "image", "command", "environment", "volumes", "deploy", "init")  # of a task without services
_PYTHON = """
# Boxes need python3.
USER root
RUN command -v python3 || { apt-get update && apt-get install -y python3; } || apk add --no-cache python3
"""
_VERIFY = """#!/bin/bash
mkdir -p /verify/logs
cd "$WORKDIR" || exit 1
"""
# In Harbor, root owns the files and runs the tests, which may change them. Here root has no rights to files of others.
_TAKE_OVER = """as-agent python3 -I -c '
import sys, tarfile
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as tar:
    tar.add(".")
' > /verify/work.tar && as-agent python3 -I -c '
import os, shutil
for entry in os.scandir("."):
    if not entry.is_dir(follow_symlinks=False):
        os.unlink(entry.path)
        continue
    for folder, names, _ in os.walk(entry.path):
        for name in names:
            if not os.path.islink(os.path.join(folder, name)):
                os.chmod(os.path.join(folder, name), 0o700)
        os.chmod(folder, 0o700)
    shutil.rmtree(entry.path)
os.chmod(".", 0o777)
' && python3 -I -c '
import tarfile
with tarfile.open("/verify/work.tar") as tar:
    members = [member for member in tar if member.name != "."]
    for member in members:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
    trusted = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
    tar.extractall(".", members, **trusted)
'
rm -f /verify/work.tar
"""
_RUN_TESTS = """bash /tests/test.sh
code=$?
for name in json txt; do
    if [ -s /logs/verifier/reward.$name ]; then cp /logs/verifier/reward.$name "$REWARD"; exit 0; fi
done
echo "tests/test.sh wrote no reward file"
exit $code
"""
_SOLVE = """# The files of solution/, and a call of its solve.sh.
mkdir -p /tmp/solution
python3 -c 'import base64, io, sys, tarfile
tarfile.open(fileobj=io.BytesIO(base64.b64decode(sys.argv[1]))).extractall("/tmp/solution")' {packed}
exec bash /solution/solve.sh
"""


class TaskRefused(Exception):
    """Task that cannot be imported; the message has all reasons."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))


@dataclass(frozen=True, slots=True)
class HarborTask:
    """A task folder and what its environment needs. `solution` is the script of its gold answer, "" without one."""

    id: str
    folder: Path
    instruction: str
    workdir: str
    limits: Mapping[str, float]
    installs: Installs
    environment: Mapping[str, str]
    verifier_environment: Mapping[str, str]
    solution: str = ""
    without_solution: str = ""  # the reason
    from_root: bool = False

    def context(self) -> dict[str, Path]:
        """Return the files that its image is built from, by their path: `environment/`, or the task's whole folder.

        The whole folder is without what the agent must not see.
        """
        if not self.from_root:
            return _below(self.folder / "environment")
        files = {path: file for path, file in _below(self.folder).items() if path.partition("/")[0] not in _HIDDEN}
        return {**files, "Dockerfile": self.folder / "environment" / "Dockerfile"}


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
    """Read one task. Raises TaskRefused with everything that speaks against it."""
    try:
        config = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TaskRefused(f"task.toml cannot be read: {error}") from None
    environment, verifier = _table(config, "environment"), _table(config, "verifier")
    reasons = list(_unsupported(folder, config, environment, verifier))
    if reasons:
        raise TaskRefused(*reasons)
    installs = find_installs(_read(folder / "tests" / "test.sh"), "tests/test.sh")
    solving = find_installs(_read(folder / "solution" / "solve.sh"), "solution/solve.sh")
    reasons += [*installs.problems, *solving.problems]
    if solving and not solving.problems:
        reasons.append("it needs network: solution/solve.sh installs packages")
    workdir = _workdir(folder, environment)
    if not workdir.startswith("/") or "$" in workdir or ":" in workdir:
        reasons.append(f"the work folder {workdir} is not an absolute path")
    elif workdir in _RESERVED:
        reasons.append(f"the work folder is {workdir}; only a folder of its own can be changed in a box")
    environments = [_table(table, "env") for table in (environment, verifier, _table(config, "solution"))]
    for name, table in zip(("environment.env", "verifier.env", "solution.env"), environments, strict=True):
        if needed := [key for key, value in table.items() if "${" in str(value)]:
            reasons.append(f"it needs variables of the host: {', '.join(needed)} ({name})")
    if reasons:
        raise TaskRefused(*reasons)
    variables, verifier_variables, solution_variables = (
        {key: str(value) for key, value in table.items()} for table in environments
    )
    solution, without = _solution(folder, solution_variables)
    return HarborTask(
        id=re.sub(r"[^A-Za-z0-9_-]+", "-", folder.resolve().name).strip("-"),
        folder=folder,
        instruction=_read(folder / "instruction.md"),
        workdir=workdir,
        limits={
            "cpus": _number(environment, "cpus", 1, 0.1, 64),
            "memory_mb": int(_megabytes(environment, "memory", 2048, 65_536)),
            "disk_mb": int(_megabytes(environment, "storage", _MAX_DISK_MB, _MAX_DISK_MB)),
            "build_s": int(_number(environment, "build_timeout_sec", 600, 1, 7200)),
            "agent_s": int(_number(_table(config, "agent"), "timeout_sec", 1800, 30, 86_400)),
            "verifier_s": int(_number(verifier, "timeout_sec", 600, 1, 3600)),
        },
        installs=installs,
        environment=variables,
        verifier_environment=verifier_variables,
        solution=solution,
        without_solution=without,
        from_root=_is_built_from_root(folder),
    )


def write_bundle(found: FoundTasks, folder: Path, *, slug: str, version: str) -> None:
    """Write the tasks as a bundle into the new or empty *folder*."""
    rows, answers = [], []
    for task in found.tasks:
        for part, files in (("environment", task.context()), ("tests", _below(task.folder / "tests"))):
            for path, source in files.items():
                target = folder / part / task.id / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read_bytes())
        with (folder / "environment" / task.id / "Dockerfile").open("a", encoding="utf-8") as dockerfile:
            dockerfile.write(_added_steps(task))
        (folder / "tests" / task.id / _SCRIPT).write_text(_script(task), encoding="utf-8")
        if task.solution:
            target = folder / "solution" / f"{task.id}.sh"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(task.solution, encoding="utf-8", errors="surrogateescape")
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
                    # Harbor's tests run what the agent wrote with their own rights.
                    **({} if all(map(_uses_as_agent, found.tasks)) else {"trust": "in_process"}),
                }
            ]
        },
        **({"gold": "gold.jsonl"} if answers else {}),
    }
    (folder / "environment.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False), encoding="utf-8")


def _uses_as_agent(task: HarborTask) -> bool:
    return any(b"as-agent" in path.read_bytes() for path in _files(task.folder / "tests"))


def _added_steps(task: HarborTask) -> str:
    """Return what is added to a task's Dockerfile."""
    variables = "".join(f"ENV {key}={json.dumps(value)}\n" for key, value in task.environment.items())
    return "\n" + variables + _PYTHON + (task.installs.dockerfile() if task.installs else "")


def _script(task: HarborTask) -> str:
    """Return the script that runs a task's tests in a scoring box."""
    begin = _VERIFY if _uses_as_agent(task) else _VERIFY + _TAKE_OVER
    return begin + (STAND_INS if task.installs else "") + _exports(task.verifier_environment) + _RUN_TESTS


def _solution(folder: Path, variables: Mapping[str, str]) -> tuple[str, str]:
    """Return the script of the gold answer, or "" and the reason why there is none."""
    script = folder / "solution" / "solve.sh"
    if not script.is_file():
        return "", "it has no solution/solve.sh"
    text = script.read_text(encoding="utf-8", errors="surrogateescape")
    files = list(_files(folder / "solution"))
    if len(files) == 1 and not re.search(r"/solution\b|\$0|BASH_SOURCE", text):
        return _exports(variables) + text, ""
    content = {path: file.read_bytes() for path, file in _below(folder / "solution").items()}
    packed = gzip.compress(archive(content).getvalue(), mtime=0)
    if len(packed) > _MAX_SOLUTION:
        return "", f"the files of its solution have more than {_MAX_SOLUTION:,} bytes, packed"
    return _exports(variables) + _SOLVE.format(packed=base64.b64encode(packed).decode()), ""


def _exports(variables: Mapping[str, str]) -> str:
    return "".join(f"export {key}={shlex.quote(value)}\n" for key, value in variables.items())


def _unsupported(
    folder: Path, config: dict[str, object], environment: dict[str, object], verifier: dict[str, object]
) -> Iterator[str]:
    """Yield what of a task is not supported."""
    if config.get("steps") or (folder / "steps").is_dir():
        yield "it has several steps"
        return  # its files are elsewhere
    for key, what in (("gpus", "a GPU"), ("tpu", "a TPU"), ("skills_dir", "skills"), ("mcp_servers", "MCP servers")):
        if environment.get(key):
            yield f"it needs {what} (environment.{key})"
    if str(environment.get("os", "linux")).lower() != "linux":
        yield f"it needs {environment['os']} (environment.os)"
    if verifier.get("environment"):
        yield "its tests have an image of their own (verifier.environment)"
    for name in _COMPOSE:
        if (folder / "environment" / name).exists() and (more := _beyond_box(folder / "environment" / name)):
            yield f"{more} (environment/{name})"
    for name in ("instruction.md", "environment/Dockerfile", "tests/test.sh"):
        if not (folder / name).is_file():
            yield f"it has no {name}"
    for number, line in enumerate(_read(folder / "environment" / "Dockerfile").splitlines(), 1):
        if used := _BUILDKIT.match(line):
            yield f"it needs BuildKit, which builds here do not use: line {number} of the Dockerfile has {used[1]}"
    for item in sorted(folder.rglob("*")):
        if item.is_symlink():
            yield f"{item.relative_to(folder)} is a link"


def _beyond_box(path: Path) -> str:
    """Return what a compose file asks for besides the box of the task; "" if it only names that box."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8", errors="replace")) or {}
    except yaml.YAMLError:
        return "its compose file cannot be read"
    services = content.get("services") if isinstance(content, dict) else None
    if not isinstance(services, dict) or set(services) != {"main"} or not isinstance(services["main"], dict):
        return "it has services"
    main = services["main"]
    if more := [str(key) for key in main if key not in _COMPOSE_KEYS]:
        return f"it changes the container: {', '.join(more)}"
    if (context := _build_context(main)) not in (".", "${CONTEXT_DIR}", *_ROOT):
        return f"it is built from another folder: {context}"
    build = main.get("build")
    named = str(build.get("dockerfile") or "") if isinstance(build, dict) else ""
    if named not in ("", "Dockerfile", "environment/Dockerfile", "${CONTEXT_DIR}/Dockerfile"):
        return f"it is built by another Dockerfile: {named}"
    if variables := [name for name in _texts(main.get("environment")) if "${" not in name]:
        return f"it sets variables of the container: {', '.join(variables)}"
    if mounted := [volume for volume in _texts(main.get("volumes")) if not volume.startswith("${HOST_")]:
        return f"it mounts folders of the host: {', '.join(mounted)}"
    return ""


def _build_context(main: Mapping[str, object]) -> str:
    build = main.get("build")
    context = build.get("context") if isinstance(build, dict) else build
    return str(context or ".").rstrip("/")


def _is_built_from_root(folder: Path) -> bool:
    """Return whether a supported compose file builds the task's whole folder."""
    found = [folder / "environment" / name for name in _COMPOSE if (folder / "environment" / name).exists()]
    return any(_build_context(yaml.safe_load(_read(path))["services"]["main"]) in _ROOT for path in found)


def _texts(value: object) -> Sequence[str]:
    if isinstance(value, dict):
        return [f"{key}={item}" for key, item in value.items()]
    return [str(item) for item in value] if isinstance(value, list) else []


def _workdir(folder: Path, environment: dict[str, object]) -> str:
    named = re.findall(r"^\s*WORKDIR\s+\"?([^\s\"]+)", _read(folder / "environment" / "Dockerfile"), re.M | re.I)
    return str(environment.get("workdir") or (named[-1] if named else "/app")).rstrip("/") or "/"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _below(folder: Path) -> dict[str, Path]:
    return {str(path.relative_to(folder)): path for path in _files(folder)}


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
