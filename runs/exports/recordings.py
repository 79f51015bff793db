"""A run's responses as recordings that the provider `replay` plays: a file for each model, simulated users included."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hub.canonical import digest
from hub.cases import CaseData
from hub.compiled import CompiledEnvironment
from hub.ports import CallKey
from hub.selectors import compile_version
from runs.exports.base import CHUNK, Exported, opening, usage_of, whole_file
from runs.models import Response, Run, RunEnvironment, RunModel
from runs.providers.replay import recorded_line


def export_responses(run: Run, folder: Path) -> Exported:
    """Write the answers that *run* was given into *folder*, a file for each model.

    Simulated users are recovered from the transcripts, into a file for each model of their role.
    """
    total = Exported()
    for model in run.models.filter(role="").order_by("position"):
        exported = Exported()
        with _recording(folder / f"{_filename(model.label)}.jsonl", exported) as write:
            for part, response in _responses(run, model):
                line = _answer_line(part, response)
                if line:
                    write(line)
                else:
                    exported.skipped[f"{response.status}, without an answer"] += 1
        _add(total, exported)
    for role, label in _simulated_users(run):
        exported = Exported()
        with _recording(folder / f"{_filename(f'{role}-{label}')}.jsonl", exported) as write:
            for model in run.models.filter(role="").order_by("position"):
                for part, response in _responses(run, model):
                    for line in _user_lines(part, compile_version(part.version), role, response):
                        write(line)
        _add(total, exported)
    return total


def _responses(run: Run, model: RunModel) -> Iterator[tuple[RunEnvironment, Response]]:
    for part in run.environments.select_related("version__environment").order_by("position"):
        responses = Response.objects.filter(run_environment=part, run_model=model).select_related("case", "run_model")
        for response in responses.order_by("case__position", "attempt").iterator(chunk_size=CHUNK):
            yield part, response


def _key(part: RunEnvironment, response: Response, **parts: Any) -> CallKey:
    return CallKey(
        **{
            "purpose": "answer",
            "environment": part.version.environment.slug,
            "case": response.case.external_id,
            "attempt": response.attempt,
            "model": response.run_model.label,
            **parts,
        }
    )


def _answer_line(part: RunEnvironment, response: Response) -> str:
    """Empty where there is nothing to replay: the world failed before the play was over."""
    answers = [message for message in response.messages if message["role"] == "assistant"]
    if response.status == Response.Status.ERRORED or not answers:
        return ""
    finish = {"finish_reason": response.finish_reason} if response.finish_reason else {}
    key = _key(part, response)
    if len(answers) == 1 and set(answers[0]) <= {"role", "content"} and isinstance(answers[0].get("content"), str):
        return recorded_line(key, content=answers[0]["content"], usage=usage_of(response), **finish)
    # A recording's usage is that of each call, and only the sum over all of them is stored.
    usage = {"usage": usage_of(response)} if len(answers) == 1 else {}
    return recorded_line(key, messages=answers, **usage, **finish)


def _simulated_users(run: Run) -> list[tuple[str, str]]:
    """(role, label) of the models that played a user."""
    if not run.models.exclude(role="").exists():
        return []
    roles = set()
    for part in run.environments.select_related("version"):
        compiled = compile_version(part.version)
        roles |= set(compiled.harness.roles(compiled.manifest.harness.options))
    return list(run.models.filter(role__in=roles, seat=0).order_by("role").values_list("role", "label"))


def _user_lines(part: RunEnvironment, environment: CompiledEnvironment, role: str, response: Response) -> Iterator[str]:
    """What the simulated user said: its messages in the transcript, and the word with which it ended the talk."""
    options = environment.harness_options(CaseData.from_json(response.case.data))
    user = getattr(options, "user", None)
    if user is None or user.scripted or user.role != role or response.status == Response.Status.ERRORED:
        return
    start = len(opening(response.messages))
    if not getattr(options, "prompt", "") and start:
        start -= 1  # the user opened the conversation
    said = [message["content"] for message in response.messages[start:] if message["role"] == "user"]
    if response.stop == "done":
        if response.messages[-1]["role"] == "user":
            said[-1] = f"{said[-1]} {user.stop}"
        else:
            said.append(user.stop)
    for turn, content in enumerate(said):
        yield recorded_line(_key(part, response, purpose="user", role=role, turn=turn), content=content)


@contextmanager
def _recording(path: Path, exported: Exported) -> Iterator[Callable[[str], None]]:
    with whole_file(path, exported) as file:

        def write(line: str) -> None:
            file.write(line.encode("utf-8", "backslashreplace") + b"\n")
            exported.written += 1

        yield write


def _add(total: Exported, part: Exported) -> None:
    total.written += part.written
    total.skipped += part.skipped
    total.files += part.files


def _filename(label: str) -> str:
    """A label as a file's name of letters, digits, `.`, `_`, `-`; where that loses something, with its digest."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", label).lstrip(".")[:80]
    return name if name == label else f"{name}-{digest(label)[:6]}"
