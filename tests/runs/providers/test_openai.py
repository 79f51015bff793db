"""The openai provider, with the real client over real HTTP."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from hub.environments.protocols import AskError, CallKey, Reply, Usage
from runs.providers.base import ModelSpec, ProviderContext, Request
from runs.providers.openai import OpenAI, OpenAIOptions
from tests.endpoint import Answer, completion, endpoint

KEY = CallKey(purpose="answer", environment="e", case="c", model="m")


async def ask(
    script: Callable[[dict[str, Any], int], Answer], *, retries: int = 2, timeout_s: float = 5, **request: Any
) -> tuple[Reply, list[dict[str, Any]]]:
    with endpoint(script) as server:
        options = OpenAIOptions(model="small", base_url=server.url, timeout_s=timeout_s)
        spec = ModelSpec(name="m", provider="openai")
        provider = OpenAI(spec, options, ProviderContext(retries=retries, api_key="k-123"))
        try:
            messages = [{"role": "user", "content": "hi"}]
            reply = await provider.complete(
                Request(**{"key": KEY, "messages": messages, "parameters": {}, "seed": 99, **request})
            )
        finally:
            await provider.aclose()
        assert all(headers["authorization"] == "Bearer k-123" for headers in server.headers)
        return reply, server.requests


async def error_of(script: Callable[[dict[str, Any], int], Answer], **options: Any) -> AskError:
    with pytest.raises(AskError) as caught:
        await ask(script, **options)
    return caught.value


async def test_an_answer_carries_text_finish_reason_usage_and_latency() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 40,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    reply, requests = await ask(lambda *_: completion("Paris", usage=usage), parameters={"temperature": 0, "top_k": 3})
    assert reply.message == {"role": "assistant", "content": "Paris"}
    assert (reply.finish_reason, reply.cached) == ("stop", False)
    assert reply.usage == Usage(input=100, output=40, cached_input=64, reasoning=30)
    assert reply.latency_ms is not None and reply.latency_ms > 0
    assert requests == [
        {"model": "small", "messages": [{"role": "user", "content": "hi"}], "temperature": 0, "top_k": 3}
    ]


async def test_tools_are_sent_and_tool_calls_come_back_as_they_are_on_the_wire() -> None:
    tool = {"type": "function", "function": {"name": "add", "description": "", "parameters": {"type": "object"}}}
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    reply, requests = await ask(lambda *_: completion(None, finish="tool_calls", tool_calls=[call]), tools=[tool])
    assert requests[0]["tools"] == [tool]
    assert reply.message == {"role": "assistant", "content": "", "tool_calls": [call]}
    assert reply.finish_reason == "tool_calls"


async def test_the_attempts_seed_is_sent_only_where_the_config_asks_for_it() -> None:
    _, plain = await ask(lambda *_: completion())
    _, seeded = await ask(lambda *_: completion(), parameters={"send_seed": True})
    assert "seed" not in plain[0]
    assert seeded[0]["seed"] == 99 and "send_seed" not in seeded[0]


async def test_later_calls_have_the_first_ones_headers_and_their_own_body_retry_count_and_cookies() -> None:
    def script(request: dict[str, Any], number: int) -> Answer:
        if number in (2, 5):
            return Answer({}, status=500, headers={"Retry-After": "0"})
        ended = {"Set-Cookie": "seat=; Max-Age=0" if number == 3 else "seat=7"}
        return Answer(completion("yes").body, headers=ended if number in (0, 3) else {})

    words = ["one", "größer, 二", "three", "four", "five"]
    with endpoint(script) as server:
        options = OpenAIOptions(model="small", base_url=server.url)
        provider = OpenAI(ModelSpec(name="m", provider="openai"), options, ProviderContext(retries=2, api_key="k-123"))
        for word in words:
            messages = [{"role": "user", "content": word}]
            await provider.complete(Request(key=KEY, messages=messages, tools=(), parameters={}, seed=1))
        await provider.aclose()
    asked = [item["messages"][0]["content"] for item in server.requests]
    assert asked == ["one", "größer, 二", "three", "three", "four", "five", "five"]
    own = {"content-length", "cookie", "x-stainless-retry-count"}
    shared = [{name: value for name, value in item.items() if name not in own} for item in server.headers]
    assert shared[0]["authorization"] == "Bearer k-123" and shared[0]["content-type"] == "application/json"
    assert all(item == shared[0] for item in shared)
    assert [item["x-stainless-retry-count"] for item in server.headers] == ["0", "0", "0", "1", "0", "0", "1"]
    assert [item.get("cookie") for item in server.headers] == [None, *["seat=7"] * 3, None, None, None]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_passing_failure_is_retried_after_the_time_that_the_server_names(status: int) -> None:
    def script(_: dict[str, Any], number: int) -> Answer:
        return Answer({"error": {}}, status, {"Retry-After": "0.05"}) if number < 2 else completion("at last")

    reply, requests = await ask(script)
    assert reply.message["content"] == "at last"
    assert len(requests) == 3


async def test_retries_end_and_the_error_quotes_the_server() -> None:
    error = await error_of(
        lambda *_: Answer({"error": {"message": "overloaded"}}, 503, {"Retry-After": "0.01"}), retries=1
    )
    assert (error.kind, error.fatal) == ("http", False)
    assert "503" in str(error) and "overloaded" in str(error)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_wrong_key_is_fatal_and_never_retried(status: int) -> None:
    calls = []

    def script(request: dict[str, Any], _: int) -> Answer:
        calls.append(request)
        return Answer({"error": {"message": "bad key"}}, status)

    error = await error_of(script)
    assert (error.kind, error.fatal, len(calls)) == ("auth", True, 1)


async def test_an_unknown_model_is_fatal() -> None:
    error = await error_of(lambda *_: Answer({"error": {"message": "no such model"}}, 404))
    assert (error.kind, error.fatal) == ("configuration", True)


async def test_exhausted_credit_is_fatal_although_it_is_a_429() -> None:
    body = {"error": {"message": "no credit", "code": "insufficient_quota"}}
    error = await error_of(lambda *_: Answer(body, 429, {"Retry-After": "0.01"}), retries=1)
    assert error.fatal


async def test_a_body_that_is_not_json_is_an_error_of_its_own_kind() -> None:
    error = await error_of(lambda *_: Answer(b"<html>gateway</html>"))
    assert error.kind == "not_json" and "<html>gateway" in str(error)


@pytest.mark.parametrize("body", [{"choices": []}, {}, [], {"choices": [{}]}, {"choices": [{"message": None}]}])
async def test_a_body_without_a_choice_is_empty(body: Any) -> None:
    assert (await error_of(lambda *_: Answer(body))).kind == "empty"


async def test_a_refusal_is_an_answer_with_its_words() -> None:
    reply, _ = await ask(lambda *_: completion(None, refusal="I can't help with that."))
    assert (reply.finish_reason, reply.message["content"]) == ("refusal", "I can't help with that.")


async def test_a_content_filter_is_an_answer_whether_by_finish_reason_or_by_status() -> None:
    by_reason, _ = await ask(lambda *_: completion("", finish="content_filter"))
    by_status, _ = await ask(lambda *_: Answer({"error": {"message": "x", "code": "content_filter"}}, 400))
    assert by_reason.finish_reason == by_status.finish_reason == "content_filter"


async def test_a_cut_at_max_tokens_is_an_answer_marked_length() -> None:
    reply, _ = await ask(lambda *_: completion("The answer is", finish="length"))
    assert (reply.finish_reason, reply.message["content"]) == ("length", "The answer is")


async def test_nonsense_in_usage_counts_as_zero() -> None:
    reply, _ = await ask(lambda *_: completion(usage={"prompt_tokens": "many", "completion_tokens": None}))
    assert reply.usage == Usage()


async def test_a_server_that_does_not_answer_in_time_is_a_timeout() -> None:
    never = threading.Event()

    def script(_: dict[str, Any], __: int) -> Answer:
        never.wait(2)
        return completion()

    try:
        error = await error_of(script, retries=0, timeout_s=0.2)
    finally:
        never.set()
    assert error.kind == "timeout"


async def test_an_address_where_nobody_listens_is_a_transport_error() -> None:
    with endpoint(lambda *_: completion()) as server:
        url = server.url
    provider = OpenAI(
        ModelSpec(name="m", provider="openai"), OpenAIOptions(model="x", base_url=url), ProviderContext(retries=0)
    )
    with pytest.raises(AskError) as caught:
        await provider.complete(Request(key=KEY, messages=[{"role": "user", "content": "hi"}], parameters={}))
    await provider.aclose()
    assert caught.value.kind == "transport" and url in str(caught.value)
