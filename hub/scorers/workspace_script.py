"""The rule `workspace_script`: a script of the bundle checks the artifacts of a workspace in a fresh box."""

import json
import math
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal, cast

from pydantic import Field, field_validator

from hub.common.problems import Problem
from hub.harnesses.base import Services
from hub.harnesses.boxes.state import WorkspaceState, handle_of
from hub.harnesses.boxes.tools import describe_result
from hub.harnesses.steps.script_imports import imports_artifacts
from hub.harnesses.steps.workspace_files import (
    code_of,
    is_shell_script,
    missing_interpreter,
    script_problem,
    unknown_folder,
)
from hub.manifest.schema import check_relative
from hub.protocols.messages import JSON
from hub.scorers.base import OptionsClass, Scorer, ScorerOptions, ScoringFailed, Submission, Verdict, rounded_score
from sandbox.connections.owners import owner
from sandbox.errors import SandboxUnavailable
from sandbox.workspaces.base import (
    MAX_ARTIFACTS,
    VERIFY,
    Artifacts,
    ArtifactsTooLarge,
    BoxLimits,
    BoxSpec,
    CommandResult,
    Handle,
    WorkspaceEngine,
    WorkspaceError,
)
from sandbox.workspaces.shared import get_workspaces, in_thread, open_in_thread

_TESTS = f"{VERIFY}/tests"
_PROGRAMS = f"{VERIFY}/bin"
_POINT_FIRST = re.compile(r"\A\s*\.(?=\d)")  # ".50", as bc writes it, is no JSON
_MAX_REWARD_BYTES = 64 * 1024
_STANDARD_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
AS_AGENT = """#!/usr/bin/env -S python3 -I -S
import os, sys
with open("/proc/self/oom_score_adj", "w") as file:
    file.write("1000")  # if memory is full, it is killed before the script
os.setgroups([])
os.setgid({user})
os.setuid({user})
os.environ["HOME"] = "/tmp"
folder = os.path.dirname(sys.argv[0])  # the agent cannot enter it, which would hide that a program is not found
os.environ["PATH"] = ":".join(path for path in os.environ.get("PATH", os.defpath).split(":") if path != folder)
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    sys.exit("as-agent: %s: %s" % (sys.argv[1], error.strerror))
"""


class WorkspaceScriptOptions(ScorerOptions):
    """`path`: the script; `files`: a folder of the bundle with further files for it. They are copied side by side.

    `mode`: only `separate`, a fresh box. `reward`: the file that the script writes; without it, the exit code decides.
    `timeout_s`: for the script. `artifacts_mb`: limit of all artifacts together. `trust`: `in_process` if the script
    imports what the model wrote, which can then forge the result; `auto` finds out from the source.
    """

    path: str
    files: str = ""
    mode: Literal["separate"] = "separate"
    reward: str = ""
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 120.0
    artifacts_mb: Annotated[int, Field(ge=1, le=128)] = 64
    # Left out of digests if it is not given, so that digests of existing cases do not change.
    trust: Annotated[Literal["auto", "isolated", "in_process"], Field(exclude_if=lambda trust: trust == "auto")] = (
        "auto"
    )

    @field_validator("reward")
    @classmethod
    def _is_free(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{0,64}", value):
            raise ValueError(f"{value!r} must be the name of a file, without a folder, such as reward.json")
        if value in (".", "..", *map(posixpath.basename, (_TESTS, _PROGRAMS))):
            raise ValueError(f"{value!r} is a folder of the box that scores; use another name, such as reward.json")
        return value

    @field_validator("path", "files")
    @classmethod
    def _relative(cls, value: str) -> str:
        return check_relative(value.rstrip("/")) if value else value


class WorkspaceScript(Scorer[WorkspaceScriptOptions]):
    type = "workspace_script"
    summary = "A script of the bundle checks the declared artifacts of a workspace, in a fresh box of the same image."
    Options: ClassVar[OptionsClass] = WorkspaceScriptOptions
    harness = "workspace"

    def code_paths(self, options: Mapping[str, object]) -> list[str]:
        files, named = options.get("files"), code_of(options.get("path"))
        return named + ([f"{files.rstrip('/')}/"] if isinstance(files, str) and files and "{{" not in files else [])

    def problems(self, options: Mapping[str, object], files: Mapping[str, bytes]) -> list[Problem]:
        return unknown_folder(options.get("path"), "path")

    def case_problems(self, options: WorkspaceScriptOptions, files: Mapping[str, bytes]) -> list[Problem]:
        scripts = {options.path: "path"}
        for name, content in files_beside_script(options, files).items():
            if is_shell_script(name, content):
                scripts.setdefault(f"{options.files}/{name}", "files")
        found = [(script_problem(path, files), key) for path, key in scripts.items()]
        return [Problem(message, key) for message, key in found if message]

    def shares_process(self, options: Mapping[str, object], files: Mapping[str, bytes]) -> bool:
        trust, named = options.get("trust", "auto"), self.code_paths(options)
        if trust != "auto":
            return trust == "in_process"
        return imports_artifacts({path: data for path, data in files.items() if _is_below(path, named)})

    async def score(self, options: WorkspaceScriptOptions, submission: Submission, services: Services) -> Verdict:
        """Run the script. Raises ScoringFailed, of kind `environment` if the bundle is wrong."""
        if options.path not in submission.files:
            raise ScoringFailed("environment", f"The bundle has no script {options.path!r}.", temporary=False)
        world = cast(WorkspaceState, submission.state)
        engine = get_workspaces()
        try:
            try:
                artifacts = await in_thread(
                    engine.export_artifacts, handle_of(world), world["artifacts"], options.artifacts_mb
                )
            except ArtifactsTooLarge:
                return Verdict.of(
                    False,
                    f"The artifacts have more than {options.artifacts_mb} MB, or more than {MAX_ARTIFACTS:,} files "
                    "and folders; none were checked.",
                )
            # The model's files decide whether they can be copied. A failed copy counts as wrong, not as errored.
            except WorkspaceError as error:
                return Verdict.of(False, f"The artifacts cannot be copied: {error}.")
            return await self._check(options, submission, world, artifacts, engine)
        except SandboxUnavailable as error:
            raise ScoringFailed("sandbox", str(error)) from None

    async def _check(
        self,
        options: WorkspaceScriptOptions,
        submission: Submission,
        world: WorkspaceState,
        artifacts: Artifacts,
        engine: WorkspaceEngine,
    ) -> Verdict:
        """Open a box with *artifacts*, run the script in it and return its verdict."""
        limits = cast(dict[str, float], world["limits"])
        life = math.ceil(options.timeout_s) + 300
        spec = BoxSpec(
            image=world["box"]["image"],
            workdir=world["workdir"],
            user=world["user"],
            limits=BoxLimits(**{**limits, "episode_s": life}),  # type: ignore[arg-type]
            owner=owner(),
            verify=True,
            # If the whole work folder is an artifact, it is not filled from the image, which still has files that the
            # agent removed.
            seeded=world.get("built", False) and world["workdir"] not in world["artifacts"],
            packages=world.get("packages", ""),
        )
        try:
            fresh = await open_in_thread(engine, engine.open_from, spec, artifacts)
        except WorkspaceError as error:
            return Verdict.of(False, f"The artifacts cannot be copied: {error}.")
        try:
            result = await in_thread(_run_script, engine, fresh, options, submission.files, world)
            # Programs of the agent that are still running could not write the reward, but end before it is read.
            await in_thread(engine.end_processes, fresh)
            verdict = await in_thread(_verdict, engine, fresh, options, result, submission.files[options.path])
        except WorkspaceError as error:
            raise ScoringFailed("environment", f"{options.path} cannot be run: {error}.") from None
        finally:
            await in_thread(engine.close, fresh)
        trust = "in_process" if _shares_process(options, submission.files) else "isolated"
        detail: dict[str, JSON] = {**verdict.detail, "trust": trust, "output": describe_result(result)[-4000:]}
        if artifacts.refused:
            detail["not_copied"] = list(artifacts.refused[:50])
        if restored := world.get("restored"):
            detail["boxes_lost"] = cast(JSON, restored)
        if parameters := world.get("parameters"):
            detail["parameters"] = cast(JSON, parameters)
        if artifacts.missing:
            detail["missing"] = list(artifacts.missing)
        return Verdict(value=verdict.value, reason=verdict.reason, detail=detail)


def _is_below(path: str, named: Sequence[str]) -> bool:
    return any(path == name or (name.endswith("/") and path.startswith(name)) for name in named)


def files_beside_script(options: WorkspaceScriptOptions, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that are copied beside the script, by their path below `files`.

    Without `files`, that is none: the scripts of other cases are in the folder of the script.
    """
    below = f"{options.files}/"
    return {path.removeprefix(below): files[path] for path in files if options.files and path.startswith(below)}


def _shares_process(options: WorkspaceScriptOptions, files: Mapping[str, bytes]) -> bool:
    if options.trust != "auto":
        return options.trust == "in_process"
    return imports_artifacts({**files_beside_script(options, files), options.path: files[options.path]})


def _script_path(options: WorkspaceScriptOptions) -> str:
    """Return the path of the script in the box that scores."""
    return f"{_TESTS}/{posixpath.basename(options.path)}"


def _run_script(
    engine: WorkspaceEngine,
    box: Handle,
    options: WorkspaceScriptOptions,
    files: Mapping[str, bytes],
    world: WorkspaceState,
) -> CommandResult:
    carried = {f"{_TESTS}/{path}": data for path, data in files_beside_script(options, files).items()}
    script = _script_path(options)
    carried[script] = files[options.path]
    engine.write(box, carried, root=True, mode=0o700)
    engine.write(box, {f"{_PROGRAMS}/as-agent": AS_AGENT.format(user=world["user"]).encode()}, root=True, mode=0o700)
    reward = f"{VERIFY}/{options.reward or 'reward'}"
    environment = {
        "PATH": ":".join([_PROGRAMS, *_trusted_path(engine, box, world), *_STANDARD_PATH]),
        "HOME": VERIFY,
        "TESTS": _TESTS,
        "WORKDIR": world["workdir"],
        "REWARD": reward,
    }
    path = shlex.quote(script)
    command = f'rm -f "$REWARD"; first=$(head -n 1 {path}); case "$first" in "#!"*) {path};; *) sh {path};; esac'
    return engine.execute(box, command, options.timeout_s, root=True, environment=environment)


def _trusted_path(engine: WorkspaceEngine, box: Handle, world: WorkspaceState) -> list[str]:
    """Return the folders of the image's PATH in which the agent cannot have put a program."""
    named = 'IFS=:; for folder in $PATH; do printf "%s\\n" "$folder=$(readlink -f "$folder")"; done'
    lines = engine.execute(box, named, 10.0, root=True).output.splitlines()
    changed = [posixpath.normpath(path) for path in ("/tmp", "/dev", "/proc", world["workdir"], *world["artifacts"])]  # noqa: S108
    trusted = []
    for line in lines:
        folder, _, real = line.partition("=")
        is_changed = any(real == path or real.startswith(f"{path.rstrip('/')}/") for path in changed)
        if folder.startswith("/") and real.startswith("/") and ":" not in folder and not is_changed:
            trusted.append(folder)
    return trusted


def _verdict(
    engine: WorkspaceEngine, box: Handle, options: WorkspaceScriptOptions, result: CommandResult, script: bytes
) -> Verdict:
    if result.timed_out:
        return Verdict.of(False, f"{options.path} did not end within {options.timeout_s:g} seconds.")
    last = next((line for line in reversed(result.output.splitlines()) if line.strip()), "")
    last = missing_interpreter(_script_path(options), script, result.output) or last
    ended = f"ended with exit code {result.exit_code}" + (f": {last[:300]}" if last else ".")
    if not options.reward:
        return Verdict.of(result.exit_code == 0, "" if result.exit_code == 0 else f"{options.path} {ended}")
    try:
        data = engine.read(box, f"{VERIFY}/{options.reward}", _MAX_REWARD_BYTES, root=True)
    except WorkspaceError:
        verdict = Verdict(value=None, reason=f"{options.path} wrote no {options.reward}; it {ended}")
    else:
        verdict = read_reward(data.decode("utf-8-sig", "replace"), options.reward)
    # Programs of the agent can fill the box, so that the script is killed or cannot start the next program.
    if verdict.value is None and (limits := engine.reached_limits(box)):
        reached = f"The box had reached its limit of {' and '.join(limits)} meanwhile."
        return Verdict.of(False, f"{verdict.reason.rstrip('.')}. {reached}")
    return verdict


def read_reward(text: str, name: str) -> Verdict:
    """Return the verdict for a reward file: a number, or JSON such as {"reward": 0.5, "reason": "..."}."""
    try:
        value = json.loads(_POINT_FIRST.sub("0.", text))
    except (ValueError, RecursionError):
        return Verdict(value=None, reason=f"{name} is not JSON: {text[:100]!r}.")
    reward, reason = (value.get("reward"), value.get("reason")) if isinstance(value, dict) else (value, "")
    if isinstance(reward, bool) or not isinstance(reward, int | float):
        return Verdict(value=None, reason=f"{name} has no number: {text[:100]!r}.")
    score = rounded_score(reward)
    if score is None:
        return Verdict(value=None, reason=f"The reward in {name} is {str(reward)[:100]}; it must be from 0 to 1.")
    return Verdict(value=score, reason=str(reason or ("" if score == 1 else f"The reward is {score:g}.")))
