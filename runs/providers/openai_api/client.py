"""Client of one chat-completions endpoint: sends requests with the official client and explains what goes wrong."""

from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import httpx2
import openai

from hub.common.addresses import AddressRefused
from hub.protocols.calls import ModelError, Reply, quoting, split_quote
from runs.providers.base import ProviderContext
from runs.providers.openai_api.addresses import are_addresses_restricted, resolve_allowed_address
from runs.providers.openai_api.errors import connection_error, refusal_reply, status_error, without_endpoint
from runs.providers.openai_api.http import MAX_BODY_BYTES, BodyTooLarge, BoundedClient
from runs.providers.openai_api.options import OpenAIOptions
from runs.providers.openai_api.replies import parse_reply


class EndpointClient:
    """Client of the endpoint of the model *name*, for one event loop; call `aclose` when done."""

    def __init__(self, name: str, options: OpenAIOptions, context: ProviderContext) -> None:
        self._name = name
        self._options = options
        self._url = options.request_url
        # The environment names hosts that no proxy may see. A checked request goes to an address, not to such a name.
        direct = are_addresses_restricted() and bool(proxy_bypass(urlsplit(options.base_url).hostname or ""))
        self._client = openai.AsyncOpenAI(
            api_key=context.api_key or "none",
            base_url=options.address,
            max_retries=context.retries,
            http_client=BoundedClient(context.observe, context.wait_for_retry, direct=direct),
        )

    async def complete(self, body: bytes, timeout_s: float | None) -> Reply:
        """Send *body* and return the reply. Raises ModelError.

        timeout_s: time limit of each try, if it is shorter than the one in the options.
        """
        try:
            return await self._complete(body, timeout_s)
        except ModelError as error:
            own, reply = split_quote(str(error))
            if reply:
                error.args = (quoting(own, without_endpoint(reply, self._name, self._options)),)
            raise

    async def _complete(self, body: bytes, timeout_s: float | None) -> Reply:
        options, name = self._options, self._name
        seconds = min(options.timeout_s, timeout_s or options.timeout_s)
        await self._check_address()
        try:
            # Not `chat.completions.create`: it converts every message by its types, a third of a call's CPU time.
            response = await self._client.post(
                self._url, cast_to=httpx2.Response, content=body, options={"timeout": seconds}
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

    async def _check_address(self) -> None:
        """Raise ModelError if requests must not go to the address. The official client would retry such a request."""
        if not are_addresses_restricted():
            return
        parts = urlsplit(self._options.base_url)
        try:
            await resolve_allowed_address(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        except AddressRefused as error:
            message = f"Requests must not go to the endpoint of {self._name} from here: {error}."
            raise ModelError("configuration", message, fatal=True) from None
        except OSError:
            pass  # the request itself fails with the reason

    async def aclose(self) -> None:
        await self._client.close()
