"""Restrictions on the network addresses of endpoints.

An address is checked after its host name is resolved, and the request is sent to the checked address.
"""

import asyncio
import ipaddress
import socket

from django.conf import settings

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressRefused(Exception):
    """The settings of this installation do not allow requests to an address. The message is the reason."""


def are_addresses_restricted() -> bool:
    """Return whether the settings restrict addresses."""
    return bool(settings.ENDPOINT_HOSTS) or not settings.PRIVATE_ENDPOINTS


async def resolve_allowed_address(host: str, port: int) -> str:
    """Resolve *host* and return an address that requests may use. Raises AddressRefused and OSError.

    Hosts listed in LLMEVAL_ENDPOINT_HOSTS may be private. If the list is not empty, all other hosts are refused.
    """
    listed = {item.lower().rstrip(".") for item in settings.ENDPOINT_HOSTS}
    name = host.lower().rstrip(".")
    if listed and name not in listed:
        raise AddressRefused("its host is not in LLMEVAL_ENDPOINT_HOSTS")
    results = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(item[4][0]) for item in results]
    if name not in listed and not settings.PRIVATE_ENDPOINTS:
        for address in addresses:
            if not is_public(address):
                raise AddressRefused(
                    "its host is in a private, loopback or link-local network; an operator can add the host "
                    "to LLMEVAL_ENDPOINT_HOSTS or set LLMEVAL_PRIVATE_ENDPOINTS=1"
                )
    return addresses[0]


def is_public(text: str) -> bool:
    """Return whether the address *text* is on the public internet. An IPv4 address within an IPv6 one is unwrapped."""
    address: _Address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        wrapped = address.ipv4_mapped or address.sixtofour or (address.teredo and address.teredo[1])
        if address in _NAT64:
            wrapped = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if wrapped:
            address = wrapped
    return address.is_global and not address.is_multicast
