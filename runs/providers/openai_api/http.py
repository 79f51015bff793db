"""HTTP client of providers: bounds the time and size of each response, and checks where requests go.

It sends each request once. Retries are made by the official OpenAI client, which calls `send` again for each of them;
`runs/providers/openai_api/client.py` sets their number from `limits.retries`.
"""

import asyncio
from typing import TypedDict, cast

import httpx2
import openai

from runs.providers.base import ObserveResponse, WaitForRetry
from runs.providers.openai_api.addresses import are_addresses_restricted, resolve_allowed_address

MAX_BODY_BYTES = 64 * 1024 * 1024  # after decompression; a bomb of 9 MB took 4 GB of memory
_ALL_SCHEMES = ("http://", "https://", "all://")  # for which the environment may name a proxy
_RETRIES_HEADER = "x-stainless-retry-count"  # set by the OpenAI client: how often the request was sent before
_CODED = (b"content-encoding", b"content-length", b"transfer-encoding")  # headers that describe the body as it was sent


class BodyTooLarge(openai.OpenAIError):
    """The body of a response exceeds MAX_BODY_BYTES. Such a request is not retried."""


class SendOptions(TypedDict, total=False):
    """Keyword arguments that the OpenAI client passes to `send`."""

    stream: bool
    auth: httpx2.Auth
    follow_redirects: bool


class BoundedClient(openai.DefaultAioHttpClient):
    """HTTP client with a time limit for each complete request, and distinct errors for time-outs and connections.

    aiohttp costs about half of the default transport's CPU per call: benchmarks/transports.py.
    """

    def __init__(self, observe: ObserveResponse, wait_for_retry: WaitForRetry, *, direct: bool = False) -> None:
        """observe: called with the status and the headers of each response. wait_for_retry: awaited before each retry.

        direct: use no proxy of the environment.
        """
        super().__init__(mounts=dict.fromkeys(_ALL_SCHEMES) if direct else None)
        self._observe = observe
        self._wait_for_retry = wait_for_retry

    async def send(self, request: httpx2.Request, **options: object) -> httpx2.Response:
        """Send *request* once. Raises APITimeoutError and BodyTooLarge, which are not retried, and ReadError, which is.

        The transport restarts its own time limit with every byte that arrives, and it reports broken and refused
        connections as time-outs.
        """
        if request.headers.get(_RETRIES_HEADER, "0") != "0":
            await self._wait_for_retry()  # outside of the time limit, like the official client's own pause
        try:
            async with asyncio.timeout(request.extensions["timeout"]["read"]):
                if are_addresses_restricted():
                    await _pin_address(request)
                    options["follow_redirects"] = False  # the target of a redirect would not be checked
                streamed = await super().send(request, **cast(SendOptions, {**options, "stream": True}))
                response = await _read_bounded(streamed)
                self._observe(response.status_code, response.headers)
                return response
        except TimeoutError as error:
            raise openai.APITimeoutError(request=request) from error
        except BodyTooLarge:
            raise
        except Exception as error:
            cause = error.__cause__
            if isinstance(cause, TimeoutError):
                raise openai.APITimeoutError(request=request) from error
            raise httpx2.ReadError(str(cause or error) or type(cause or error).__name__, request=request) from error


async def _read_bounded(response: httpx2.Response) -> httpx2.Response:
    """Return *response* with its body. Raises BodyTooLarge."""
    body = bytearray()
    try:
        async for part in response.aiter_bytes():
            body += part
            if len(body) > MAX_BODY_BYTES:
                raise BodyTooLarge
    finally:
        await response.aclose()
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _CODED]
    read = httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=response.request)
    read.elapsed = response.elapsed
    return read


async def _pin_address(request: httpx2.Request) -> None:
    """Direct *request* to a checked address, so that its host name cannot resolve to another one in the meantime."""
    host = request.url.host
    port = request.url.port or {"https": 443}.get(request.url.scheme, 80)
    address = await resolve_allowed_address(host, port)
    request.headers["Host"] = request.url.netloc.decode("ascii")
    request.extensions = {**request.extensions, "sni_hostname": host}
    request.url = request.url.copy_with(host=address)
