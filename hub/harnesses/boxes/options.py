"""Options of the harness `workspace`, and the problems of a manifest's values for them."""

import posixpath
import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from hub.common.problems import Problem
from hub.harnesses.steps.tool_loop import ToolLoopOptions
from hub.harnesses.steps.workspace_files import code_of, folder_of, script_problem, unknown_folder
from hub.manifest.schema import check_relative
from sandbox.workspaces.base import PACKAGES

_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")  # folders of programs, in / and in /usr
RESERVED = (
    *("/", "/tmp", "/verify", "/proc", "/sys", "/dev", "/usr", "/etc", PACKAGES),  # noqa: S108
    *(f"{above}/{name}" for above in ("", "/usr") for name in _SYSTEM),
)
_ONE_IMAGE = "give either `image`, a Docker image, or `build`, a folder of the bundle with a Dockerfile"
_PROGRAM = "`program`, a file of the bundle, and `policy: program` belong together"
SNAPSHOT_MB = 128
_NO_SNAPSHOTS = "`snapshot_turns` cannot be used with {}, whose state no snapshot has; leave it out"
_UNSUPPORTED = {
    "mcp": "the tools are bash, read, write and edit",
}


class WorkspaceLimits(BaseModel):
    """Limits of a workspace.

    `cpus`, `memory_mb`, `pids` and `disk_mb` are those of the box, and `episode_s` is that of its use. `output_kb`: the
    output of a command. `build_s`: building the image. `snapshot_mb`: the files of a snapshot.
    """

    model_config = ConfigDict(extra="forbid")
    cpus: Annotated[float, Field(gt=0, le=64)] = 1.0
    memory_mb: Annotated[int, Field(ge=32, le=65_536)] = 512
    pids: Annotated[int, Field(ge=16, le=4096)] = 256
    disk_mb: Annotated[int, Field(ge=1, le=16_384)] = 256
    episode_s: Annotated[int, Field(ge=30, le=86_400)] = 1800
    output_kb: Annotated[int, Field(ge=1, le=1024)] = 16
    build_s: Annotated[int, Field(ge=1, le=7200)] = 900
    # Left out of digests if it is not given, so that digests of existing cases do not change.
    snapshot_mb: Annotated[int, Field(ge=1, le=1024, exclude_if=lambda value: value == SNAPSHOT_MB)] = SNAPSHOT_MB


class NetworkOptions(BaseModel):
    """Network of a box. `allow`: names of hosts that programs in it may connect to, with a port if it is not 443."""

    model_config = ConfigDict(extra="forbid")
    allow: Annotated[list[str], Field(min_length=1, max_length=100)]

    @field_validator("allow")
    @classmethod
    def _hosts(cls, value: list[str]) -> list[str]:
        for host in value:
            if not re.fullmatch(r"(?=.{1,253}(:|$))[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]{1,5})?", host):
                raise ValueError(f"{host!r} is not the name of a host in lower case, such as pypi.org or pypi.org:443")
        return [host if ":" in host else f"{host}:443" for host in value]


class ServiceOptions(BaseModel):
    """Service that a box reaches by its `name`: a container of `image`.

    `env` and `user` are those of its processes. `healthcheck` is a shell command that succeeds within `start_s`.
    `writable`: folders that it may write to besides the image's volumes.
    """

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,30}$")]
    image: Annotated[str, Field(min_length=1)]
    env: dict[str, str] = {}
    healthcheck: str = ""
    start_s: Annotated[float, Field(ge=1, le=600)] = 60.0
    user: str = ""
    writable: list[str] = []

    @field_validator("name")
    @classmethod
    def _free(cls, value: str) -> str:
        if value in ("localhost", "workspace", "egress-proxy"):
            raise ValueError(f"{value!r} is a name of the box itself; give the service another name")
        return value

    @field_validator("writable")
    @classmethod
    def _folders(cls, value: list[str]) -> list[str]:
        for path in value:
            _check_absolute(path)
        return value


class WorkspaceOptions(ToolLoopOptions):
    """Options of `workspace`.

    `image`: the Docker image of the box; it needs python3. `build`: instead, a folder of the bundle with a Dockerfile.
    `workdir`: the folder that the model works in; at first it has the case's files. `user`: the number of the user that
    commands run as. `setup`: a script of the bundle that prepares the work folder. `policy`: `model` (the model calls
    the tools) or `program` (the file `program` of the bundle runs in the box and requests the model). `tools`: those
    that the model gets. `network`: `none`, or the hosts that may be reached. `snapshot_turns`: the files of the box are
    stored each time after this number of turns; 0 for never. `services`: containers that the box reaches by name.
    `artifacts`: the files and folders that scoring sees.
    """

    image: str = ""
    build: str = ""
    workdir: str = "/app"
    user: Annotated[int, Field(ge=1, le=65_533)] = 1000
    setup: str = ""
    tools: Annotated[list[Literal["bash", "read", "write", "edit"]], Field(min_length=1)] = [
        "bash",
        "read",
        "write",
        "edit",
    ]
    policy: Literal["model", "program"] = "model"
    program: str = ""
    network: NetworkOptions | None = None
    services: Annotated[list[ServiceOptions], Field(max_length=8)] = []
    limits: WorkspaceLimits = WorkspaceLimits()
    artifacts: list[str] = []
    snapshot_turns: Annotated[int, Field(ge=0, le=1000, exclude_if=lambda value: value == 0)] = 0
    call_seconds: Annotated[float, Field(ge=0.1, le=600)] = 60.0
    tool_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 1200.0

    @model_validator(mode="before")
    @classmethod
    def _unsupported(cls, values: object) -> object:
        named = [key for key in _UNSUPPORTED if isinstance(values, Mapping) and values.get(key) is not None]
        if named:
            raise ValueError("; ".join(f"`{key}` is not supported: {_UNSUPPORTED[key]}" for key in named))
        return values

    @model_validator(mode="after")
    def _program_of_policy(self) -> "WorkspaceOptions":
        if (self.policy == "program") != bool(self.program):
            raise ValueError(_PROGRAM)
        return self

    @model_validator(mode="after")
    def _complete_snapshots(self) -> "WorkspaceOptions":
        if self.snapshot_turns and self.services:
            raise ValueError(_NO_SNAPSHOTS.format("services"))
        if self.snapshot_turns and self.policy == "program":
            raise ValueError(_NO_SNAPSHOTS.format("`policy: program`"))
        return self

    @field_validator("network", mode="before")
    @classmethod
    def _none_or_hosts(cls, value: object) -> object:
        if value is None or value == "none":
            return None
        if not isinstance(value, Mapping):
            raise ValueError("`network` must be none, or {allow: [names of hosts]}")
        return value

    @field_validator("services")
    @classmethod
    def _unique_names(cls, value: list[ServiceOptions]) -> list[ServiceOptions]:
        names = [service.name for service in value]
        if len(set(names)) < len(names):
            raise ValueError("two services have the same name")
        return value

    @field_validator("build")
    @classmethod
    def _relative(cls, value: str) -> str:
        return f"{check_relative(value.rstrip('/'))}/" if value else value

    @model_validator(mode="after")
    def _one_image(self) -> "WorkspaceOptions":
        if bool(self.image) == bool(self.build):
            raise ValueError(_ONE_IMAGE)
        return self

    @field_validator("workdir")
    @classmethod
    def _absolute(cls, value: str) -> str:
        _check_absolute(value)
        if value in RESERVED or value.startswith(("/proc/", "/sys/", "/dev/", "/verify/", "/tmp/", f"{PACKAGES}/")):  # noqa: S108
            raise ValueError(f"{value!r} cannot be the work folder; use a folder of its own, such as /app")
        return value

    @model_validator(mode="after")
    def _artifacts_in_workdir(self) -> "WorkspaceOptions":
        for path in self.artifacts:
            _check_absolute(path)
            if path != self.workdir and not path.startswith(f"{self.workdir}/"):
                raise ValueError(f"the artifact {path!r} must be below the work folder {self.workdir}")
        return self


def option_problems(options: Mapping[str, object], files: Mapping[str, bytes]) -> list[Problem]:
    """Return the problems of the manifest's *options*, of which templates are not rendered yet."""
    refused = [Problem(f"`{key}` is not supported: {why}", key) for key, why in _UNSUPPORTED.items() if key in options]
    if bool(options.get("image")) == bool(options.get("build")):
        refused.append(Problem(_ONE_IMAGE, "build" if options.get("build") else "image"))
    if (options.get("policy", "model") == "program") != bool(options.get("program")):
        refused.append(Problem(_PROGRAM, "program" if options.get("program") else "policy"))
    if options.get("snapshot_turns") and (options.get("services") or options.get("policy", "model") == "program"):
        with_what = "services" if options.get("services") else "`policy: program`"
        refused.append(Problem(_NO_SNAPSHOTS.format(with_what), "snapshot_turns"))
    build = options.get("build")
    if isinstance(build, str) and build and "{{" not in build and f"{build.rstrip('/')}/Dockerfile" not in files:
        refused.append(Problem(f"the folder {build!r} has no Dockerfile", "build"))
    return refused + unknown_folder(options.get("setup"), "setup") + unknown_folder(build, "build")


def case_problems(options: WorkspaceOptions, files: Mapping[str, bytes]) -> list[Problem]:
    """Return the problems of the files that the rendered *options* of a case name."""
    scripts = {"setup": options.setup}
    if not options.program.endswith(".py") or files.get(options.program, b"").startswith(b"#!"):
        scripts["program"] = options.program
    found = {key: script_problem(path, files) for key, path in scripts.items() if path}
    if options.build and f"{options.build}Dockerfile" not in files:
        found["build"] = f"the folder {options.build!r} has no Dockerfile"
    return [Problem(message, key) for key, message in found.items() if message]


def package_problems(options: Mapping[str, object]) -> list[Problem]:
    """Return the problems of the manifest's *options* in an environment that names packages."""
    workdir = options.get("workdir")
    if isinstance(workdir, str) and f"{PACKAGES}/".startswith(f"{workdir.rstrip('/')}/"):
        message = f"{workdir!r} cannot be the work folder of an environment with `packages`, which are in {PACKAGES}"
        return [Problem(f"{message}; use another folder, such as /app", "workdir")]
    return []


def service_images(options: Mapping[str, object]) -> list[object]:
    """Return the images of the services in the manifest's *options*."""
    services = options.get("services")
    return [item.get("image") for item in services if isinstance(item, Mapping)] if isinstance(services, list) else []


def code_paths(options: Mapping[str, object]) -> list[str]:
    """Return the files and folders of the bundle that *options* name."""
    return code_of(options.get("setup")) + folder_of(options.get("build")) + _program_paths(options.get("program"))


def _program_paths(path: object) -> list[str]:
    """Return the program and the folder that it is in, which is copied into the box with it."""
    folders = [f"{posixpath.dirname(name)}/" for name in code_of(path) if "/" in name.rstrip("/")]
    return code_of(path) + folders


def _check_absolute(path: str) -> None:
    if not path.startswith("/") or posixpath.normpath(path) != path or path.startswith("//") or ":" in path:
        raise ValueError(f"{path!r} must be an absolute path without `..` and `:`, such as /app")
