"""The rule `judge`: one or several judge models rate the answer by weighted criteria."""

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, TypedDict

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from hub import extraction
from hub.common.documents.validation import StrictNumbers
from hub.harnesses.base import Services
from hub.protocols.messages import JSON, Message, call_text, calls_of, text_of
from hub.protocols.structured_replies import DATA_RULE, StructuredReply, enclose_data, request_structured_reply
from hub.scorers.base import Scorer, ScorerOptions, ScoringFailed, Submission, Verdict
from hub.scorers.comparison.texts import quoted

_PROMPTS = Path(__file__).parent.parent / "prompts"


class Criterion(StrictNumbers):
    """One criterion: `text` explains the marks; `scale` is the lowest and the highest mark."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(min_length=1, max_length=64)]
    text: Annotated[str, Field(min_length=1)]
    weight: Annotated[float, Field(gt=0)] = 1.0
    scale: tuple[float, float] = (0.0, 1.0)

    @model_validator(mode="after")
    def _upwards(self) -> "Criterion":
        if self.scale[0] >= self.scale[1]:
            raise ValueError(f"the scale of {self.name!r} must go from the lowest to the highest mark")
        if not math.isfinite(self.scale[1] - self.scale[0]):
            raise ValueError(f"the marks of the scale of {self.name!r} must be finite numbers")
        return self

    def share(self, score: float) -> float:
        """Return *score* as a position on the scale, from 0 to 1."""
        low, high = self.scale
        return (score - low) / (high - low)


class RubricJudgeOptions(ScorerOptions):
    """`criteria`: a list of {name, text, weight, scale}. `role`: the run's role that judges; all its models judge.

    `reference`: what a good answer says. `guidance`: further instructions for the judge. `show`: the last
    `answer`, or the whole `transcript` of a conversation or of tool calls. `prompt`: the version of the judge's prompt,
    which as an option is part of the scoring digest.
    """

    criteria: Annotated[list[Criterion], Field(min_length=1)]
    role: str = "rubric"
    reference: object = None
    guidance: str = ""
    show: Literal["answer", "transcript"] = "answer"
    prompt: Literal["rubric-1"] = "rubric-1"

    @field_validator("criteria")
    @classmethod
    def _own_names(cls, value: list[Criterion]) -> list[Criterion]:
        names = [criterion.name for criterion in value]
        if len(set(names)) < len(names):
            raise ValueError("two criteria have the same name")
        if not math.isfinite(sum(criterion.weight for criterion in value)):
            raise ValueError("the sum of the weights of the criteria is not a finite number; give smaller weights")
        return value


class RubricJudge(Scorer[RubricJudgeOptions]):
    """Scorer whose value is the mean over judges of the weighted mean over criteria, each mark scaled to 0..1."""

    type = "judge"
    summary = "One or several judge models rate the answer by weighted criteria."
    Options = RubricJudgeOptions
    needs = "model"

    def roles(self, options: Mapping[str, object]) -> list[str]:
        return [str(options.get("role", "rubric"))]

    async def score(self, options: RubricJudgeOptions, submission: Submission, services: Services) -> Verdict:
        """Score the answer. Raises ScoringFailed if no model has the role, ModelError if one cannot be reached."""
        judge_count = services.models_per_role.get(options.role, 0)
        if services.call_model is None or not judge_count:
            raise ScoringFailed("configuration", f"No model has the role {options.role!r}; name one under `roles`.")
        if options.show == "answer" and not submission.text.strip():
            return Verdict.of(False, "The answer is empty.")
        messages = prompt(options, submission)
        reply_model = _reply_model(options.criteria)
        key = replace(submission.key, purpose="rubric", role=options.role, rule=submission.rule, turn=0)
        judgements = await asyncio.gather(
            *(
                request_structured_reply(services.call_model, replace(key, seat=seat), messages, reply_model)
                for seat in range(judge_count)
            ),
            return_exceptions=True,  # wait for all calls, so that none outlives the episode
        )
        for judged in judgements:
            if isinstance(judged, BaseException):
                raise judged
        return _verdict(options, [judged for judged in judgements if isinstance(judged, StructuredReply)])


# ---- prompt ----------------------------------------------------------------------------------------------------------


@cache
def system_prompt(version: str) -> str:
    """Return the text of hub/prompts/<version>.txt. A prompt is never edited; a better one is a new version."""
    return (_PROMPTS / f"{version}.txt").read_text("utf-8").strip() + " " + DATA_RULE


def prompt(options: RubricJudgeOptions, submission: Submission) -> list[Message]:
    """Return the messages for a judge: task, answer, reference and criteria, each delimited."""
    task, work = _split(submission)
    parts = [f"The task that the assistant was given:\n{enclose_data('task', _written(task))}"]
    if options.show == "transcript":
        parts.append(f"What followed, to be marked:\n{enclose_data('transcript', _written(work))}")
    else:
        answer = extraction.without_reasoning(submission.text).strip()
        parts.append(f"The assistant's answer, to be marked:\n{enclose_data('answer', answer)}")
    if options.reference is not None:
        parts.append(f"For comparison, what a good answer says:\n{enclose_data('reference', str(options.reference))}")
    if options.guidance:
        parts.append(options.guidance)
    listed = "\n".join(
        f"- {item.name} ({item.scale[0]:g} to {item.scale[1]:g}): {item.text}" for item in options.criteria
    )
    shape = ", ".join(
        f'{json.dumps(item.name, ensure_ascii=False)}: {{"reason": "…", "score": …}}' for item in options.criteria
    )
    parts.append(f"The criteria, each with its lowest and highest mark:\n{listed}")
    parts.append(f"Answer with one JSON object and nothing else:\n{{{shape}}}")
    return [
        {"role": "system", "content": system_prompt(options.prompt)},
        {"role": "user", "content": "\n\n".join(parts)},
    ]


def _split(submission: Submission) -> tuple[list[Message], list[Message]]:
    """Return the messages before the model's first message, and the rest."""
    own = len(submission.messages) - len(submission.response_messages)
    return submission.messages[:own], submission.response_messages


def _written(messages: Sequence[Message]) -> str:
    """Return messages as text, each headed by its role; calls as their names and arguments."""
    written = []
    for message in messages:
        said = text_of(message)
        if message.get("role") == "assistant":
            said = extraction.without_reasoning(said)
        lines = [said] if said else []
        lines += [f"calls {call_text(call)}" for call in calls_of(message)]
        written.append(f"[{message.get('role')}]\n" + "\n".join(lines))
    return "\n\n".join(written)


# ---- replies and verdict ---------------------------------------------------------------------------------------------


class CriterionMark(TypedDict):
    """Mark that a judge gave for one criterion."""

    reason: str
    score: float


Marks = dict[str, CriterionMark]  # by the criterion's name


def _reply_model(criteria: Sequence[Criterion]) -> type[BaseModel]:
    """Return the model of a reply: an object with {reason, score} for each criterion, the score within its scale."""
    fields: dict[str, Any] = {}  # as create_model declares them
    for number, criterion in enumerate(criteria):
        low, high = criterion.scale
        score = Annotated[float, Field(ge=low, le=high)]
        mark = create_model(f"Mark{number}", __base__=StrictNumbers, reason=(str, ""), score=(score, ...))
        fields[f"criterion_{number}"] = (mark, Field(alias=criterion.name))
    return create_model("Marks", **fields)


def _verdict(options: RubricJudgeOptions, judgements: Sequence[StructuredReply[BaseModel]]) -> Verdict:
    """Return the verdict. `detail.judges` has one entry per judge: its reply as `said`, its marks or its problem."""
    criteria = options.criteria
    weights = sum(item.weight for item in criteria)
    judges: list[JSON] = []
    all_marks: list[Marks] = []
    values: list[float] = []
    unusable = ""
    for seat, judged in enumerate(judgements):
        if judged.answer is None:
            unusable = unusable or judged.problem
            judges.append({"seat": seat, "said": judged.text, "problem": judged.problem})
            continue
        marks: Marks = judged.answer.model_dump(by_alias=True)
        value = sum(item.weight * item.share(marks[item.name]["score"]) for item in criteria) / weights
        judges.append({"seat": seat, "said": judged.text, "value": value, "marks": marks})
        all_marks.append(marks)
        values.append(value)
    calls = sum(len(judged.replies) for judged in judgements)
    detail: dict[str, JSON] = {"judges": judges, "calls": calls, "prompt": options.prompt}
    failed = len(judgements) - len(values)
    if failed:
        who = f"{failed} of {len(judgements)} judges" if len(judgements) > 1 else "The judge"
        return Verdict(value=None, reason=f"{who} gave no usable reply in two attempts: {unusable}.", detail=detail)
    detail["spread"] = max(values) - min(values)
    value = min(fmean(values), 1.0)
    return Verdict(value=value, reason=_reason(criteria, all_marks, value), detail=detail)


def _reason(criteria: Sequence[Criterion], judges: Sequence[Marks], value: float) -> str:
    """Return the mean marks, and the strictest judge's reason for the weakest criterion."""
    scores = {item.name: fmean(marks[item.name]["score"] for marks in judges) for item in criteria}
    listed = ", ".join(f"{item.name} {scores[item.name]:.3g} of {item.scale[1]:g}" for item in criteria)
    weakest = min(criteria, key=lambda item: item.share(scores[item.name]))
    if weakest.share(scores[weakest.name]) == 1:
        return f"Judged {value:.2f}: {listed}."
    strictest = min((marks[weakest.name] for marks in judges), key=lambda mark: mark["score"])
    who = f"{len(judges)} judges, " if len(judges) > 1 else ""
    return f"Judged {value:.2f}: {who}{listed}. {weakest.name}: {quoted(strictest['reason'])}."
