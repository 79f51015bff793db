"""Requests go only to allowed addresses, which are checked at each request; redirects are not followed."""

import socket
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import pytest
from django.conf import settings

from hub.common import addresses
from hub.common.addresses import is_public
from hub.protocols.calls import CallKey, ModelError
from runs.providers.base import ModelRequest, ModelSpec, ProviderContext
from runs.providers.openai import OpenAI
from runs.providers.openai_api.options import OpenAIOptions
from tests.endpoint import Answer, Endpoint, completion, endpoint

KEY = CallKey(purpose="answer", environment="e", case="c", model="m")


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with endpoint(lambda *_: completion("hello")) as running:
        yield running


@pytest.fixture
def production(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "PRIVATE_ENDPOINTS", False)


async def ask(url: str) -> str:
    provider = OpenAI(
        ModelSpec(name="small", provider="openai"), OpenAIOptions(model="m", base_url=url), ProviderContext(retries=0)
    )
    try:
        reply = await provider.complete(ModelRequest(key=KEY, messages=[], parameters={}))
    finally:
        await provider.aclose()
    return str(reply.message["content"])


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"]
)
async def test_private_addresses_are_rejected_for_all_host_names(server: Endpoint, production: None, host: str) -> None:
    with pytest.raises(ModelError) as caught:
        await ask(server.url.replace("127.0.0.1", host))
    assert (caught.value.kind, caught.value.fatal) == ("configuration", True)
    assert "LLMEVAL_PRIVATE_ENDPOINTS" in str(caught.value) and server.requests == []


@pytest.mark.parametrize("host", [".example", "a..b", f"{'a' * 64}.example"])
async def test_host_name_with_an_impossible_label_is_an_error_of_the_endpoint(production: None, host: str) -> None:
    with pytest.raises(ModelError, match="host name could not be resolved"):
        await ask(f"http://{host}/v1")


async def test_private_addresses_are_allowed_by_default(server: Endpoint) -> None:
    assert await ask(server.url) == "hello"


async def test_listed_hosts_may_be_private_and_others_are_rejected(
    server: Endpoint, production: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "ENDPOINT_HOSTS", ["localhost"])
    assert await ask(server.url.replace("127.0.0.1", "LOCALHOST")) == "hello"
    assert server.headers[0]["host"].lower().startswith("localhost:")
    monkeypatch.setattr(settings, "PRIVATE_ENDPOINTS", True)
    with pytest.raises(ModelError, match="LLMEVAL_ENDPOINT_HOSTS"):
        await ask(server.url)


@pytest.mark.parametrize("excluded", ["localhost", "*", "other.example"])
async def test_hosts_without_a_proxy_are_those_of_the_environment_if_addresses_are_restricted(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch, excluded: str
) -> None:
    monkeypatch.setattr(settings, "ENDPOINT_HOSTS", ["localhost"])
    with endpoint(lambda *_: completion("by the proxy")) as proxy:
        for name, value in (("http_proxy", proxy.url.removesuffix("/v1")), ("no_proxy", excluded)):
            monkeypatch.setenv(name, value)
            monkeypatch.setenv(name.upper(), value)
        answer = await ask(server.url.replace("127.0.0.1", "localhost"))
    assert answer == ("by the proxy" if excluded == "other.example" else "hello")


async def test_host_name_is_not_resolved_again_after_the_check(
    server: Endpoint, production: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "is_public", lambda address: address == "127.0.0.2")  # where nothing listens
    checked = 2  # times: by the client, and when the request is sent
    answers = chain(["127.0.0.2"] * checked, repeat("127.0.0.1"))

    def rebinding(host: Any, port: Any, *_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    with pytest.raises(ModelError):
        await ask(server.url.replace("127.0.0.1", "rebind.example"))
    assert server.requests == []


async def test_redirects_are_not_followed_if_addresses_are_restricted(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint(lambda *_: Answer({}, 307, {"Location": f"{server.url}/chat/completions"})) as redirecting:
        url = redirecting.url.replace("127.0.0.1", "localhost")
        monkeypatch.setattr(settings, "ENDPOINT_HOSTS", ["localhost"])
        with pytest.raises(ModelError, match="307"):
            await ask(url)
    assert server.requests == []


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        *((private, False) for private in ("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254")),
        *(
            (private, False)
            for private in ("0.0.0.0", "100.64.0.1", "224.0.0.1", "::1", "::", "fe80::1%eth0", "fd00::1")
        ),
        *((wrapped, False) for wrapped in ("::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1")),
        *((reserved, False) for reserved in ("192.0.0.192", "::ffff:192.0.0.192", "2002:c000:c0::", "3fff::1")),
        *((local, False) for local in ("fec0::1", "64:ff9b:1::7f00:1", "::127.0.0.1", "::ffff:0:7f00:1")),
    ],
)
def test_is_public_unwraps_ipv4_addresses_in_ipv6(address: str, public: bool) -> None:
    assert is_public(address) is public
