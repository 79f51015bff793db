"""The `openai` provider: any OpenAI-compatible chat-completions endpoint, through the official client."""

import asyncio
import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx2
import openai
from openai._models import FinalRequestOptions
from pydantic import Field, field_validator

from hub.common import wording
from hub.common.problems import Problem
from hub.protocols.calls import ModelError, Reply, Usage
from hub.protocols.messages import JSON, Message
from runs.config_source import ConfigSource
from runs.providers.addresses import AddressRefused, checked_address, guarded
from runs.providers.base import ModelRequest, ModelSpec, Provider, ProviderContext, ProviderOptions
from runs.providers.masking import mask

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_KEY_LENGTH = 24  # longer than any variable's name here; what looks like a key is refused before it is stored
_KEY_CODES = {"invalid_api_key", "account_deactivated"}
_QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached"}
_MODEL_CODES = {"model_not_found", "DeploymentNotFound"}
_FILTER_CODES = {"content_filter", "content_policy_violation", "moderation_blocked"}
# What a 404 says where the address or the model is wrong; any other concerns the one request.
_NOWHERE = re.compile(r"\b(model|deployment|url|route|path|page)\b|^\W*(resource )?not found\W*$", re.I)
_PHASES = ("connect", "read", "write", "pool")
# Query parameters of an address that carry a secret, by the end of their names without `-`, `_` and `.`.
_SECRET_PARAMETERS = ("key", "token", "secret", "signature", "password", "passwd", "pwd", "credential", "auth")
_MAX_DEPTH = 100  # levels of objects and lists in an answer; what is deeper can be neither stored nor shown
_MAX_FINISH = 32  # characters of a finish reason
_MAX_TOKENS = 2**31 - 1
_DROPPED = ("audio", "function_call", "annotations", "refusal")


_KEY_ADVICE = "put it into a variable and name that in api_key_env"


def _query_names(query: str) -> list[str]:
    return [name for name, _ in parse_qsl(query.replace(";", "&"), keep_blank_values=True)]


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
        parts = urlsplit(value)
        if parts.fragment:
            raise ValueError("must not hold a `#`")
        if "@" in parts.netloc:
            raise ValueError(f"must not contain a user name or password; {_KEY_ADVICE}")
        for name in _query_names(parts.query):
            plain = re.sub(r"[-_.]", "", name.lower())
            if plain == "sig" or plain.endswith(_SECRET_PARAMETERS):
                raise ValueError(f"must not contain a key (the parameter `{name}`); {_KEY_ADVICE}")
        if mask(value) != value:
            raise ValueError(f"must not contain a key; {_KEY_ADVICE}")
        path = parts.path.rstrip("/")
        if path.endswith("/chat/completions"):
            raise ValueError("must end before /chat/completions, which is added to it")
        return urlunsplit(parts._replace(path=path))

    @property
    def address(self) -> str:
        """`base_url` without its query, which is sent with each request and may hold what nobody should read."""
        return urlunsplit(urlsplit(self.base_url)._replace(query=""))

    @property
    def query(self) -> str:
        return urlsplit(self.base_url).query


class _HttpClient(openai.DefaultAioHttpClient):
    """The client's aiohttp transport, with a bound on each whole request and each failure under its own name.

    aiohttp costs about half of the default transport's CPU per call: benchmarks/transports.py.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send *request* once. A request that takes too long is not repeated; a broken connection may be.

        The transport's own time limit starts anew with every byte that arrives, and it reports broken and refused
        connections as time-outs.
        """
        try:
            async with asyncio.timeout(request.extensions["timeout"]["read"]):
                if guarded():
                    await _pin(request)
                    options["follow_redirects"] = False  # a redirect would lead past the check
                return await super().send(request, **options)
        except TimeoutError as error:
            raise openai.APITimeoutError(request=request) from error
        except Exception as error:
            cause = error.__cause__
            if isinstance(cause, TimeoutError):
                raise openai.APITimeoutError(request=request) from error
            raise httpx2.ReadError(str(cause or error) or type(cause or error).__name__, request=request) from error


async def _pin(request: httpx2.Request) -> None:
    """Direct *request* to an address that was checked, so that its host cannot resolve to another one meanwhile."""
    host = request.url.host
    port = request.url.port or {"https": 443}.get(request.url.scheme, 80)
    address = await checked_address(host, port)
    request.headers["Host"] = request.url.netloc.decode("ascii")
    request.extensions = {**request.extensions, "sni_hostname": host}
    request.url = request.url.copy_with(host=address)


class _Client(openai.AsyncOpenAI):
    """The official client for one kind of call, whose options, address and headers it would make anew for each."""

    def __init__(self, *, api_key: str, options: OpenAIOptions, retries: int) -> None:
        super().__init__(api_key=api_key, base_url=options.address, http_client=_HttpClient())
        self._query = options.query.encode()
        self._call = FinalRequestOptions.construct(
            method="post", url="/chat/completions", max_retries=retries, idempotency_key=""
        )
        self._like: dict[int, partial[httpx2.Request]] = {}

    async def complete(self, body: bytes, timeout_s: float) -> httpx2.Response:
        """The endpoint's answer to *body*, a chat completion's request; raises what the client raises.

        *timeout_s* bounds each request.

        Not `chat.completions.create`: it walks through every message by its types, a quarter of a call's CPU, and what
        it would parse of the answer we read ourselves.
        """
        call = self._call.model_copy(update={"content": body, "timeout": timeout_s})
        return await self.request(httpx2.Response, call)

    def _build_request(self, options: FinalRequestOptions, *, retries_taken: int = 0) -> httpx2.Request:
        """As the client builds the first request (of each count of retries, a header of its own), with another body."""
        if retries_taken not in self._like:
            first = super()._build_request(options, retries_taken=retries_taken)
            headers = first.headers.copy()
            for name in ("Content-Length", "Cookie"):  # these are each request's own
                headers.pop(name, None)
            url = first.url.copy_with(query=self._query) if self._query else first.url
            self._like[retries_taken] = partial(httpx2.Request, first.method, url, headers=headers)
        assert isinstance(options.content, bytes)
        request = self._like[retries_taken](
            stream=httpx2.ByteStream(options.content),
            cookies=self._client.cookies,
            extensions={"timeout": dict.fromkeys(_PHASES, options.timeout)},
        )
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
            options=options,
            retries=context.retries,
        )

    @classmethod
    def problems(cls, options: OpenAIOptions, source: ConfigSource) -> Iterable[Problem]:
        name = options.api_key_env
        if name is None:
            return
        if name not in source.key_variables:
            yield Problem(_not_a_key_variable(name, sorted(source.key_variables)), "api_key_env")
        elif source.lookup is not None and source.lookup(name) is None:
            yield Problem(f"the variable {name} is not set; export {name}=<your key> or put it in .env", "api_key_env")

    @classmethod
    def identity(cls, options: OpenAIOptions) -> dict[str, JSON]:
        return {"model": options.model, "base_url": options.base_url}

    async def complete(self, request: ModelRequest) -> Reply:
        parameters = dict(request.parameters)
        if parameters.pop("send_seed", False):
            parameters["seed"] = request.seed
        body = {"model": self.options.model, "messages": list(request.messages), **parameters}
        if request.tools:
            body["tools"] = list(request.tools)
        seconds = min(self.options.timeout_s, request.timeout_s or self.options.timeout_s)
        await self._check_address()
        try:
            response = await self._client.complete(_dumped(body), seconds)
        except openai.APIStatusError as error:
            reply = _refusal_by_status(error)
            if reply is None:
                raise _status_error(error, self) from None
            return reply
        except openai.APITimeoutError:
            limit = "timeout_s of the model" if seconds == self.options.timeout_s else "the episode's time limit"
            said = f"The endpoint of {self.spec.name} did not answer within {seconds:g} s ({limit})."
            raise ModelError("timeout", said) from None
        except openai.APIConnectionError as error:
            cause = _without_address(error.__cause__ or error, self.options)
            raise ModelError("transport", f"The endpoint of {self.spec.name} could not be reached: {cause}.") from None
        return _reply(response.content, response.elapsed.total_seconds() * 1000)

    async def _check_address(self) -> None:
        """Raises ModelError at once where the address is refused; the client would try again."""
        if not guarded():
            return
        parts = urlsplit(self.options.base_url)
        try:
            await checked_address(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        except AddressRefused as error:
            where = f"The endpoint of {self.spec.name}"
            raise ModelError("configuration", f"{where} must not be asked from here: {error}.", fatal=True) from None
        except OSError:
            pass  # the request itself reports what is wrong with the name

    async def aclose(self) -> None:
        await self._client.close()


def _not_a_key_variable(name: str, allowed: list[str]) -> str:
    """What to say of an `api_key_env` that is none of the *allowed* variables; a key itself is not repeated."""
    adds = "LLMEVAL_API_KEY_VARIABLES adds more"
    if len(name) > _KEY_LENGTH and not name.isupper():
        return (
            f"what stands here looks like a key; name the variable that holds it, one of {', '.join(allowed)} ({adds})"
        )
    return f"{name!r} is not an allowed variable; {wording.suggest(name, allowed)} ({adds})"


def _dumped(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _reply(body: bytes, latency_ms: float) -> Reply:
    """The reply in *body*. Raises ModelError for an answer that a model cannot have given."""
    choice, usage = _choice(body)
    given = choice.get("message")
    if choice.get("error") or choice.get("finish_reason") == "error":
        said = _told(choice.get("error") or given)
        raise ModelError("provider", f"The endpoint answered 200 and reported an error in place of an answer: {said}")
    if not isinstance(given, dict):
        raise ModelError("empty", "The endpoint answered 200 with a choice that has no message.")
    content, refusal = given.get("content"), given.get("refusal")
    if not _is_content(content):
        raise ModelError(
            "malformed", f"The endpoint answered 200 with `content` that is neither text nor parts: {_told(content)}"
        )
    message: Message = {
        **{k: v for k, v in given.items() if v is not None and k not in _DROPPED},
        "role": "assistant",
        "content": content or (refusal if isinstance(refusal, str) else ""),
    }
    finish = "refusal" if refusal else mask(str(choice.get("finish_reason") or "stop"))
    return Reply(
        message=message,
        finish_reason=finish[:_MAX_FINISH],
        usage=wire_usage(usage),
        metered=_count(usage, "prompt_tokens") is not None and _count(usage, "completion_tokens") is not None,
        latency_ms=round(latency_ms, 1),
    )


def _choice(body: bytes) -> tuple[dict[str, Any], Any]:
    """The first choice in *body*, and its usage. Raises ModelError."""
    try:
        data = json.loads(body, parse_constant=lambda _: None)  # NaN and infinities are no JSON
    except RecursionError:
        raise ModelError("malformed", "The endpoint answered 200 with JSON that is nested too deeply.") from None
    except ValueError:
        raise ModelError("not_json", f"The endpoint answered 200 with a body that is not JSON: {_head(body)}") from None
    if body.count(b"[") + body.count(b"{") > _MAX_DEPTH and _depth(data) > _MAX_DEPTH:
        raise ModelError("malformed", "The endpoint answered 200 with JSON that is nested too deeply.")
    data = data if isinstance(data, dict) else {}
    if data.get("error"):
        said = _told(data["error"])
        raise ModelError("provider", f"The endpoint answered 200 and reported an error in place of an answer: {said}")
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ModelError("empty", f"The endpoint answered 200 with no choice in it: {_head(body)}")
    return choices[0], data.get("usage")


def _depth(value: Any) -> int:
    """Levels of lists and objects in *value*; counted without recursion."""
    level, depth = [value], 0
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return depth


def _is_content(value: Any) -> bool:
    """Whether *value* can be a message's content: text, nothing, or a list of parts."""
    if isinstance(value, list):
        return all(isinstance(part, dict) and isinstance(part.get("text", ""), str) for part in value)
    return value is None or isinstance(value, str)


def wire_usage(given: Any) -> Usage:
    """Token counts from the wire; an endpoint that leaves them out or sends nonsense counts as 0."""
    return Usage(
        input=_count(given, "prompt_tokens") or 0,
        output=_count(given, "completion_tokens") or 0,
        cached_input=min(
            _count(given, "prompt_tokens_details", "cached_tokens") or 0, _count(given, "prompt_tokens") or 0
        ),
        reasoning=_count(given, "completion_tokens_details", "reasoning_tokens") or 0,
    )


def _count(source: Any, *names: str) -> int | None:
    """The number of tokens at *names*; None where there is none."""
    for name in names:
        source = source.get(name) if isinstance(source, dict) else None
    sound = isinstance(source, int) and not isinstance(source, bool) and 0 <= source <= _MAX_TOKENS
    return source if sound else None


# ---- errors ----------------------------------------------------------------------------------------------------------


def _without_address(cause: BaseException, options: OpenAIOptions) -> str:
    """What went wrong with a connection, without the host and the port that most messages name."""
    text = str(cause)
    link: BaseException | None = cause
    while link is not None:  # the transport reports in errors of its own; the system's is at the end of the chain
        if isinstance(link, OSError) and link.errno:
            return os.strerror(link.errno) if link.errno > 0 else "its host name could not be resolved"
        link = link.__cause__ or link.__context__
    return text.replace(urlsplit(options.base_url).netloc, "the host")


def _error_body(error: openai.APIStatusError) -> dict[str, Any]:
    """The error's object in the answer; empty where the answer holds none."""
    try:
        body = json.loads(error.response.content)
    except (ValueError, RecursionError):
        return {}
    inner = body.get("error", body) if isinstance(body, dict) else {}
    return inner if isinstance(inner, dict) else {"message": inner} if isinstance(inner, str) else {}


def _refusal_by_status(error: openai.APIStatusError) -> Reply | None:
    """The reply of an endpoint that refuses a prompt by a status: an answer, so that refusing never raises a score.

    Only where the answer says so in its fields: text alone may mean anything.
    """
    said = _error_body(error)
    metadata = said.get("metadata")
    flagged = isinstance(metadata, dict) and ("flagged_input" in metadata or "reasons" in metadata)
    if error.status_code in (400, 403) and (_text(said, "code") in _FILTER_CODES or flagged):
        return Reply(message={"role": "assistant", "content": ""}, finish_reason="content_filter")
    return None


def _status_error(error: openai.APIStatusError, provider: OpenAI) -> ModelError:
    """What a status means, and what to do about it. Fatal only where every other case would meet the same error."""
    # Everybody who sees the run reads this, so it names neither the address nor the variable of the key.
    status, options, said = error.status_code, provider.options, _error_body(error)
    codes = {_text(said, "code"), _text(said, "type")}
    kind, fatal, remedy = "http", False, ""
    if status == 401 or codes & _KEY_CODES:
        kind, fatal = "auth", True
        remedy = (
            "check the key in the variable that api_key_env names"
            if options.api_key_env
            else "set api_key_env to the variable that holds the key"
        )
    elif status == 402 or codes & _QUOTA_CODES:
        kind, fatal = "quota", True
        remedy = "the account's credit or quota is used up; top it up or raise its limit, then resume the run"
    elif codes & _MODEL_CODES or (status == 404 and _is_nowhere(said, options.model)):
        kind, fatal = "configuration", True
        remedy = "check `model` and `base_url` of it"
    elif status == 403:
        kind, remedy = "forbidden", "the key may not use this model, or the provider refused this one prompt"
    elif status in (400, 422):
        remedy = "the request was not accepted; if a parameter is named, correct `parameters` of the model"
    elif status == 404:
        remedy = "the endpoint has nothing that can serve this request"
    elif status == 429:
        remedy = "its rate limit was met on every try; lower `concurrency` or raise `limits.retries`"
    head = f"The endpoint of {provider.spec.name} answered {status}" + (f": {remedy}" if remedy else "")
    return ModelError(kind, f"{head}. It said: {_head(error.response.content)}", fatal=fatal)


def _is_nowhere(said: Mapping[str, Any], model: str) -> bool:
    """Whether a 404 means that the address or the model is wrong, rather than something of the one request."""
    message = _text(said, "message")
    return not message or model.lower() in message.lower() or _NOWHERE.search(message) is not None


def _text(source: Mapping[str, Any], key: str) -> str:
    value = source.get(key)
    return value if isinstance(value, str) else ""


def _told(value: Any) -> str:
    """*value*, as it came, for an error message."""
    return _head(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _head(body: bytes) -> str:
    # Masked before it is cut, since half a key could no longer be found.
    text = " ".join(mask(body[:20_000].decode("utf-8", "replace"))[:2000].split())
    return text if len(text) <= 300 else text[:297] + "..."
