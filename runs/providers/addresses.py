"""Which addresses requests to endpoints may go to: checked after resolution, and the checked address is used."""

import asyncio
import ipaddress
import socket

from django.conf import settings

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressRefused(Exception):
    """The settings of this installation do not let requests go there; the text is a sentence."""


def guarded() -> bool:
    """Whether addresses are checked at all."""
    return bool(settings.ENDPOINT_HOSTS) or not settings.PRIVATE_ENDPOINTS


async def checked_address(host: str, port: int) -> str:
    """Resolve *host* and return an address that requests may go to. Raises AddressRefused and OSError.

    Hosts that LLMEVAL_ENDPOINT_HOSTS names may be private. If it names any, all others are refused.
    """
    listed = {name.lower().rstrip(".") for name in settings.ENDPOINT_HOSTS}
    plain = host.lower().rstrip(".")
    if listed and plain not in listed:
        raise AddressRefused("its host is not one of LLMEVAL_ENDPOINT_HOSTS")
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(item[4][0]) for item in found]
    if plain not in listed and not settings.PRIVATE_ENDPOINTS:
        for address in addresses:
            if not is_public(address):
                raise AddressRefused(
                    "its host is in a private, loopback or link-local network; an operator may name the host in "
                    "LLMEVAL_ENDPOINT_HOSTS or set LLMEVAL_PRIVATE_ENDPOINTS=1"
                )
    return addresses[0]


def is_public(text: str) -> bool:
    """Whether the address *text* is on the public internet, looked at through addresses of IPv6 that wrap IPv4."""
    address: _Address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        wrapped = address.ipv4_mapped or address.sixtofour or (address.teredo and address.teredo[1])
        if address in _NAT64:
            wrapped = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if wrapped:
            address = wrapped
    return address.is_global and not address.is_multicast
