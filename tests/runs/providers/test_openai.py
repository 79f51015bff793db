"""The openai provider, with the real client over real HTTP."""

import asyncio
import gzip
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings
from pydantic import ValidationError

from hub.protocols.calls import CallKey, ModelError, Reply, Usage
from llmeval_site.configuration.variables import EnvironmentVariables
from runs.providers.base import ModelRequest, ModelSpec, ProviderContext
from runs.providers.openai import OpenAI
from runs.providers.openai_api.options import OpenAIOptions
from tests.endpoint import Answer, completion, endpoint

KEY = CallKey(purpose="answer", environment="e", case="c", model="m")


async def ask(
    script: Callable[[dict[str, Any], int], Answer],
    *,
    retries: int = 2,
    timeout_s: float = 5,
    request_timeout: float | None = None,
    **request: Any,
) -> tuple[Reply, list[dict[str, Any]]]:
    with endpoint(script) as server:
        options = OpenAIOptions(model="small", base_url=server.url, timeout_s=timeout_s)
        spec = ModelSpec(name="m", provider="openai")
        provider = OpenAI(spec, options, ProviderContext(retries=retries, api_key="k-123"))
        try:
            messages = [{"role": "user", "content": "hi"}]
            reply = await provider.complete(
                ModelRequest(
                    **{
                        "key": KEY,
                        "messages": messages,
                        "parameters": {},
                        "seed": 99,
                        **({"timeout_s": request_timeout} if request_timeout else {}),
                        **request,
                    }
                )
            )
        finally:
            await provider.aclose()
        assert all(headers["authorization"] == "Bearer k-123" for headers in server.headers)
        return reply, server.requests


async def error_of(script: Callable[[dict[str, Any], int], Answer], **options: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(script, **options)
    return caught.value


async def test_reply_has_text_finish_reason_usage_and_latency() -> None:
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


async def test_tools_are_sent_and_tool_calls_are_returned_unchanged() -> None:
    tool = {"type": "function", "function": {"name": "add", "description": "", "parameters": {"type": "object"}}}
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    reply, requests = await ask(lambda *_: completion(None, finish="tool_calls", tool_calls=[call]), tools=[tool])
    assert requests[0]["tools"] == [tool]
    assert reply.message == {"role": "assistant", "content": "", "tool_calls": [call]}
    assert reply.finish_reason == "tool_calls"


async def test_tool_calls_get_what_the_next_request_must_have() -> None:
    def call(**parts: Any) -> dict[str, Any]:
        return {"type": "function", "function": {"name": "add", "arguments": "{}"}, **parts}

    object_arguments = {"name": "add", "arguments": {"a": 1}}
    calls: list[Any] = [call(id="1"), call(id="1"), call(id=None), {"function": object_arguments}, call(id=5), "add"]
    calls += [call(id="2", function={"name": "add", "arguments": None}), call(id="3", function=None)]
    reply, _ = await ask(lambda *_: completion(None, finish="tool_calls", tool_calls=calls))
    sent: list[Any] = list(reply.message["tool_calls"])
    assert sent[0] == call(id="1") and sent[5] == "add" and sent[7] == call(id="3", function=None)
    ids = [item["id"] for item in sent if item != "add"]
    assert len(set(ids)) == 7 and all(isinstance(item, str) and item for item in ids)
    assert sent[3]["type"] == "function" and sent[3]["function"]["arguments"] == '{"a": 1}'
    assert sent[6]["function"]["arguments"] == "{}"
    single, _ = await ask(lambda *_: completion(None, tool_calls=call(id="1")))
    assert single.message["tool_calls"] == [call(id="1")]


async def test_seed_is_sent_only_with_send_seed() -> None:
    _, plain = await ask(lambda *_: completion())
    _, seeded = await ask(lambda *_: completion(), parameters={"send_seed": True})
    assert "seed" not in plain[0]
    assert seeded[0]["seed"] == 99 and "send_seed" not in seeded[0]


async def test_headers_are_the_same_in_later_calls_except_retry_count_and_cookies() -> None:
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
            await provider.complete(ModelRequest(key=KEY, messages=messages, tools=(), parameters={}, seed=1))
        await provider.aclose()
    requested = [item["messages"][0]["content"] for item in server.requests]
    assert requested == ["one", "größer, 二", "three", "three", "four", "five", "five"]
    own = {"content-length", "cookie", "x-stainless-retry-count"}
    shared = [{name: value for name, value in item.items() if name not in own} for item in server.headers]
    assert shared[0]["authorization"] == "Bearer k-123" and shared[0]["content-type"] == "application/json"
    assert all(item == shared[0] for item in shared)
    assert [item["x-stainless-retry-count"] for item in server.headers] == ["0", "0", "0", "1", "0", "0", "1"]
    assert [item.get("cookie") for item in server.headers] == [None, *["seat=7"] * 3, None, None, None]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_temporary_failure_is_retried_after_retry_after(status: int) -> None:
    def script(_: dict[str, Any], number: int) -> Answer:
        return Answer({"error": {}}, status, {"Retry-After": "0.05"}) if number < 2 else completion("at last")

    reply, requests = await ask(script)
    assert reply.message["content"] == "at last"
    assert len(requests) == 3


@pytest.mark.parametrize("status", [429, 503])
async def test_wait_that_is_too_long_is_named_instead_of_retried(status: int) -> None:
    requested = []

    def script(request: dict[str, Any], _: int) -> Answer:
        requested.append(request)
        return Answer({"error": {}}, status, {"Retry-After": "7200"})

    error = await error_of(script)
    assert (error.kind, len(requested)) == ("http", 1)
    assert "it asks to wait 7,200 seconds" in str(error) and "resume the run later" in str(error)


async def test_error_after_the_last_retry_quotes_the_server() -> None:
    error = await error_of(
        lambda *_: Answer({"error": {"message": "overloaded"}}, 503, {"Retry-After": "0.01"}), retries=1
    )
    assert (error.kind, error.fatal) == ("http", False)
    assert "503" in str(error) and "overloaded" in str(error)


async def test_wrong_key_is_fatal_and_never_retried() -> None:
    calls = []

    def script(request: dict[str, Any], _: int) -> Answer:
        calls.append(request)
        return Answer({"error": {"message": "bad key"}}, 401)

    error = await error_of(script)
    assert (error.kind, error.fatal, len(calls)) == ("auth", True, 1)


@pytest.mark.parametrize(
    ("status", "body", "kind", "fatal", "hint"),
    [
        (401, {"error": {"message": "no"}}, "auth", True, "set api_key_env"),
        (403, {"error": {"message": "Your input was flagged"}}, "forbidden", False, "refused this one prompt"),
        (402, {"error": {"message": "pay"}}, "quota", True, "credit or quota is used up"),
        (403, {"error": {"code": "insufficient_quota"}}, "quota", True, "credit or quota is used up"),
        (
            404,
            {"error": {"message": "The model `small` does not exist"}},
            "configuration",
            True,
            "check `model` and `base_url`",
        ),
        (404, {"detail": "Not Found"}, "configuration", True, "base_url"),
        (404, b"<h1>Not Found</h1>", "configuration", True, "base_url"),
        (404, {"error": {"message": "Resource not found"}}, "configuration", True, "base_url"),
        (404, {"error": {"message": "No endpoints found that support tool use."}}, "http", False, "this request"),
        (400, {"error": {"message": "Unsupported parameter: top_q"}}, "http", False, "`parameters`"),
        (400, {"error": {"code": ["odd"], "message": 5}}, "http", False, "`parameters`"),
        (400, [1], "http", False, "`parameters`"),
        (
            400,
            {"error": {"code": "context_length_exceeded", "message": "no"}},
            "too_long",
            False,
            "fit into its context",
        ),
        (400, {"message": "maximum context length is 4096 tokens"}, "too_long", False, "fit into its context"),
        (413, b"Request Entity Too Large", "too_long", False, "larger than the endpoint accepts"),
        (429, {"error": {"message": "slow down"}}, "http", False, "rate limit"),
        (503, {"error": "busy"}, "http", False, 'answered 503. Response: {"error": "busy"}'),
        (503, b"\n", "http", False, "answered 503. The response is empty."),
    ],
)
async def test_status_errors_give_advice_and_are_fatal_if_they_concern_all_cases(
    status: int, body: Any, kind: str, fatal: bool, hint: str
) -> None:
    error = await error_of(lambda *_: Answer(body, status), retries=0)
    assert (error.kind, error.fatal) == (kind, fatal)
    assert hint in str(error)


@pytest.mark.parametrize("status", [200, 400])
async def test_errors_quote_neither_the_name_of_the_model_at_the_endpoint_nor_its_address(status: int) -> None:
    def answer(request: dict[str, Any], _: int) -> Answer:
        said = f"{request['model']}, {request['model']}-2026-01-01 at {server.url} and 127.0.0.1: no gpt-small-x"
        return Answer({"error": {"message": said, "code": "odd"}}, status)

    with endpoint(answer) as server:
        provider = OpenAI(
            ModelSpec(name="mine", provider="openai"),
            OpenAIOptions(model="gpt-small", base_url=server.url),
            ProviderContext(retries=0),
        )
        with pytest.raises(ModelError) as caught:
            await provider.complete(ModelRequest(key=KEY, messages=[{"role": "user", "content": "hi"}], parameters={}))
        await provider.aclose()
    assert "gpt-small" not in str(caught.value) and "127.0.0.1" not in str(caught.value)
    assert "[model removed], [model removed] at http://[host removed]/v1 and [host removed]: no" in str(caught.value)
    assert "The endpoint of mine answered" in str(caught.value) and '"code": "odd"' in str(caught.value)


async def test_unknown_model_is_fatal() -> None:
    error = await error_of(lambda *_: Answer({"error": {"message": "no such model"}}, 404))
    assert (error.kind, error.fatal) == ("configuration", True)


async def test_429_for_exhausted_credit_is_fatal() -> None:
    body = {"error": {"message": "no credit", "code": "insufficient_quota"}}
    error = await error_of(lambda *_: Answer(body, 429, {"Retry-After": "0.01"}), retries=1)
    assert (error.kind, error.fatal) == ("quota", True)
    assert "base_url" not in str(error)


async def test_body_that_is_not_json_has_error_kind_not_json() -> None:
    error = await error_of(lambda *_: Answer(b"<html>gateway</html>"))
    assert error.kind == "not_json" and "<html>gateway" in str(error)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "upstream died"}},
        {"choices": [{"error": {"message": "upstream died"}, "message": {"role": "assistant", "content": ""}}]},
        *(
            {"choices": [{"finish_reason": reason, "message": {"role": "assistant", "content": "upstream died"}}]}
            for reason in ("error", "abort", {"type": "abort"}, "insufficient_system_resource", "network_error")
        ),
    ],
)
async def test_error_reported_with_status_200_is_an_error(body: Any) -> None:
    error = await error_of(lambda *_: Answer(body))
    assert error.kind == "provider" and "upstream died" in str(error)


@pytest.mark.parametrize("content", [5, 1.5, True, {"text": "Paris"}, ["Paris"], [{"type": "text", "text": 5}]])
async def test_content_of_another_type_than_text_or_parts_is_malformed(content: Any) -> None:
    error = await error_of(lambda *_: completion(content))
    assert error.kind == "malformed" and "`content`" in str(error)


@pytest.mark.parametrize("levels", [200, 900, 100_000])
async def test_answer_nested_too_deeply_is_malformed(levels: int) -> None:
    body = json.dumps(completion("Paris", reasoning="HERE").body).replace('"HERE"', "[" * levels + "]" * levels)
    error = await error_of(lambda *_: Answer(body.encode()))
    assert error.kind == "malformed" and "nested too deeply" in str(error)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "The endpoint of m answered 200 with an empty body."),
        (b"pong", "The endpoint of m answered 200 with a body that is not JSON. Response: pong"),
        (
            b"\n<html>",
            "The endpoint of m answered 200 with a body that is not JSON; check `base_url` of the model, which usually "
            "ends in /v1. Response: <html>",
        ),
        (b"[]", "The endpoint of m answered 200 without a choice. Response: []"),
    ],
)
async def test_errors_of_replies_name_the_model(body: bytes, text: str) -> None:
    assert str(await error_of(lambda *_: Answer(body))) == text


async def test_infinite_numbers_in_a_reply_are_left_out() -> None:
    body = json.dumps(completion("Paris", details={"low": "HERE", "high": 1.5}).body).replace('"HERE"', "1e999")
    reply, _ = await ask(lambda *_: Answer(body.encode()))
    message: Any = reply.message
    assert message["details"] == {"low": None, "high": 1.5}


@pytest.mark.parametrize("headers", [{}, {"Content-Encoding": "gzip"}])
async def test_body_that_is_too_large_is_an_error_that_is_not_retried(
    headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.providers.openai_api.http.MAX_BODY_BYTES", 10_000)
    body = json.dumps(completion("a" * 20_000).body).encode()
    requested = []

    def script(request: dict[str, Any], _: int) -> Answer:
        requested.append(request)
        return Answer(gzip.compress(body) if headers else body, headers=headers)

    error = await error_of(script)
    assert (error.kind, len(requested)) == ("malformed", 1) and "sent more than" in str(error)


async def test_compressed_body_is_read() -> None:
    body = gzip.compress(json.dumps(completion("Paris").body).encode())
    reply, _ = await ask(lambda *_: Answer(body, headers={"Content-Encoding": "gzip"}))
    assert reply.message["content"] == "Paris" and reply.latency_ms


async def test_role_of_a_reply_is_always_assistant() -> None:
    reply, _ = await ask(lambda *_: completion("Paris", role="user"))
    assert reply.message == {"role": "assistant", "content": "Paris"}


async def test_long_finish_reason_and_huge_token_counts_are_limited() -> None:
    usage = {"prompt_tokens": 10**30, "completion_tokens": True}
    reply, _ = await ask(lambda *_: completion("Paris", finish="f" * 100, usage=usage))
    assert (len(reply.finish_reason), reply.usage) == (32, Usage())


@pytest.mark.parametrize("body", [{"choices": []}, {}, [], {"choices": [{}]}, {"choices": [{"message": None}]}])
async def test_body_without_a_choice_has_error_kind_empty(body: Any) -> None:
    assert (await error_of(lambda *_: Answer(body))).kind == "empty"


@pytest.mark.parametrize(
    ("headers", "request_id"),
    [
        ({}, "chatcmpl-1"),
        ({"x-request-id": "req_1"}, "req_1"),
        ({"request-id": "req_2"}, "req_2"),
        ({"x-request-id": "r" * 500}, "r" * 200),
    ],
)
async def test_reply_has_the_served_model_and_the_id_of_the_request(headers: dict[str, str], request_id: str) -> None:
    body = {**completion("Paris").body, "model": "small-2026-11-01"}
    reply, _ = await ask(lambda *_: Answer(body, headers=headers))
    assert (reply.served_model, reply.request_id) == ("small-2026-11-01", request_id)


async def test_served_model_and_id_that_are_no_text_are_left_out() -> None:
    reply, _ = await ask(lambda *_: Answer({**completion("Paris").body, "model": 5, "id": ["x"]}))
    assert (reply.served_model, reply.request_id) == ("", "")


async def test_refusal_is_a_reply_with_its_text() -> None:
    reply, _ = await ask(lambda *_: completion(None, refusal="I can't help with that."))
    assert (reply.finish_reason, reply.message["content"]) == ("refusal", "I can't help with that.")


async def test_content_filter_is_a_reply_for_finish_reason_and_status() -> None:
    by_reason, _ = await ask(lambda *_: completion("", finish="content_filter"))
    by_status, _ = await ask(lambda *_: Answer({"error": {"message": "x", "code": "content_filter"}}, 400))
    assert by_reason.finish_reason == by_status.finish_reason == "content_filter"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}),
        (403, {"code": 403, "message": "flagged", "metadata": {"reasons": ["violence"], "flagged_input": "..."}}),
    ],
)
async def test_prompt_flagged_by_moderation_is_a_refusal(status: int, error: Any) -> None:
    reply, _ = await ask(lambda *_: Answer({"error": error}, status))
    assert reply.finish_reason == "content_filter"


@pytest.mark.parametrize(
    ("given", "finish"),
    [
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("sensitive", "content_filter"),
        ("SAFETY", "content_filter"),
        ("eos", "eos"),
        (None, "stop"),
    ],
)
async def test_finish_reasons_of_other_servers_are_those_of_chat_completions(given: Any, finish: str) -> None:
    reply, _ = await ask(lambda *_: completion("Paris", finish=given))
    assert reply.finish_reason == finish


async def test_reply_cut_at_max_tokens_has_finish_reason_length() -> None:
    reply, _ = await ask(lambda *_: completion("The answer is", finish="length"))
    assert (reply.finish_reason, reply.message["content"]) == ("length", "The answer is")


async def test_invalid_token_counts_count_as_zero() -> None:
    reply, _ = await ask(lambda *_: completion(usage={"prompt_tokens": "many", "completion_tokens": None}))
    assert reply.usage == Usage()


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 10.0, "completion_tokens": 5.0}, Usage(input=10, output=5)),
        (
            {"total_tokens": 115, "completion_tokens_details": {"reasoning_tokens": 100}},
            Usage(input=10, output=105, reasoning=100),
        ),
        (
            {"total_tokens": 15, "completion_tokens_details": {"reasoning_tokens": 100}},
            Usage(input=10, output=5, reasoning=5),
        ),
        ({"prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 2}, Usage(input=10, output=5, cached_input=8)),
        ({"cached_tokens": 80}, Usage(input=10, output=5, cached_input=10)),
    ],
)
async def test_token_counts_of_other_servers_are_read(usage: dict[str, Any], counted: Usage) -> None:
    reply, _ = await ask(lambda *_: completion(usage={"prompt_tokens": 10, "completion_tokens": 5, **usage}))
    assert (reply.usage, reply.metered) == (counted, True)


async def test_server_that_does_not_answer_in_time_is_a_timeout() -> None:
    never = threading.Event()

    def script(_: dict[str, Any], __: int) -> Answer:
        never.wait(2)
        return completion()

    try:
        error = await error_of(script, retries=0, timeout_s=0.2)
    finally:
        never.set()
    assert error.kind == "timeout" and "did not answer within 0.2 s" in str(error)


async def test_timeout_is_not_retried() -> None:
    never = threading.Event()
    requested = []

    def script(request: dict[str, Any], _: int) -> Answer:
        requested.append(request)
        never.wait(2)
        return completion()

    try:
        await error_of(script, retries=3, timeout_s=0.2)
    finally:
        never.set()
    assert len(requested) == 1


async def test_timeout_limits_the_complete_reply() -> None:
    answer = completion("hello")
    answer.drip_s = 0.05
    error = await error_of(lambda *_: answer, retries=0, timeout_s=0.5)
    assert error.kind == "timeout"


async def test_shorter_timeout_of_the_caller_is_used() -> None:
    answer = completion("hello")
    answer.drip_s = 0.05
    error = await error_of(lambda *_: answer, retries=0, timeout_s=60, request_timeout=0.3)
    assert error.kind == "timeout" and "0.3 s (the episode's time limit)" in str(error)


async def test_connection_that_is_reset_is_retried_and_then_a_transport_error() -> None:
    reply, requests = await ask(lambda _, number: Answer(reset=True) if number == 0 else completion("at last"))
    assert (reply.message["content"], len(requests)) == ("at last", 2)
    error = await error_of(lambda *_: Answer(reset=True), retries=0)
    assert error.kind == "transport"
    assert "could not be reached" in str(error) and "did not answer" not in str(error)


async def test_reply_that_is_cut_or_cannot_be_decoded_was_not_unreachable() -> None:
    for answer in (Answer(b"{}", headers={"Content-Encoding": "gzip"}), Answer(None, 307, {"Location": "/v1/x"})):
        error = await error_of(lambda *_, answer=answer: answer, retries=0)
        assert error.kind == "transport" and "could not be reached" not in str(error)
        assert "The endpoint of m gave no complete HTTP response" in str(error) and ".." not in str(error)


async def test_server_without_http_is_a_transport_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def speak() -> None:
            taken, _ = listening.accept()
            taken.recv(100)
            taken.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            taken.close()

        speaking = threading.Thread(target=speak)
        speaking.start()
        options = OpenAIOptions(model="x", base_url=f"http://127.0.0.1:{listening.getsockname()[1]}/v1")
        provider = OpenAI(ModelSpec(name="m", provider="openai"), options, ProviderContext(retries=0))
        with pytest.raises(ModelError) as caught:
            await provider.complete(ModelRequest(key=KEY, messages=[], parameters={}))
        await provider.aclose()
        speaking.join()
    assert caught.value.kind == "transport"


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        (
            "/openai/deployments/d?api-version=2024-10-21",
            "/openai/deployments/d/chat/completions?api-version=2024-10-21",
        ),
        ("/v1/?a=1&a=2&b=%26x", "/v1/chat/completions?a=1&a=2&b=%26x"),
    ],
)
async def test_query_of_base_url_is_sent_but_not_shown(given: str, path: str) -> None:
    def script(_: dict[str, Any], number: int) -> Answer:
        return Answer({}, 503, {"Retry-After": "0"}) if number == 0 else completion() if number < 3 else Answer({}, 500)

    with endpoint(script) as server:
        options = OpenAIOptions(model="small", base_url=server.url.removesuffix("/v1") + given)
        provider = OpenAI(ModelSpec(name="m", provider="openai"), options, ProviderContext(retries=1))
        for _ in range(2):
            await provider.complete(ModelRequest(key=KEY, messages=[], parameters={}))
        with pytest.raises(ModelError) as caught:
            await provider.complete(ModelRequest(key=KEY, messages=[], parameters={}))
        await provider.aclose()
    assert set(server.paths) == {path}
    assert "?" not in str(caught.value)


@pytest.mark.parametrize("given", ["/v1/chat/completions", "/v1/chat/completions/?a=1", "/v1#part"])
def test_invalid_base_url_is_rejected(given: str) -> None:
    with pytest.raises(ValidationError):
        OpenAIOptions(model="small", base_url=f"http://127.0.0.1:9{given}")


SECRET_ADDRESSES = [
    "https://user:hunter22secret@host/v1",
    "https://hunter22secret@host/v1",
    *(
        f"https://host/v1?a=1&{name}=hunter22secret"
        for name in (
            "api_key",
            "api-key",
            "apikey",
            "key",
            "KEY",
            "token",
            "access_token",
            "sig",
            "X-Amz-Signature",
            "subscription-key",
            "client_secret",
            "password",
        )
    ),
    "https://host/v1?a=1;api_key=hunter22secret",
]


@pytest.mark.parametrize("url", SECRET_ADDRESSES)
def test_base_url_with_a_secret_is_rejected_without_showing_it(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        OpenAIOptions(model="small", base_url=url)
    (problem,) = caught.value.errors()
    assert "api_key_env" in problem["msg"] and "hunter22secret" not in problem["msg"]


def test_base_url_that_contains_a_configured_key_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "ENV", EnvironmentVariables({"OPENAI_API_KEY": "hunter22secret"}))
    with pytest.raises(ValidationError, match="must not contain a key"):
        OpenAIOptions(model="small", base_url="https://host/hunter22secret/v1")


async def test_refused_connection_is_a_transport_error() -> None:
    with endpoint(lambda *_: completion()) as server:
        url = server.url
    provider = OpenAI(
        ModelSpec(name="m", provider="openai"), OpenAIOptions(model="x", base_url=url), ProviderContext(retries=0)
    )
    with pytest.raises(ModelError) as caught:
        await provider.complete(ModelRequest(key=KEY, messages=[{"role": "user", "content": "hi"}], parameters={}))
    await provider.aclose()
    assert caught.value.kind == "transport"
    assert str(caught.value).endswith("Connection refused. Check `base_url`, and that the endpoint is running.")


async def connection_error(url: str) -> str:
    """Return the message of the error for a model at *url*."""
    provider = OpenAI(
        ModelSpec(name="m", provider="openai"), OpenAIOptions(model="x", base_url=url), ProviderContext(retries=0)
    )
    with pytest.raises(ModelError) as caught:
        await provider.complete(ModelRequest(key=KEY, messages=[{"role": "user", "content": "hi"}], parameters={}))
    await provider.aclose()
    assert caught.value.kind == "transport"
    return str(caught.value)


async def test_host_name_that_cannot_be_resolved_is_explained() -> None:
    message = await connection_error("http://name.invalid/v1")
    assert message == (
        "The endpoint of m could not be reached: its host name could not be resolved. "
        "Check `base_url`, and that this machine can resolve names."
    )


async def test_endpoint_without_tls_at_an_https_address_is_explained() -> None:
    with endpoint(lambda *_: completion()) as server:
        message = await connection_error(server.url.replace("http://", "https://"))
    assert message.startswith("The endpoint of m could not be reached with TLS: ")
    assert message.endswith("Check `base_url`: an endpoint without TLS has an address that starts with http://.")
    assert "Operation not permitted" not in message


@asynccontextmanager
async def tls_server(folder: Path) -> AsyncIterator[int]:
    """Run a server with a certificate that nobody trusts, and yield its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed_certificate(folder / "certificate.pem"))
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


async def test_certificate_that_is_not_trusted_is_explained(tmp_path: Path) -> None:
    async with tls_server(tmp_path) as port:
        message = await connection_error(f"https://127.0.0.1:{port}/v1")
    assert message == (
        "The endpoint of m could not be reached with TLS: its certificate is not valid here: self-signed certificate. "
        "Check `base_url`; if an authority of your own issued the certificate, name the file with the "
        "authority's certificate in the variable SSL_CERT_FILE."
    )


async def test_endpoint_with_tls_at_an_http_address_is_explained(tmp_path: Path) -> None:
    async with tls_server(tmp_path) as port:
        message = await connection_error(f"http://127.0.0.1:{port}/v1")
    assert message == (
        "The endpoint of m gave no complete HTTP response: Server disconnected. "
        "If it requires TLS, its `base_url` starts with https://."
    )


async def test_alert_of_tls_at_an_http_address_is_explained() -> None:
    async def alert(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"\x15\x03\x03\x00\x02\x02\x16")
        writer.close()

    async with await asyncio.start_server(alert, "127.0.0.1", 0) as server:
        message = await connection_error(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    assert message == (
        "The endpoint of m answered with TLS. Check `base_url`: an endpoint with TLS has an address that starts with "
        "https://."
    )


@pytest.mark.parametrize(
    "said",
    [
        "<center>The plain HTTP request was sent to HTTPS port</center>",
        "Client sent an HTTP request to an HTTPS server.",
        "Reason: You're speaking plain HTTP to an SSL-enabled server port.",
    ],
)
async def test_web_server_that_requires_https_is_explained(said: str) -> None:
    with endpoint(lambda *_: Answer(said.encode(), 400)) as server:
        provider = OpenAI(
            ModelSpec(name="m", provider="openai"),
            OpenAIOptions(model="x", base_url=server.url),
            ProviderContext(retries=0),
        )
        with pytest.raises(ModelError) as caught:
            await provider.complete(ModelRequest(key=KEY, messages=[{"role": "user", "content": "hi"}], parameters={}))
        await provider.aclose()
    assert (caught.value.kind, caught.value.fatal) == ("configuration", True)
    assert "answered 400: check `base_url`: an endpoint with TLS has an address that starts with https://." in str(
        caught.value
    )


def self_signed_certificate(path: Path) -> Path:
    """Write a private key and its certificate for localhost to *path*."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(secret + certificate.public_bytes(pem))
    return path


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 429, 500])
async def test_error_messages_contain_neither_address_nor_key_variable(status: int) -> None:
    with endpoint(lambda *_: Answer({}, status)) as server:
        options = OpenAIOptions(model="gpt-hidden", base_url=server.url, api_key_env="VLLM_API_KEY")
        provider = OpenAI(ModelSpec(name="small", provider="openai"), options, ProviderContext(retries=0))
        with pytest.raises(ModelError) as refused:
            await provider.complete(ModelRequest(key=KEY, messages=[], parameters={}))
    with pytest.raises(ModelError) as unreachable:  # nobody listens there any more
        await provider.complete(ModelRequest(key=KEY, messages=[], parameters={}))
    await provider.aclose()
    for error in (refused, unreachable):
        text = str(error.value)
        assert "The endpoint of small" in text
        assert not [
            part
            for part in ("127.0.0.1", server.url.rpartition(":")[2].partition("/")[0], "gpt-hidden", "VLLM")
            if part in text
        ], text


async def test_reply_with_characters_that_cannot_be_sent_again_continues_the_conversation() -> None:
    answer = completion("half \ud800\0")
    call = {"id": "1", "type": "function", "function": {"name": "\udfff", "arguments": "{}"}}
    answer.body["choices"][0]["message"]["tool_calls"] = [call]
    reply, _ = await ask(lambda *_: answer)
    assert reply.message["content"] == "half \ufffd\ufffd"
    assert reply.message["tool_calls"] == [{**call, "function": {"name": "\ufffd", "arguments": "{}"}}]
    _, requests = await ask(lambda *_: completion("ok"), messages=[reply.message])
    assert requests[0]["messages"] == [reply.message]
