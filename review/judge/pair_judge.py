"""Pair judge: prompts in both orders, parsing of replies, combination into a suggestion. Does not use the database."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from hub.protocols.calls import CallKey, CallModel, ModelError, Reply
from hub.protocols.messages import JSON, Message, Tool, call_text, opening, played, text_of
from hub.protocols.structured_replies import DATA_RULE, Judgement, as_data, judgement
from preferences.sides import Sides, lists_choices
from preferences.spans import Span, find_quote

PROMPT_VERSION = "pair-1"
_PROMPTS = Path(__file__).parent / "prompts"
_MAX_ISSUES = 20
_MAX_TEXT = 8000  # maximum characters of a critique or a note


def _normalize_name(value: Any) -> Any:
    """Normalize a side or a winner that a model wrote in lower case, with emphasis or as "Response A"."""
    if not isinstance(value, str):
        return value
    word = re.sub(r"[^a-z]+", "_", value.lower()).strip("_")
    word = re.sub(r"^(?:the_)?(?:response|assistant|answer|side|model|candidate)_(?=[ab]$)", "", word)
    return word.upper() if word in ("a", "b") else word


def _parse_percentage(value: Any) -> Any:
    """Convert a confidence written as a percentage to a fraction."""
    written = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", value) if isinstance(value, str) else None
    return float(written[1]) / 100 if written else value


def _none_to_empty(value: Any) -> Any:
    return "" if value is None else value


_SideName = Annotated[Literal["A", "B"], BeforeValidator(_normalize_name)]
_Text = Annotated[str, BeforeValidator(_none_to_empty)]


class JudgedIssue(BaseModel):
    """Issue in a judge's reply."""

    model_config = ConfigDict(extra="ignore")
    side: _SideName
    category: _Text = ""
    severity: Literal["minor", "major", "critical"] = "major"
    quote: _Text = ""
    note: _Text = ""

    @field_validator("severity", mode="before")
    @classmethod
    def _normalize_severity(cls, value: Any) -> Any:
        written = value.strip().lower() if isinstance(value, str) else ""
        return written if written in ("minor", "major", "critical") else "major"


class PairVerdict(BaseModel):
    """Parsed reply of the judge for one order."""

    model_config = ConfigDict(extra="ignore")
    critique: _Text = ""
    issues: Annotated[list[JudgedIssue], BeforeValidator(lambda value: [] if value is None else value)] = Field(
        default_factory=list
    )
    winner: Annotated[Literal["A", "B", "tie", "both_bad"], BeforeValidator(_normalize_name)]
    confidence: Annotated[float, Field(ge=0, le=1), BeforeValidator(_parse_percentage)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Response shown to the judge: its `label#attempt`, its transcript, and the scoring results as text."""

    label: str
    messages: list[Message]
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Pair shown to the judge. `blind`: exactly one side passes, so the prompt leaves out the scoring results."""

    environment: str
    case: str
    first: Side
    second: Side
    blind: bool
    categories: Sequence[tuple[str, str]]  # slug and description


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundIssue:
    """Issue found by the judge, with its side of the pair. `span` is None if nothing was quoted."""

    side: Literal["first", "second"]
    category: str
    severity: str
    note: str
    span: Span | None


@dataclass(slots=True, kw_only=True)
class Order:
    """Result for one order of a pair: `judged`, or `error` if the judge gave no reply.

    `replies` holds the replies of this call, including those before an error; it is empty for a stored answer.
    `critique` and the notes of `issues` are the judge's texts with the tokens of `preferences.sides`. `struck` counts
    issues left out because their quote is not in the response.
    """

    swapped: bool
    replies: list[Reply] = field(default_factory=list)
    judged: Judgement[PairVerdict] | None = None
    error: ModelError | None = None
    critique: str = ""
    issues: list[FoundIssue] = field(default_factory=list)
    struck: int = 0

    @property
    def verdict(self) -> str:
        """One of first, second, tie and both_bad; empty if there is no parsed answer."""
        answer = self.judged.answer if self.judged else None
        if answer is None:
            return ""
        return Sides(self.swapped).side(answer.winner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Suggestion combined from both orders. If they disagree, it is a tie marked `order_sensitive`.

    `orders` holds the verdicts with the first and with the second response shown as A; `order_critiques` holds the
    critiques in the same sequence.
    """

    verdict: str
    order_sensitive: bool
    orders: tuple[str, ...]
    order_critiques: tuple[str, ...]
    confidence: float
    critique: str
    issues: list[FoundIssue]


Answers = Mapping[bool, PairVerdict]  # key: whether the second response was shown as A


async def judge_pair(call_model: CallModel, question: Question, known: Answers | None = None) -> tuple[Order, Order]:
    """Call the judge in both orders at once, except orders with a *known* answer. Errors are returned, not raised."""
    known = known or {}
    return await asyncio.gather(
        _judge_order(call_model, question, False, known.get(False)),
        _judge_order(call_model, question, True, known.get(True)),
    )


async def _judge_order(call_model: CallModel, question: Question, swapped: bool, known: PairVerdict | None) -> Order:
    if known is None:
        return await _ask_judge(call_model, question, swapped=swapped)
    order = Order(swapped=swapped, judged=Judgement(answer=known, replies=[], problems=[]))
    _resolve(order, known, question)
    return order


async def _ask_judge(call_model: CallModel, question: Question, *, swapped: bool) -> Order:
    a, b = Sides(swapped).ordered(question.first, question.second)
    key = CallKey(
        purpose="pair",
        environment=question.environment,
        case=question.case,
        role="judge",
        first=a.label,
        second=b.label,
    )
    order = Order(swapped=swapped)

    async def ask_and_keep(
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
    ) -> Reply:
        reply = await call_model(key, messages, tools, parameters)
        order.replies.append(reply)
        return reply

    try:
        order.judged = await judgement(ask_and_keep, key, prompt(question, a, b), PairVerdict)
    except ModelError as error:
        order.error = error
        return order
    if order.judged.answer is not None:
        _resolve(order, order.judged.answer, question)
    return order


def _resolve(order: Order, answer: PairVerdict, question: Question) -> None:
    """Translate A and B into sides and quotes into spans. Issues whose quote is not in the response are left out."""
    sides, choices = Sides(order.swapped), lists_choices(question.first.messages)
    order.critique = sides.letters_to_tokens(answer.critique[:_MAX_TEXT], choices=choices)
    for item in answer.issues[:_MAX_ISSUES]:
        side = sides.side(item.side)
        span = None
        if item.quote.strip():
            span = find_quote((question.first if side == "first" else question.second).messages, item.quote)
            if span is None:
                order.struck += 1
                continue
        order.issues.append(
            FoundIssue(
                side="first" if side == "first" else "second",
                category=item.category,
                severity=item.severity,
                note=sides.letters_to_tokens(item.note[:_MAX_TEXT], choices=choices),
                span=span,
            )
        )


def combine(orders: Sequence[Order]) -> Suggestion | None:
    """Return the suggestion, or None if an order has no parsed answer."""
    answers = [order.judged.answer for order in orders if order.judged and order.judged.answer]
    if len(answers) < 2:
        return None
    verdicts = {order.verdict for order in orders}
    agreed = len(verdicts) == 1
    in_order = sorted(orders, key=lambda order: order.swapped)
    unique: dict[tuple[Any, ...], FoundIssue] = {}
    for order in orders:
        for item in order.issues:
            place = (item.span.message, item.span.start, item.span.end) if item.span else item.note
            unique.setdefault((item.side, item.category, place), item)
    return Suggestion(
        verdict=verdicts.pop() if agreed else "tie",
        order_sensitive=not agreed,
        orders=tuple(order.verdict for order in in_order),
        order_critiques=tuple(order.critique for order in in_order),
        confidence=sum(answer.confidence for answer in answers) / len(answers),
        critique=in_order[0].critique,
        issues=list(unique.values()),
    )


# ---- prompts ---------------------------------------------------------------------------------------------------------


@cache
def system_prompt(version: str) -> str:
    """Return the text of review/judge/prompts/<version>.txt. Prompts are never edited; changes get a new version."""
    return (_PROMPTS / f"{version}.txt").read_text("utf-8").strip() + "\n\n" + DATA_RULE


def prompt(question: Question, a: Side, b: Side) -> list[Message]:
    """Return the messages: task, both responses, and the scoring results of each unless the judge is blind."""
    parts = [f"The task:\n{as_data('task', written(opening(a.messages)))}"]
    for name, side in (("A", a), ("B", b)):
        parts.append(f"Response {name}:\n{as_data('response', written(played(side.messages)))}")
        if not question.blind:
            parts.append(f"What scoring found of {name}:\n{as_data('evidence', side.evidence)}")
    listed = "\n".join(f"- {slug}: {description}" for slug, description in question.categories)
    parts.append(f"The categories:\n{listed}")
    return [
        {"role": "system", "content": system_prompt(PROMPT_VERSION)},
        {"role": "user", "content": "\n\n".join(parts)},
    ]


def written(messages: Sequence[Message]) -> str:
    """Return messages as text, under their roles if there are several, with tool calls as names and arguments."""
    blocks = []
    for message in messages:
        lines = [text_of(message)] if text_of(message) else []
        for call in message.get("tool_calls") or []:
            lines.append(f"calls {call_text(call)}")
        blocks.append((message.get("role", ""), "\n".join(lines)))
    if len(blocks) == 1:
        return blocks[0][1]
    return "\n\n".join(f"[{role}]\n{text}" for role, text in blocks)


def render_evidence(side: dict[str, Any]) -> str:
    """Return one side of `preferences.evidence.evidence_of` as text."""
    lines = [f"{side['status']}, score {side['score']}"]
    for rule in side["rules"]:
        lines.append(f"{rule['rule']}: {rule['value']}. {rule['reason']}".strip())
        ran = rule["execution"]
        if ran:
            lines.append(f"  ran: {ran['status']}, {ran['passed']} of {ran['total']} tests held")
            if ran["failure"]:
                lines.append("  " + json.dumps(ran["failure"], ensure_ascii=False))
    return "\n".join(lines)
