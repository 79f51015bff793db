"""Export of a run's responses as recordings for the provider `replay`: a file for each model, role models included."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from hub.common.digests import digest
from hub.common.output.files import Outputs
from hub.environments.compiled import CompiledEnvironment
from hub.harnesses.steps.user_turns import UserOptions
from hub.protocols.calls import CallKey
from hub.protocols.cases import CaseData
from hub.selectors import compile_version
from runs.exports.protocol import CHUNK, ExportFormat, ExportReport, JSONObject, LeftOut, export_items
from runs.exports.provenance import token_usage
from runs.models import Response, Run, RunModel
from runs.providers.replay import recorded_row
from runs.selectors import models_under_test


def without_answer(status: str) -> str:
    """Return the reason for which a response with *status* cannot be replayed."""
    return f"{status}, without an answer"


# Of errored responses: the kinds of errors that scoring may have.
SCORING_ERRORS = ("environment", "sandbox")


def can_be_replayed(response: Response) -> bool:
    """Return whether *response* has a complete answer: it is scored, or only its scoring failed.

    The replies of role models to an errored response are not stored.
    """
    answer = [message["role"] for message in response.answer]
    if response.status != Response.Status.ERRORED:
        return "assistant" in answer
    ended = response.error_kind in SCORING_ERRORS and answer[-1:] == ["assistant"]
    return ended and not compile_version(response.run_environment.version).roles


class AnswerRecordings(ExportFormat[Response]):
    """Recordings of a model under test: a line for each response."""

    name = "recordings"
    summary = "answers for the provider `replay`"
    training = False

    def rows(self, item: Response) -> Iterator[JSONObject]:
        # Assistant messages before the model's first are examples in the prompt.
        answers = [message for message in item.answer if message["role"] == "assistant"]
        if not can_be_replayed(item):
            raise LeftOut(without_answer(item.status))
        finish = {"finish_reason": item.finish_reason} if item.finish_reason else {}
        key = _call_key(item)
        if len(answers) == 1 and set(answers[0]) <= {"role", "content"} and isinstance(answers[0].get("content"), str):
            yield recorded_row(key, content=answers[0]["content"], usage=token_usage(item), **finish)
            return
        # The usage of a recording is that of each call, but only the sum over all calls is stored.
        usage = {"usage": token_usage(item)} if len(answers) == 1 else {}
        yield recorded_row(key, messages=answers, **usage, **finish)


@dataclass(frozen=True)
class RoleRecordings(ExportFormat[Response]):
    """Recordings of *role_model*: its replies while a response was obtained and scored, recovered from the response."""

    role_model: RunModel

    name = "role recordings"
    summary = "replies of a role model for the provider `replay`"
    training = False

    def rows(self, item: Response) -> Iterator[JSONObject]:
        return role_rows(item, self.role_model)


def export_responses(run: Run, folder: Path, *, force: bool = False) -> ExportReport:
    """Write the answers of the models of *run* to *folder*, a file for each model. Raises CannotWrite.

    Replies of simulated users are recovered from the transcripts and those of rubric judges from the scores, into a
    file for each role model. Either all files are written or none; existing ones are only replaced with *force*.
    """
    report = ExportReport()
    models = models_under_test(run)
    with Outputs(force=force) as outputs:
        outputs.folder(folder)
        for model in models:
            path = outputs.file(folder / f"{recording_name(model.label)}.jsonl")
            export_items(AnswerRecordings(), partial(_responses, run, [model]), path, report)
        for role_model in _role_models(run):
            path = outputs.file(folder / f"{recording_name(f'{role_model.role}-{role_model.label}')}.jsonl")
            export_items(RoleRecordings(role_model), partial(_responses, run, models), path, report)
    report.files = outputs.written
    return report


def _responses(run: Run, models: list[RunModel]) -> Iterator[Response]:
    environments = list(run.environments.select_related("version__environment").order_by("position"))
    for model in models:
        for environment in environments:
            found = Response.objects.filter(run_environment=environment, run_model=model)
            found = found.select_related("case", "run_model").prefetch_related("scores")
            for response in found.order_by("case__position", "attempt").iterator(chunk_size=CHUNK):
                response.run_environment = environment
                yield response


def _call_key(response: Response) -> CallKey:
    """Return the key of the call for the answer of *response*."""
    return CallKey(
        purpose="answer",
        environment=response.run_environment.version.environment.slug,
        case=response.case.external_id,
        attempt=response.attempt,
        model=response.run_model.label,
    )


def _role_models(run: Run) -> list[RunModel]:
    """Return the simulated users and rubric judges of the run's environments."""
    if not run.models.exclude(role="").exists():
        return []
    environments = run.environments.select_related("version")
    roles = {role for environment in environments for role in compile_version(environment.version).roles}
    return list(run.models.filter(role__in=roles).order_by("role", "position"))


def role_rows(response: Response, role_model: RunModel) -> Iterator[JSONObject]:
    """Yield the replies of *role_model* while *response* was obtained and scored, as recorded rows."""
    if response.status == Response.Status.ERRORED:
        return
    environment = compile_version(response.run_environment.version)
    if role_model.position == 0:
        yield from _user_rows(response, environment, role_model.role)
    yield from _rubric_rows(response, environment, role_model)


def _user_rows(response: Response, environment: CompiledEnvironment, role: str) -> Iterator[JSONObject]:
    """Yield the simulated user's messages of the transcript, and the word with which it ended the conversation."""
    options = environment.harness_options(CaseData.from_json(response.case.data))
    user = getattr(options, "user", None)
    if not isinstance(user, UserOptions) or user.role != role:  # in a workspace, `user` is the number of an account
        return
    start = response.first_answer
    if not getattr(options, "prompt", "") and start:
        start -= 1  # the user opened the conversation
    dialogue = environment.harness.dialogue(options, response.messages[start:])
    replies = [message["content"] for message in dialogue if message["role"] == "user"]
    if response.stop == "done":
        if response.messages[-1]["role"] == "user":
            replies[-1] = f"{replies[-1]} {user.stop}"
        else:
            replies.append(user.stop)
    key = replace(_call_key(response), purpose="user", role=role)
    for turn, content in enumerate(replies):
        yield recorded_row(replace(key, turn=turn), content=content)


def _rubric_rows(response: Response, environment: CompiledEnvironment, judge: RunModel) -> Iterator[JSONObject]:
    """Yield the replies of *judge*, one for each rule that called it."""
    rules = {rule.spec.name for rule in environment.rules if judge.role in rule.scorer.roles(rule.spec.options)}
    key = replace(_call_key(response), purpose="rubric", role=judge.role, seat=judge.position)
    for score in response.scores.all():
        for reply in score.detail.get("judges", ()) if score.rule in rules else ():
            if reply["seat"] == judge.position:
                yield recorded_row(replace(key, rule=score.rule), content=reply["said"])


def recording_name(label: str) -> str:
    """Return *label* as a file name of letters, digits, `.`, `_` and `-`, with a digest if others are replaced."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", label).lstrip(".")[:80]
    return name if name == label else f"{name}-{digest(label)[:6]}"
