"""The pair judge: what it is asked, in both orders; what its answers come to; its quotes as spans. No database."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from hub.protocols.calls import JSON, Ask, CallKey, Message, ModelError, Reply, Tool
from hub.protocols.messages import call_text, opening, played, text_of
from hub.protocols.structured_replies import DATA_RULE, Judgement, as_data, judgement
from preferences.sides import Sides, lists_choices
from preferences.spans import Span, find_quote

PROMPT_VERSION = "pair-1"
_PROMPTS = Path(__file__).parent / "prompts"
_MAX_ISSUES = 20
_MAX_TEXT = 8000  # characters kept of a critique or a note


def _named(value: Any) -> Any:
    """A side or a winner as models write it: in lower case, emphasised, with "Response" before it."""
    if not isinstance(value, str):
        return value
    word = re.sub(r"[^a-z]+", "_", value.lower()).strip("_")
    word = re.sub(r"^(?:the_)?(?:response|assistant|answer|side|model|candidate)_(?=[ab]$)", "", word)
    return word.upper() if word in ("a", "b") else word


def _share(value: Any) -> Any:
    """A confidence written as a percentage, as a number."""
    written = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", value) if isinstance(value, str) else None
    return float(written[1]) / 100 if written else value


def _given(value: Any) -> Any:
    return "" if value is None else value


_SideName = Annotated[Literal["A", "B"], BeforeValidator(_named)]
_Text = Annotated[str, BeforeValidator(_given)]


class JudgedIssue(BaseModel):
    """One issue as the judge writes it."""

    model_config = ConfigDict(extra="ignore")
    side: _SideName
    category: _Text = ""
    severity: Literal["minor", "major", "critical"] = "major"
    quote: _Text = ""
    note: _Text = ""

    @field_validator("severity", mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        written = value.strip().lower() if isinstance(value, str) else ""
        return written if written in ("minor", "major", "critical") else "major"


class PairVerdict(BaseModel):
    """The judge's answer to one order."""

    model_config = ConfigDict(extra="ignore")
    critique: _Text = ""
    issues: Annotated[list[JudgedIssue], BeforeValidator(lambda value: [] if value is None else value)] = Field(
        default_factory=list
    )
    winner: Annotated[Literal["A", "B", "tie", "both_bad"], BeforeValidator(_named)]
    confidence: Annotated[float, Field(ge=0, le=1), BeforeValidator(_share)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One response before the judge: its `label#attempt`, whole transcript, and what scoring found, as text."""

    label: str
    messages: list[Message]
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A pair before the judge. `blind`: exactly one side passes, and the judge is not told which."""

    environment: str
    case: str
    first: Side
    second: Side
    blind: bool
    categories: Sequence[tuple[str, str]]  # slug and description


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundIssue:
    """An issue in the pair's own terms; `span` None where nothing was quoted."""

    side: Literal["first", "second"]
    category: str
    severity: str
    note: str
    span: Span | None


@dataclass(slots=True, kw_only=True)
class Order:
    """One order's call: `judged` as it came, or `error` where the judge could not be reached.

    `replies` are those of this call, also where an error came after the first; there are none of an answer that is
    known from before.
    `critique` and the notes of `issues` are what the judge wrote, with the tokens of `preferences.sides`.
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
        """first, second, tie or both_bad; empty where there is no usable answer."""
        answer = self.judged.answer if self.judged else None
        if answer is None:
            return ""
        return Sides(self.swapped).side(answer.winner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """What both orders come to. Orders that disagree make a tie, marked `order_sensitive`.

    `orders` are their verdicts, that with the first response shown first before the other; `order_critiques` what the
    judge wrote in each.
    """

    verdict: str
    order_sensitive: bool
    orders: tuple[str, ...]
    order_critiques: tuple[str, ...]
    confidence: float
    critique: str
    issues: list[FoundIssue]


Answers = Mapping[bool, PairVerdict]  # by whether the second response was shown as A


async def judge_pair(ask: Ask, question: Question, known: Answers | None = None) -> tuple[Order, Order]:
    """Ask in both orders at once, except for those whose answer is *known*. Never raises for what the judge does."""
    known = known or {}
    return await asyncio.gather(
        _order(ask, question, False, known.get(False)), _order(ask, question, True, known.get(True))
    )


async def _order(ask: Ask, question: Question, swapped: bool, known: PairVerdict | None) -> Order:
    if known is None:
        return await _ask(ask, question, swapped=swapped)
    order = Order(swapped=swapped, judged=Judgement(answer=known, replies=[], problems=[]))
    _resolve(order, known, question)
    return order


async def _ask(ask: Ask, question: Question, *, swapped: bool) -> Order:
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

    async def asked(
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
    ) -> Reply:
        reply = await ask(key, messages, tools, parameters)
        order.replies.append(reply)
        return reply

    try:
        order.judged = await judgement(asked, key, prompt(question, a, b), PairVerdict)
    except ModelError as error:
        order.error = error
        return order
    if order.judged.answer is not None:
        _resolve(order, order.judged.answer, question)
    return order


def _resolve(order: Order, answer: PairVerdict, question: Question) -> None:
    """Turn sides into the pair's own and quotes into spans; a quote that is not there strikes its issue."""
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
    """The suggestion, or None unless both orders were answered."""
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


# ---- what the judge is asked -----------------------------------------------------------------------------------------


@cache
def system_prompt(version: str) -> str:
    """The text of review/judge/prompts/<version>.txt. A prompt is never edited; a better one is a new version."""
    return (_PROMPTS / f"{version}.txt").read_text("utf-8").strip() + "\n\n" + DATA_RULE


def prompt(question: Question, a: Side, b: Side) -> list[Message]:
    """The messages: task, both responses, and, unless the judge is blind, what scoring found of each."""
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
    """Messages as text: one alone as it is, several under the names of who speaks, calls as names and arguments."""
    blocks = []
    for message in messages:
        lines = [text_of(message)] if text_of(message) else []
        for call in message.get("tool_calls") or []:
            lines.append(f"calls {call_text(call)}")
        blocks.append((message.get("role", ""), "\n".join(lines)))
    if len(blocks) == 1:
        return blocks[0][1]
    return "\n\n".join(f"[{role}]\n{text}" for role, text in blocks)


def evidence_text(side: dict[str, Any]) -> str:
    """One side of preferences.evidence as lines to read."""
    lines = [f"{side['status']}, score {side['score']}"]
    for rule in side["rules"]:
        lines.append(f"{rule['rule']}: {rule['value']}. {rule['reason']}".strip())
        ran = rule["execution"]
        if ran:
            lines.append(f"  ran: {ran['status']}, {ran['passed']} of {ran['total']} tests held")
            if ran["failure"]:
                lines.append("  " + json.dumps(ran["failure"], ensure_ascii=False))
    return "\n".join(lines)
