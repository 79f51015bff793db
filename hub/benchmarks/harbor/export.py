"""Export of workspace environments as tasks in Harbor's format. Cases that the format cannot express are named."""

import json
import math
import re
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hub.benchmarks.harbor.tasks import TaskRefused
from hub.bundles.cases import PreparedCase, prepared_cases
from hub.bundles.loader import Bundle
from hub.bundles.reference_answers import ReferenceAnswers
from hub.common.errors import UserError
from hub.common.problems import Problem
from hub.environments.compiled import CompiledEnvironment
from hub.harnesses.boxes.options import WorkspaceOptions
from hub.harnesses.steps.workspace_files import command_of
from hub.manifest.problems import BundleError
from hub.protocols.cases import CaseData, file_bytes
from hub.protocols.messages import Message
from hub.scorers.workspace_script import AS_AGENT, WorkspaceScriptOptions, files_beside_script

# Commands of a setup whose effect an image does not keep: processes, and permissions that an import does not restore.
_NOT_KEPT = re.compile(r"(?<![&>|])&(?=\s*$)|\b(nohup|setsid|mkfifo|chmod|chown|umask|setfacl|touch)\b", re.MULTILINE)
_TEST = """#!/bin/bash
export WORKDIR={workdir} TESTS=/tests REWARD=/tmp/llmeval-reward
command -v as-agent > /dev/null || {{ chmod 755 /tests/llmeval-bin/as-agent; PATH="/tests/llmeval-bin:$PATH"; }}
mkdir -p /logs/verifier
cd "$WORKDIR" || exit 1
rm -f "$REWARD"
script={script}
case "$(head -n 1 "$script")" in "#!"*) chmod u+x "$script"; "$script";; *) sh "$script";; esac
code=$?
{reward}
exit $code
"""
_FROM_CODE = "if [ $code = 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt"
_FROM_FILE = (
    "python3 -c 'import json, sys; value = json.load(open(sys.argv[1])); "
    'print(value["reward"] if isinstance(value, dict) else value)\' "$REWARD" > /logs/verifier/reward.txt'
)


@dataclass(slots=True)
class WrittenTasks:
    """Ids of the cases that were written, and the refused ones with their reasons."""

    written: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def write_tasks(bundle: Bundle, folder: Path) -> WrittenTasks:
    """Write a task for each case of *bundle* into the existing *folder*.

    Raises BundleError, and UserError if no case of the environment can be expressed.
    """
    manifest, environment = bundle.manifest, bundle.compile()
    if manifest.harness.type != "workspace":
        raise UserError(
            f"{manifest.slug} has the harness {manifest.harness.type}; only workspaces can be Harbor tasks."
        )
    found = WrittenTasks()
    with ReferenceAnswers(manifest.gold, "gold", bundle.file) as gold:
        for prepared in prepared_cases(manifest, environment, bundle.file):
            if isinstance(prepared, Problem):
                raise BundleError(prepared)
            try:
                files = _task_files(environment, prepared, [answer.messages for answer in gold.of(prepared.case)])
            except TaskRefused as error:
                found.refused[prepared.case.id] = str(error)
                continue
            for path, data in files.items():
                target = folder / prepared.case.id / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                if data.startswith(b"#!"):
                    target.chmod(target.stat().st_mode | stat.S_IXUSR)
            found.written.append(prepared.case.id)
    return found


def _task_files(
    environment: CompiledEnvironment, prepared: PreparedCase, gold: list[list[Message]]
) -> dict[str, bytes]:
    """Return the files of the task, by path. Raises TaskRefused."""
    case, options = prepared.case, environment.harness_options(prepared.case)
    assert isinstance(options, WorkspaceOptions)
    if not re.fullmatch(r"[A-Za-z0-9_-]+", case.id):
        raise TaskRefused("its id has other characters than letters, digits, - and _, so it cannot name a folder")
    _check_options(options)
    if environment.manifest.packages:
        raise TaskRefused("packages")
    rules = environment.rendered_rules(case)
    if len(rules) != 1 or not isinstance(rules[0].options, WorkspaceScriptOptions):
        raise TaskRefused("it is not scored by one rule of the type workspace_script")
    rule = rules[0].options
    if rule.path not in environment.files:
        raise TaskRefused(f"the bundle has no script {rule.path!r}")
    files = {
        "task.toml": _config(environment, case, options, rule).encode(),
        "instruction.md": _instruction(options).encode(),
        **_environment(options, case, environment.files),
        **_tests(options, rule, environment.files),
    }
    if gold:
        files["solution/solve.sh"] = b"#!/bin/bash\n" + _script(gold[0]).encode()
    return files


def _check_options(options: WorkspaceOptions) -> None:
    if options.policy == "program":
        raise TaskRefused("policy: program")
    if options.services:
        raise TaskRefused("services")
    if options.network:
        raise TaskRefused("network")
    if options.artifacts and options.artifacts != [options.workdir]:
        raise TaskRefused("artifacts other than the work folder")
    if not isinstance(options.prompt, str):
        raise TaskRefused("a prompt of several messages")


def _instruction(options: WorkspaceOptions) -> str:
    return "\n\n".join(text.strip() for text in (options.system, str(options.prompt)) if text) + "\n"


def _config(
    environment: CompiledEnvironment, case: CaseData, options: WorkspaceOptions, rule: WorkspaceScriptOptions
) -> str:
    limits, manifest = options.limits, environment.manifest
    source = json.dumps(f"{manifest.slug}@{manifest.version}", ensure_ascii=False)
    return f"""version = "1.0"

[metadata]
source = {source}
case = {json.dumps(case.id)}
{_labels(case, manifest.category)}

[agent]
timeout_sec = {float(limits.episode_s)}
user = {options.user}

[verifier]
timeout_sec = {float(rule.timeout_s)}
user = "root"

[environment]
build_timeout_sec = {float(limits.build_s)}
cpus = {math.ceil(limits.cpus)}
memory_mb = {limits.memory_mb}
storage_mb = {limits.disk_mb}
workdir = {json.dumps(options.workdir)}
allow_internet = false
"""


def _labels(case: CaseData, category: str) -> str:
    """Return the lines of `[metadata]` with category, difficulty and tags of the case, as far as it has them."""
    labels: dict[str, object] = {"category": category}
    labels |= {key: case.metadata[key] for key in ("category", "difficulty") if isinstance(case.metadata.get(key), str)}
    tags = case.metadata.get("tags")
    if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags):
        labels["tags"] = tags
    return "\n".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in labels.items())


def _environment(options: WorkspaceOptions, case: CaseData, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the build context: the bundle's own or one from `image`, with the case's files and its setup."""
    context = {path.removeprefix(options.build): data for path, data in files.items() if path.startswith(options.build)}
    context = context if options.build else {"Dockerfile": f"FROM {options.image}\n".encode()}
    if "Dockerfile" not in context:
        raise TaskRefused(f"the bundle has no file '{options.build}Dockerfile'")
    steps = ["", "ENTRYPOINT []", 'CMD ["sleep", "infinity"]', "USER 0:0", f"WORKDIR {options.workdir}"]
    if case.files:
        context |= {f"llmeval-files/{path}": file_bytes(content) for path, content in case.files.items()}
        steps.append("COPY llmeval-files/ ./")
    steps.append(f"RUN chown -R {options.user}:{options.user} .")
    if options.setup:
        script = files[options.setup]
        if used := _NOT_KEPT.search(script.decode("utf-8", "replace")):
            raise TaskRefused(f"its setup uses `{used[0]}`, the effect of which an image does not keep")
        context["llmeval-setup.sh"] = script
        steps += [
            "COPY llmeval-setup.sh /llmeval-setup.sh",
            "RUN chmod 755 /llmeval-setup.sh",
            f"USER {options.user}:{options.user}",
            f"RUN {command_of('/llmeval-setup.sh', script)}",
            "USER 0:0",
            "RUN rm /llmeval-setup.sh",
        ]
    context["Dockerfile"] = context["Dockerfile"].rstrip(b"\n") + ("\n".join(steps) + "\n").encode()
    return {f"environment/{path}": data for path, data in context.items()}


def _tests(options: WorkspaceOptions, rule: WorkspaceScriptOptions, files: Mapping[str, bytes]) -> dict[str, bytes]:
    found = {f"tests/{path}": data for path, data in files_beside_script(rule, files).items()}
    name = Path(rule.path).name
    if name == "test.sh":
        name = "llmeval-test.sh"
    found[f"tests/{name}"] = files[rule.path]
    found["tests/llmeval-bin/as-agent"] = AS_AGENT.format(user=options.user).encode()
    reward = _FROM_FILE if rule.reward else _FROM_CODE
    script, workdir = shlex.quote(f"/tests/{name}"), shlex.quote(options.workdir)
    found["tests/test.sh"] = _TEST.format(workdir=workdir, script=script, reward=reward).encode()
    return found


def _script(messages: list[Message]) -> str:
    """Return the gold answer as a script. Raises TaskRefused if it is more than one call of bash."""
    calls = [call["function"] for message in messages for call in message.get("tool_calls") or []]
    if len(calls) != 1 or calls[0]["name"] != "bash":
        raise TaskRefused("its gold answer is not one call of bash")
    return str(json.loads(calls[0]["arguments"])["command"])
