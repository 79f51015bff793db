"""Pair judge: calls a judge model in both orders and combines its verdicts. Does not use the database."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hub.protocols.calls import CallKey, CallModel, ModelError, Reply
from hub.protocols.messages import JSON, Message, Tool
from hub.protocols.structured_replies import StructuredReply, request_structured_reply
from preferences.sides import Side, Sides, lists_choices
from preferences.spans import Span, find_quote
from review.judge.prompts import PairForJudge, prompt
from review.judge.replies import PairVerdict

_MAX_ISSUES = 20
_MAX_TEXT = 8000  # maximum characters of a critique or a note


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundIssue:
    """Issue found by the judge, with its side of the pair. `span` is None if nothing was quoted."""

    side: Side
    category: str
    severity: str
    note: str
    span: Span | None


@dataclass(slots=True, kw_only=True)
class OrderResult:
    """Result of the judge for one order of a pair: `judged`, or `error` if the judge gave no reply.

    `replies` holds the replies of this call, including those before an error; it is empty for a stored answer.
    `critique` and the notes of `issues` are the judge's texts with the tokens of `preferences.sides`. `struck` counts
    issues left out because their quote is not in the response.
    """

    swapped: bool
    replies: list[Reply] = field(default_factory=list)
    judged: StructuredReply[PairVerdict] | None = None
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
        return Sides(self.swapped).verdict(answer.winner)


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


async def judge_pair(
    call_model: CallModel, pair: PairForJudge, known: Answers | None = None
) -> tuple[OrderResult, OrderResult]:
    """Call the judge in both orders at once, except orders with a *known* answer. Errors are returned, not raised."""
    known = known or {}
    return await asyncio.gather(
        _judge_order(call_model, pair, False, known.get(False)),
        _judge_order(call_model, pair, True, known.get(True)),
    )


async def _judge_order(
    call_model: CallModel, pair: PairForJudge, swapped: bool, known: PairVerdict | None
) -> OrderResult:
    if known is None:
        return await _ask_judge(call_model, pair, swapped=swapped)
    order = OrderResult(swapped=swapped, judged=StructuredReply(answer=known, replies=[], problems=[]))
    _resolve(order, known, pair)
    return order


async def _ask_judge(call_model: CallModel, pair: PairForJudge, *, swapped: bool) -> OrderResult:
    a, b = Sides(swapped).ordered(pair.first, pair.second)
    key = CallKey(
        purpose="pair",
        environment=pair.environment,
        case=pair.case,
        role="judge",
        first=a.label,
        second=b.label,
    )
    order = OrderResult(swapped=swapped)

    async def call_and_record(
        key: CallKey,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        parameters: Mapping[str, JSON] | None = None,
    ) -> Reply:
        reply = await call_model(key, messages, tools, parameters)
        order.replies.append(reply)
        return reply

    try:
        order.judged = await request_structured_reply(call_and_record, key, prompt(pair, a, b), PairVerdict)
    except ModelError as error:
        order.error = error
        return order
    if order.judged.answer is not None:
        _resolve(order, order.judged.answer, pair)
    return order


def _resolve(order: OrderResult, answer: PairVerdict, pair: PairForJudge) -> None:
    """Translate A and B into sides and quotes into spans. Issues whose quote is not in the response are left out."""
    sides, choices = Sides(order.swapped), lists_choices(pair.first.prompt)
    order.critique = sides.letters_to_tokens(answer.critique[:_MAX_TEXT], choices=choices)
    for item in answer.issues[:_MAX_ISSUES]:
        side = sides.side(item.side)
        span = None
        if item.quote.strip():
            response = pair.response(side)
            span = find_quote(response.messages, item.quote, start=len(response.prompt))
            if span is None:
                order.struck += 1
                continue
        order.issues.append(
            FoundIssue(
                side=side,
                category=item.category,
                severity=item.severity,
                note=sides.letters_to_tokens(item.note[:_MAX_TEXT], choices=choices),
                span=span,
            )
        )


def combine(orders: Sequence[OrderResult]) -> Suggestion | None:
    """Return the suggestion, or None if an order has no parsed answer."""
    answers = [order.judged.answer for order in orders if order.judged and order.judged.answer]
    if len(answers) < 2:
        return None
    verdicts = {order.verdict for order in orders}
    agreed = len(verdicts) == 1
    in_order = sorted(orders, key=lambda order: order.swapped)
    unique: dict[tuple[object, ...], FoundIssue] = {}
    for order in orders:
        for item in order.issues:
            place = (item.span.message, item.span.call, item.span.start, item.span.end) if item.span else item.note
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
