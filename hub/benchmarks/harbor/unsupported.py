"""Features of Harbor tasks that workspaces do not support: several steps, services, GPUs, BuildKit and others."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from hub.benchmarks.harbor.task_files import files_below, read_file
from hub.harnesses.steps.workspace_files import is_shell_script, script_problem

_ROOT = ("${CONTEXT_DIR}/..", "..")  # contexts of a compose file that mean the task's folder
_BUILDKIT = re.compile(r"^\s*(?:RUN|COPY|ADD)\s.*?(<<-?[\"']?[A-Za-z_]\w*|--mount=|--chmod=|--link\b)", re.I)
_COMPOSE = ("docker-compose.yaml", "docker-compose.yml")
_COMPOSE_KEYS = ("build", "image", "command", "environment", "volumes", "deploy", "init")  # of a task without services


def find_unsupported(
    folder: Path, config: dict[str, object], environment: dict[str, object], verifier: dict[str, object]
) -> Iterator[str]:
    """Yield a clause for each feature of a task that is not supported."""
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
    tests = {f"tests/{name}": path.read_bytes() for name, path in files_below(folder / "tests").items()}
    for name in tests:
        if is_shell_script(name, tests[name]) and (message := script_problem(name, tests)):
            yield message
    for number, line in enumerate(read_file(folder / "environment" / "Dockerfile").splitlines(), 1):
        if used := _BUILDKIT.match(line):
            yield f"it needs BuildKit, which builds here do not use: line {number} of the Dockerfile has {used[1]}"
    for item in sorted(folder.rglob("*")):
        if item.is_symlink():
            yield f"{item.relative_to(folder)} is a link"


def _beyond_box(path: Path) -> str:
    """Return what a compose file requires besides the box of the task, as a clause; "" if it only names that box."""
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


def is_built_from_root(folder: Path) -> bool:
    """Return whether a supported compose file builds the task's whole folder."""
    found = [folder / "environment" / name for name in _COMPOSE if (folder / "environment" / name).exists()]
    return any(_build_context(yaml.safe_load(read_file(path))["services"]["main"]) in _ROOT for path in found)


def _texts(value: object) -> Sequence[str]:
    if isinstance(value, dict):
        return [f"{key}={item}" for key, item in value.items()]
    return [str(item) for item in value] if isinstance(value, list) else []
