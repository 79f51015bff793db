"""A run's responses as recordings that the provider `replay` plays: a file for each model, those of roles included."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hub.common.digests import digest
from hub.common.output_files import Outputs
from hub.environments.compiled import CompiledEnvironment
from hub.protocols.calls import CallKey
from hub.protocols.cases import CaseData
from hub.protocols.messages import opening_length
from hub.selectors import compile_version
from runs.exports.base import CHUNK, ExportReport, lines, usage_of
from runs.models import Response, Run, RunEnvironment, RunModel
from runs.providers.replay import recorded_line


def export_responses(run: Run, folder: Path, *, force: bool = False) -> ExportReport:
    """Write the answers that *run* was given into *folder*, a file for each model. Raises CannotWrite.

    What simulated users said is recovered from the transcripts, what rubric judges said from their verdicts, into a
    file for each model of a role. All the files appear or none; over files that are there only with *force*.
    """
    exported = ExportReport()
    with Outputs(force=force) as outputs:
        outputs.folder(folder)
        for model in run.models.filter(role="").order_by("position"):
            with lines(outputs.file(folder / f"{_filename(model.label)}.jsonl"), exported) as write:
                for part, response in _responses(run, model):
                    line = _answer_line(part, response)
                    if line:
                        write(line)
                    else:
                        exported.left_out[f"{response.status}, without an answer"] += 1
        for seat in _seats(run):
            with lines(outputs.file(folder / f"{_filename(f'{seat.role}-{seat.label}')}.jsonl"), exported) as write:
                for model in run.models.filter(role="").order_by("position"):
                    for part, response in _responses(run, model):
                        for line in role_lines(part, response, seat):
                            write(line)
    exported.files = outputs.written
    return exported


def _responses(run: Run, model: RunModel) -> Iterator[tuple[RunEnvironment, Response]]:
    for part in run.environments.select_related("version__environment").order_by("position"):
        responses = Response.objects.filter(run_environment=part, run_model=model).select_related("case", "run_model")
        responses = responses.prefetch_related("scores")
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


def _seats(run: Run) -> list[RunModel]:
    """The models that environments of the run asked by role: simulated users and rubric judges."""
    if not run.models.exclude(role="").exists():
        return []
    roles = {
        role for part in run.environments.select_related("version") for role in compile_version(part.version).roles
    }
    return list(run.models.filter(role__in=roles).order_by("role", "position"))


def role_lines(part: RunEnvironment, response: Response, seat: RunModel) -> Iterator[str]:
    """What the model in *seat* of its role said while *response* came about and was scored, as recorded lines."""
    if response.status == Response.Status.ERRORED:
        return
    environment = compile_version(part.version)
    if seat.position == 0:
        yield from _user_lines(part, environment, seat.role, response)
    yield from _rubric_lines(part, environment, seat, response)


def _user_lines(part: RunEnvironment, environment: CompiledEnvironment, role: str, response: Response) -> Iterator[str]:
    """What the simulated user said: its messages in the transcript, and the word with which it ended the talk."""
    options = environment.harness_options(CaseData.from_json(response.case.data))
    user = getattr(options, "user", None)
    if user is None or user.scripted or user.role != role:
        return
    start = opening_length(response.messages)
    if not getattr(options, "prompt", "") and start:
        start -= 1  # the user opened the conversation
    heard = environment.harness.dialogue(options, response.messages[start:])
    said = [message["content"] for message in heard if message["role"] == "user"]
    if response.stop == "done":
        if response.messages[-1]["role"] == "user":
            said[-1] = f"{said[-1]} {user.stop}"
        else:
            said.append(user.stop)
    for turn, content in enumerate(said):
        yield recorded_line(_key(part, response, purpose="user", role=role, turn=turn), content=content)


def _rubric_lines(
    part: RunEnvironment, environment: CompiledEnvironment, seat: RunModel, response: Response
) -> Iterator[str]:
    """What the judge in *seat* said, one line for each rule that asked it."""
    asking = {rule.spec.name for rule in environment.rules if seat.role in rule.scorer.roles(rule.spec.options)}
    for score in response.scores.all():
        for judge in score.detail.get("judges", ()) if score.rule in asking else ():
            if judge["seat"] == seat.position:
                key = _key(part, response, purpose="rubric", role=seat.role, rule=score.rule, seat=seat.position)
                yield recorded_line(key, content=judge["said"])


def _filename(label: str) -> str:
    """A label as a file's name of letters, digits, `.`, `_`, `-`; where that loses something, with its digest."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", label).lstrip(".")[:80]
    return name if name == label else f"{name}-{digest(label)[:6]}"
