"""Test of a registered model: one request to its endpoint, with what came back."""

import asyncio
from dataclasses import dataclass

from hub.common.output.foreign_text import clean
from hub.protocols.calls import CallKey, ModelError, Reply
from hub.protocols.messages import text_of
from runs.execution.connections import close_all, connect
from runs.providers.base import ModelRequest, ModelSpec
from runs.reports import formats

_PROMPT = "Reply with the single word: ready"
_TIMEOUT_S = 30.0
_SHOWN = 80  # characters of the reply


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """Outcome of a test: whether a reply arrived, and sentences about it."""

    passed: bool
    message: str


def check_model(spec: ModelSpec) -> ModelCheck:
    """Send one request to the model *spec*, without retries and cache, and describe the outcome."""
    try:
        return ModelCheck(True, _describe_reply(spec, asyncio.run(_ask(spec))))
    except ModelError as error:
        return ModelCheck(False, f"The test request failed. {error}")


async def _ask(spec: ModelSpec) -> Reply:
    connection = connect(spec, concurrency=1, retries=0)
    request = ModelRequest(
        key=CallKey(purpose="answer", environment="", case="test of the connection"),
        messages=[{"role": "user", "content": _PROMPT}],
        parameters=spec.parameters,
        timeout_s=_TIMEOUT_S,
    )
    try:
        return await connection.provider.complete(request)
    finally:
        await close_all([connection])


def _describe_reply(spec: ModelSpec, reply: Reply) -> str:
    text = formats.cut(clean(text_of(reply.message)), _SHOWN)
    took = f" after {formats.milliseconds(reply.latency_ms)} ms" if reply.latency_ms is not None else ""
    named = f", as {formats.cut(clean(reply.served_model), _SHOWN)}" if reply.served_model else ""
    return f"{spec.name} replied{took}{named}: “{text or '(empty)'}”. {_check_price(spec, reply)}"


def _check_price(spec: ModelSpec, reply: Reply) -> str:
    if spec.price is None:
        return "It has no price, so costs of runs will be unknown and a budget cannot be kept."
    if not reply.metered and not spec.price.free:
        return "The endpoint reports no token counts, so costs of runs will be unknown in spite of the price."
    cost = formats.money(spec.price.cost(reply.usage))
    return f"By its price, this request ({reply.usage.input} tokens in, {reply.usage.output} out) cost {cost}."
