"""The rule `judge`: one model or several mark the answer by weighted criteria."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from hub import extraction
from hub.harnesses.base import Services
from hub.protocols.calls import JSON, Message
from hub.protocols.messages import call_text, text_of
from hub.protocols.structured_replies import DATA_RULE, Judgement, as_data, judgement
from hub.scorers.base import Scorer, ScorerOptions, ScoringFailed, Submission, Verdict
from hub.scorers.texts import shown

_PROMPTS = Path(__file__).parent.parent / "prompts"


class Criterion(BaseModel):
    """What is marked: `text` says what the marks mean; `scale` is the lowest and the highest of them."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(min_length=1, max_length=64)]
    text: Annotated[str, Field(min_length=1)]
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    scale: tuple[float, float] = (0.0, 1.0)

    @model_validator(mode="after")
    def _upwards(self) -> "Criterion":
        if self.scale[0] >= self.scale[1]:
            raise ValueError(f"the scale of {self.name!r} must go from the lowest to the highest mark")
        return self

    def share(self, score: float) -> float:
        """*score* on the scale, from 0 to 1."""
        low, high = self.scale
        return (score - low) / (high - low)


class JudgeOptions(ScorerOptions):
    """`criteria`: a list of {name, text, weight, scale}. `role`: which of the run's roles judges; all its models do.

    `reference`: what a good answer says. `guidance`: anything else that the judge should know. `show`: the last
    `answer`, or the whole `transcript` of a conversation or of tool calls. `prompt`: the version of the judge's prompt;
    being an option, it is part of the scoring digest.
    """

    criteria: Annotated[list[Criterion], Field(min_length=1)]
    role: str = "rubric"
    reference: Any = None
    guidance: str = ""
    show: Literal["answer", "transcript"] = "answer"
    prompt: Literal["rubric-1"] = "rubric-1"

    @field_validator("criteria")
    @classmethod
    def _own_names(cls, value: list[Criterion]) -> list[Criterion]:
        names = [criterion.name for criterion in value]
        if len(set(names)) < len(names):
            raise ValueError("two criteria have the same name")
        return value


class Judge(Scorer):
    """The value is the mean over judges of the weighted mean over criteria, each mark scaled to 0..1."""

    type = "judge"
    summary = "One model or several mark the answer by weighted criteria."
    Options = JudgeOptions
    needs = "ask"

    def roles(self, options: Mapping[str, Any]) -> list[str]:
        return [str(options.get("role", "rubric"))]

    async def score(self, options: JudgeOptions, submission: Submission, services: Services) -> Verdict:
        """Raises ScoringFailed where no model fills the role, ModelError where one cannot be reached."""
        seats = services.seats.get(options.role, 0)
        if services.ask is None or not seats:
            raise ScoringFailed("configuration", f"No model fills the role {options.role!r}; name one under `roles`.")
        if options.show == "answer" and not submission.text.strip():
            return Verdict.of(False, "The answer is empty.")
        messages = prompt(options, submission)
        shape = _marks(options.criteria)
        key = replace(submission.key, purpose="rubric", role=options.role, rule=submission.rule, turn=0)
        judgements = await asyncio.gather(
            *(judgement(services.ask, replace(key, seat=seat), messages, shape) for seat in range(seats)),
            return_exceptions=True,  # every call ends before the first failure is told, so that none outlives the play
        )
        for judged in judgements:
            if isinstance(judged, BaseException):
                raise judged
        return _verdict(options, [judged for judged in judgements if isinstance(judged, Judgement)])


# ---- what the judge is asked -----------------------------------------------------------------------------------------


@cache
def system_prompt(version: str) -> str:
    """The text of hub/prompts/<version>.txt. A prompt is never edited; a better one is a new version."""
    return (_PROMPTS / f"{version}.txt").read_text("utf-8").strip() + " " + DATA_RULE


def prompt(options: JudgeOptions, submission: Submission) -> list[Message]:
    """The messages that a judge is sent: task, answer, reference and criteria, each apart."""
    task, work = _split(submission)
    parts = [f"The task that the assistant was given:\n{as_data('task', _written(task))}"]
    if options.show == "transcript":
        parts.append(f"What followed, to be marked:\n{as_data('transcript', _written(work))}")
    else:
        answer = extraction.without_reasoning(submission.text).strip()
        parts.append(f"The assistant's answer, to be marked:\n{as_data('answer', answer)}")
    if options.reference is not None:
        parts.append(f"For comparison, what a good answer says:\n{as_data('reference', str(options.reference))}")
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
    """The messages before the assistant's first own one, and the rest."""
    own = len(submission.messages) - len(submission.played)
    return submission.messages[:own], submission.played


def _written(messages: Sequence[Message]) -> str:
    """Messages as text, each under the name of who speaks; calls as their names and arguments."""
    written = []
    for message in messages:
        said = text_of(message)
        if message.get("role") == "assistant":
            said = extraction.without_reasoning(said)
        lines = [said] if said else []
        lines += [f"calls {call_text(call)}" for call in message.get("tool_calls") or []]
        written.append(f"[{message.get('role')}]\n" + "\n".join(lines))
    return "\n\n".join(written)


# ---- what it answers -------------------------------------------------------------------------------------------------


def _marks(criteria: Sequence[Criterion]) -> type[BaseModel]:
    """The shape of an answer: an object with {reason, score} for each criterion, the score within its scale."""
    fields: dict[str, Any] = {}
    for number, criterion in enumerate(criteria):
        low, high = criterion.scale
        score = Annotated[float, Field(ge=low, le=high, allow_inf_nan=False)]
        mark = create_model(f"Mark{number}", reason=(str, ""), score=(score, ...))
        fields[f"criterion_{number}"] = (mark, Field(alias=criterion.name))
    return create_model("Marks", **fields)


def _verdict(options: JudgeOptions, judgements: Sequence[Judgement[Any]]) -> Verdict:
    """`detail.judges` has one entry for each seat: what it `said`, word for word, and its marks or its problem."""
    criteria = options.criteria
    judges: list[JSON] = []
    marked: list[dict[str, Any]] = []
    for seat, judged in enumerate(judgements):
        entry: dict[str, Any] = {"seat": seat, "said": judged.text}
        if judged.answer is None:
            entry["problem"] = judged.problem
        else:
            marks = judged.answer.model_dump(by_alias=True)
            weights = sum(item.weight for item in criteria)
            value = sum(item.weight * item.share(marks[item.name]["score"]) for item in criteria) / weights
            entry |= {"value": value, "marks": marks}
            marked.append(entry)
        judges.append(entry)
    calls = sum(len(judged.replies) for judged in judgements)
    detail: dict[str, JSON] = {"judges": judges, "calls": calls, "prompt": options.prompt}
    mute = [judged for judged in judgements if judged.answer is None]
    if mute:
        who = f"{len(mute)} of {len(judgements)} judges" if len(judgements) > 1 else "The judge"
        return Verdict(
            value=None, reason=f"{who} gave no usable answer, asked twice: {mute[0].problem}.", detail=detail
        )
    values = [entry["value"] for entry in marked]
    detail["spread"] = max(values) - min(values)
    value = min(fmean(values), 1.0)
    return Verdict(value=value, reason=_reason(criteria, marked, value, len(values)), detail=detail)


def _reason(criteria: Sequence[Criterion], judges: Sequence[Any], value: float, count: int) -> str:
    """The marks, and what was said about the weakest criterion."""
    marks = {item.name: fmean(judge["marks"][item.name]["score"] for judge in judges) for item in criteria}
    listed = ", ".join(f"{item.name} {marks[item.name]:.3g} of {item.scale[1]:g}" for item in criteria)
    weakest = min(criteria, key=lambda item: item.share(marks[item.name]))
    if weakest.share(marks[weakest.name]) == 1:
        return f"Judged {value:.2f}: {listed}."
    strictest = min(judges, key=lambda judge: judge["marks"][weakest.name]["score"])
    why = strictest["marks"][weakest.name]["reason"]
    who = f"{count} judges, " if count > 1 else ""
    return f"Judged {value:.2f}: {who}{listed}. {weakest.name}: {shown(why)}."
