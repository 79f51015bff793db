"""Provider `openai`: any OpenAI-compatible chat-completions endpoint, called through the official client."""

import json
from collections.abc import Iterable
from urllib.parse import urlsplit

import httpx2
import openai

from hub.common.addresses import AddressRefused
from hub.common.problems import Problem
from hub.protocols.calls import ModelError, Reply
from hub.protocols.messages import JSON
from runs.config_source import ConfigSource
from runs.providers.base import ModelRequest, ModelSpec, Provider, ProviderContext
from runs.providers.openai_api.addresses import are_addresses_restricted, resolve_allowed_address
from runs.providers.openai_api.errors import connection_error, refusal_reply, status_error
from runs.providers.openai_api.http import MAX_BODY_BYTES, BodyTooLarge, BoundedClient
from runs.providers.openai_api.options import OpenAIOptions, describe_wrong_key_variable
from runs.providers.openai_api.replies import parse_reply


class OpenAI(Provider[OpenAIOptions]):
    type = "openai"
    summary = "Any OpenAI-compatible chat-completions endpoint: a hosted one, vLLM, Ollama, a gateway."
    Options = OpenAIOptions
    reserved = {
        "model": "it is the key `model` beside `parameters`",
        "messages": "they come from the environment",
        "tools": "they come from the environment",
        "stream": "replies are not streamed",
        "n": "use `attempts` for several responses to each case",
    }

    def __init__(self, spec: ModelSpec, options: OpenAIOptions, context: ProviderContext) -> None:
        super().__init__(spec, options, context)
        self._client = openai.AsyncOpenAI(
            api_key=context.api_key or "none",
            base_url=options.address,
            max_retries=context.retries,
            http_client=BoundedClient(context.observe),
        )

    @classmethod
    def problems(cls, options: OpenAIOptions, source: ConfigSource) -> Iterable[Problem]:
        name = options.api_key_env
        if name is None:
            return
        if name not in source.key_variables:
            yield Problem(describe_wrong_key_variable(name, sorted(source.key_variables)), "api_key_env")
        elif source.lookup is not None and source.lookup(name) is None:
            yield Problem(f"the variable {name} is not set; export {name}=<your key> or put it in .env", "api_key_env")

    @classmethod
    def identity(cls, options: OpenAIOptions) -> dict[str, JSON]:
        return {"model": options.model, "base_url": options.base_url}

    async def complete(self, request: ModelRequest) -> Reply:
        options, name = self.options, self.spec.name
        seconds = min(options.timeout_s, request.timeout_s or options.timeout_s)
        await self._check_address()
        try:
            # Not `chat.completions.create`: it converts every message by its types, a third of a call's CPU time.
            response = await self._client.post(
                options.path, cast_to=httpx2.Response, content=self._body(request), options={"timeout": seconds}
            )
        except openai.APIStatusError as error:
            reply = refusal_reply(error)
            if reply is None:
                raise status_error(error, name, options) from None
            return reply
        except openai.APITimeoutError:
            limit = "timeout_s of the model" if seconds == options.timeout_s else "the episode's time limit"
            message = f"The endpoint of {name} did not answer within {seconds:g} s ({limit})."
            raise ModelError("timeout", message) from None
        except BodyTooLarge:
            message = f"The endpoint of {name} sent more than {MAX_BODY_BYTES // 2**20} MiB for one reply."
            raise ModelError("malformed", message) from None
        except openai.APIConnectionError as error:
            raise connection_error(error, name, options) from None
        headers = response.headers
        request_id = headers.get("x-request-id") or headers.get("request-id") or ""
        answered = f"The endpoint of {name} answered {response.status_code}"
        latency_ms = response.elapsed.total_seconds() * 1000
        return parse_reply(response.content, latency_ms, request_id, answered=answered)

    def _body(self, request: ModelRequest) -> bytes:
        parameters = dict(request.parameters)
        if parameters.pop("send_seed", False):
            parameters["seed"] = request.seed
        body = {"model": self.options.model, "messages": list(request.messages), **parameters}
        if request.tools:
            body["tools"] = list(request.tools)
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()

    async def _check_address(self) -> None:
        """Raise ModelError if requests must not go to the address. The client would retry such a request."""
        if not are_addresses_restricted():
            return
        parts = urlsplit(self.options.base_url)
        try:
            await resolve_allowed_address(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        except AddressRefused as error:
            message = f"Requests must not go to the endpoint of {self.spec.name} from here: {error}."
            raise ModelError("configuration", message, fatal=True) from None
        except OSError:
            pass  # the request itself fails with the reason

    async def aclose(self) -> None:
        await self._client.close()
