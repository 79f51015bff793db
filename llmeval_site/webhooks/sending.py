"""Sending of one delivery: the check of the address, the signature and the request."""

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2
from django.conf import settings

from hub.common.addresses import AddressRefused, check_literal_host, resolve_host
from hub.common.errors import UserError

_PERMISSION = "set LLMEVAL_PRIVATE_WEBHOOKS=1"
TIMEOUT_S = 15.0  # for all of a request, so that a slow server cannot occupy a worker
MAX_URL = 500
_SECRET_PREFIX = "whsec_"  # noqa: S105  # as https://www.standardwebhooks.com specifies


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one attempt. status: of the HTTP response; None without one. problem: empty if it was accepted."""

    status: int | None
    problem: str


def new_secret() -> str:
    """Return a secret of 256 random bits."""
    return _SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def sign(secret: str, event_id: str, timestamp: int, body: str) -> str:
    """Return the signature of *body*, for the header `webhook-signature`."""
    key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX))
    digest = hmac.new(key, f"{event_id}.{timestamp}.{body}".encode(), hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def check_url(text: str) -> None:
    """Check the form of an address, and whether the settings allow its host if that needs no DNS. Raises UserError."""
    try:
        url = httpx2.URL(text)
        _ = urlsplit(text).port  # also finds unclosed brackets and impossible ports, which httpx2 accepts
        if "%" in url.host:
            raise ValueError("a host with a space or another impossible character, which httpx2 escapes")
    except (httpx2.InvalidURL, ValueError):
        raise UserError("This is not a valid address.", "url") from None
    allowed = ("https", "http") if settings.WEBHOOK_HTTP else ("https",)
    if url.scheme not in allowed or not url.host:
        raise UserError(f"The address must begin with {' or '.join(f'{scheme}://' for scheme in allowed)}.", "url")
    if url.userinfo or url.fragment:
        raise UserError("The address must not contain a user name, a password or a fragment (#).", "url")
    if len(text) > MAX_URL:
        raise UserError(f"The address must have at most {MAX_URL} characters.", "url")
    try:
        check_literal_host(url.raw_host.decode("ascii"), private=settings.PRIVATE_WEBHOOKS, permission=_PERMISSION)
    except AddressRefused as error:
        raise UserError(f"Requests are not sent to this address: {error}.", "url") from None


async def send(url: str, secret: str, event_id: str, body: str) -> Result:
    """Send *body* to *url*, signed. A response with a status from 200 to 299 accepts it. Redirects are not followed."""
    try:
        check_url(url)  # the settings may have changed since it was stored
        async with asyncio.timeout(TIMEOUT_S):
            status = await _post(httpx2.URL(url), secret, event_id, body)
    except UserError as error:
        return Result(None, error.message)
    except AddressRefused as error:
        return Result(None, f"The request was not sent: {error}.")
    except TimeoutError:
        return Result(None, f"No response within {TIMEOUT_S:.0f} seconds.")
    except (httpx2.HTTPError, OSError, UnicodeError) as error:
        return Result(None, f"The request failed: {error or type(error).__name__}.")
    return Result(status, "" if 200 <= status < 300 else f"The server responded with status {status}.")


async def _post(url: httpx2.URL, secret: str, event_id: str, body: str) -> int:
    host = url.raw_host.decode("ascii")
    address = await resolve_host(
        host,
        url.port or (443 if url.scheme == "https" else 80),
        private=settings.PRIVATE_WEBHOOKS,
        permission=_PERMISSION,
    )
    timestamp = int(time.time())
    headers = {
        "Host": url.netloc.decode("ascii"),
        "Content-Type": "application/json",
        "User-Agent": "LLM-Eval",
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(secret, event_id, timestamp, body),
    }
    # The request goes to the checked address; TLS verifies the certificate of the host. No proxy of the environment.
    async with (
        httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=TIMEOUT_S) as client,
        client.stream(
            "POST",
            url.copy_with(host=address),
            content=body.encode(),
            headers=headers,
            extensions={"sni_hostname": host},
        ) as response,
    ):
        return response.status_code
