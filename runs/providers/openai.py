"""The `openai` provider: any OpenAI-compatible chat-completions endpoint, through the official client."""

import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import httpx2
import openai
from openai._models import FinalRequestOptions
from pydantic import Field, field_validator

from hub.common import wording
from hub.environments.protocols import JSON, AskError, Message, Reply, Usage
from runs.providers.base import ModelSpec, Provider, ProviderContext, ProviderOptions, Request

if TYPE_CHECKING:
    from runs.config.parsing import Source

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_KEY_LENGTH = 24  # longer than any variable's name here; what looks like a key is refused before it is stored
_FATAL_CODES = {"insufficient_quota", "model_not_found", "invalid_api_key", "account_deactivated"}
_FILTER_CODES = {"content_filter", "content_policy_violation"}
_DROPPED = ("audio", "function_call", "annotations", "refusal")


class OpenAIOptions(ProviderOptions):
    """`model`: its name at the endpoint. `api_key_env`: the variable with the key. `timeout_s`: of one request."""

    model: Annotated[str, Field(min_length=1)]
    base_url: str = DEFAULT_BASE_URL
    api_key_env: str | None = None
    timeout_s: Annotated[float, Field(gt=0)] = 300.0

    @field_validator("base_url")
    @classmethod
    def _url(cls, value: str) -> str:
        if not value.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://, and usually ends in /v1")
        value = value.rstrip("/")
        if value.endswith("/chat/completions"):
            raise ValueError("must end before /chat/completions, which is added to it")
        return value


class _Client(openai.AsyncOpenAI):
    """The official client for one kind of call, whose options, address and headers it would make anew for each."""

    def __init__(self, *, api_key: str, base_url: str, timeout_s: float, retries: int) -> None:
        # aiohttp costs about half of the default transport's CPU per call: benchmarks/transports.py.
        super().__init__(api_key=api_key, base_url=base_url, http_client=openai.DefaultAioHttpClient())
        self._call = FinalRequestOptions.construct(
            method="post", url="/chat/completions", timeout=timeout_s, max_retries=retries, idempotency_key=""
        )
        self._like: dict[int, partial[httpx2.Request]] = {}

    async def complete(self, body: bytes) -> httpx2.Response:
        """The endpoint's answer to *body*, a chat completion's request; raises what the client raises.

        Not `chat.completions.create`: it walks through every message by its types, a quarter of a call's CPU, and what
        it would parse of the answer we read ourselves.
        """
        return await self.request(httpx2.Response, self._call.model_copy(update={"content": body}))

    def _build_request(self, options: FinalRequestOptions, *, retries_taken: int = 0) -> httpx2.Request:
        """As the client builds the first request (of each count of retries, a header of its own), with another body."""
        if retries_taken not in self._like:
            first = super()._build_request(options, retries_taken=retries_taken)
            headers = first.headers.copy()
            for name in ("Content-Length", "Cookie"):  # these are each request's own
                headers.pop(name, None)
            self._like[retries_taken] = partial(
                httpx2.Request, first.method, first.url, headers=headers, extensions=first.extensions
            )
        assert isinstance(options.content, bytes)
        request = self._like[retries_taken](stream=httpx2.ByteStream(options.content), cookies=self._client.cookies)
        request.read()
        return request


class OpenAI(Provider):
    type = "openai"
    summary = "Any OpenAI-compatible chat-completions endpoint: a hosted one, vLLM, Ollama, a gateway."
    Options = OpenAIOptions
    reserved = {
        "model": "it is the key `model` beside `parameters`",
        "messages": "they come from the environment",
        "tools": "they come from the environment",
        "stream": "answers are read whole",
        "n": "ask each case several times by `attempts`",
    }

    def __init__(self, spec: ModelSpec, options: OpenAIOptions, context: ProviderContext) -> None:
        super().__init__(spec, options, context)
        self._client = _Client(
            api_key=context.api_key or "none",
            base_url=options.base_url,
            timeout_s=options.timeout_s,
            retries=context.retries,
        )

    @classmethod
    def problems(cls, options: OpenAIOptions, source: "Source") -> Iterable[tuple[str, str]]:
        name = options.api_key_env
        if name is None:
            return
        if name not in source.key_variables:
            yield "api_key_env", _not_a_key_variable(name, sorted(source.key_variables))
        elif source.lookup is not None and source.lookup(name) is None:
            yield "api_key_env", f"the variable {name} is not set; export {name}=<your key> or put it in .env"

    @classmethod
    def identity(cls, options: OpenAIOptions) -> dict[str, JSON]:
        return {"model": options.model, "base_url": options.base_url}

    async def complete(self, request: Request) -> Reply:
        parameters = dict(request.parameters)
        if parameters.pop("send_seed", False):
            parameters["seed"] = request.seed
        body = {"model": self.options.model, "messages": list(request.messages), **parameters}
        if request.tools:
            body["tools"] = list(request.tools)
        try:
            response = await self._client.complete(_dumped(body))
        except openai.APIStatusError as error:
            reply = _refusal_by_status(error)
            if reply is None:
                raise _ask_error(error, self) from None
            return reply
        except openai.APIConnectionError as error:
            raise _connection_error(error, self) from None
        return _reply(response.content, response.elapsed.total_seconds() * 1000)

    async def aclose(self) -> None:
        await self._client.close()


def _not_a_key_variable(name: str, allowed: list[str]) -> str:
    """What to say of an `api_key_env` that is none of the *allowed* variables; a key itself is not repeated."""
    adds = "LLMEVAL_API_KEY_VARIABLES adds more"
    if len(name) > _KEY_LENGTH and not name.isupper():
        return (
            f"what stands here looks like a key; name the variable that holds it, one of {', '.join(allowed)} ({adds})"
        )
    return f"{name!r} is not an allowed variable; {wording.meant(name, allowed)} ({adds})"


def _dumped(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _reply(body: bytes, latency_ms: float) -> Reply:
    try:
        data = json.loads(body)
    except ValueError:
        raise AskError("not_json", f"The endpoint answered 200 with a body that is not JSON: {_head(body)}") from None
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        error = data.get("error") if isinstance(data, dict) else None
        said = f" It said: {_head(json.dumps(error).encode())}" if error else ""
        raise AskError("empty", f"The endpoint answered 200 with no choice in it.{said}")
    given = choices[0].get("message")
    if not isinstance(given, dict):
        raise AskError("empty", "The endpoint answered 200 with a choice that has no message.")
    refusal = given.get("refusal")
    message: Message = {
        "role": "assistant",
        **{k: v for k, v in given.items() if v is not None and k not in _DROPPED},
    }
    message["content"] = given.get("content") or (refusal if isinstance(refusal, str) else "")
    finish = "refusal" if refusal else str(choices[0].get("finish_reason") or "stop")
    return Reply(
        message=message,
        finish_reason=finish,
        usage=wire_usage(data.get("usage")),
        latency_ms=round(latency_ms, 1),
    )


def wire_usage(given: Any) -> Usage:
    """Token counts from the wire; an endpoint that leaves them out or sends nonsense counts as 0."""

    def count(source: Any, *names: str) -> int:
        for name in names:
            source = source.get(name) if isinstance(source, dict) else None
        return source if isinstance(source, int) and source > 0 else 0

    return Usage(
        input=count(given, "prompt_tokens"),
        output=count(given, "completion_tokens"),
        cached_input=min(count(given, "prompt_tokens_details", "cached_tokens"), count(given, "prompt_tokens")),
        reasoning=count(given, "completion_tokens_details", "reasoning_tokens"),
    )


def _refusal_by_status(error: openai.APIStatusError) -> Reply | None:
    """Some endpoints refuse by a 400 with a content-filter code: an answer, so that refusing never raises a score."""
    if error.status_code == 400 and error.code in _FILTER_CODES:
        return Reply(message={"role": "assistant", "content": ""}, finish_reason="content_filter")
    return None


def _ask_error(error: openai.APIStatusError, provider: OpenAI) -> AskError:
    said = _head(error.response.content)
    where = f"{provider.options.base_url} answered {error.status_code}"
    if error.status_code in (401, 403):
        name = provider.options.api_key_env
        remedy = f"check the key in {name}" if name else "set api_key_env to the variable that holds the key"
        return AskError("auth", f"{where}: {remedy}. It said: {said}", fatal=True)
    if error.status_code == 404 or error.code in _FATAL_CODES:
        return AskError("configuration", f"{where}: check model and base_url. It said: {said}", fatal=True)
    return AskError("http", f"{where}. It said: {said}")


def _connection_error(error: openai.APIConnectionError, provider: OpenAI) -> AskError:
    """No answer at all. aiohttp's transport reports a refused connection as a time-out, so that the causes decide."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None:
        causes.append(cause)
        cause = cause.__cause__
    refused = any(isinstance(item, OSError) and not isinstance(item, TimeoutError) for item in causes)
    where, options = provider.options.base_url, provider.options
    if isinstance(error, openai.APITimeoutError) and not refused:
        return AskError("timeout", f"{where} did not answer within {options.timeout_s:g} s.")
    return AskError("transport", f"{where} could not be reached: {causes[-1]}.")


def _head(body: bytes) -> str:
    text = " ".join(body[:2000].decode("utf-8", "replace").split())
    return text if len(text) <= 300 else text[:297] + "..."
