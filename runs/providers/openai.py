"""Provider `openai`: any OpenAI-compatible chat-completions endpoint, called through the official client."""

import json
from collections.abc import Iterable

from hub.common.problems import Problem
from hub.protocols.calls import Reply
from hub.protocols.messages import JSON
from runs.config_source import ConfigSource
from runs.providers.base import ModelRequest, ModelSpec, Provider, ProviderContext
from runs.providers.openai_api.options import OpenAIOptions, describe_wrong_key_variable


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
        # The official client takes a second to import; commands that only read configs do without it.
        from runs.providers.openai_api.client import EndpointClient

        self._client = EndpointClient(spec.name, options, context)

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
        return await self._client.complete(self._body(request), request.timeout_s)

    def _body(self, request: ModelRequest) -> bytes:
        parameters = dict(request.parameters)
        if parameters.pop("send_seed", False):
            parameters["seed"] = request.seed
        body = {"model": self.options.model, "messages": list(request.messages), **parameters}
        if request.tools:
            body["tools"] = list(request.tools)
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()

    async def aclose(self) -> None:
        await self._client.aclose()
