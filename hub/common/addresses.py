"""Checks of network addresses that users enter and to which this installation then sends requests.

A host name is resolved, its addresses are checked, and the request is then sent to the checked address.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")  # all that is assigned to the internet; gateways translate others
# Reserved networks that `is_global` of some supported versions of Python counts as public, among them an address of a
# cloud's metadata.
_RESERVED = (ipaddress.ip_network("192.0.0.0/24"), ipaddress.ip_network("3fff::/20"))
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressRefused(Exception):
    """The settings of this installation do not allow requests to an address. The message is the reason."""


async def resolve_host(host: str, port: int, *, private: bool, permission: str) -> str:
    """Resolve *host* and return an address that requests may use. Raises AddressRefused and OSError.

    private: whether addresses outside the public internet are allowed. permission: what an operator can do to allow
    them, for the message.
    """
    try:
        results = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:  # a label that is empty or too long
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None
    addresses = [str(item[4][0]) for item in results]
    _check_addresses(addresses, private=private, permission=permission)
    return addresses[0]


def check_literal_host(host: str, *, private: bool, permission: str) -> None:
    """Check *host* if it is an address in any notation (`127.1`, `2130706433`) or localhost. Raises AddressRefused.

    Other names are not resolved, so the check is fast enough for a form. `resolve_host` checks them before a request.
    """
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):  # always this machine, RFC 6761
        addresses = ["127.0.0.1"]
    else:
        try:
            results = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except (OSError, UnicodeError):
            return
        addresses = [str(item[4][0]) for item in results]
    _check_addresses(addresses, private=private, permission=permission)


def _check_addresses(addresses: Sequence[str], *, private: bool, permission: str) -> None:
    if not private and not all(is_public(address) for address in addresses):
        raise AddressRefused(f"its host is in a private, loopback or link-local network; an operator can {permission}")


def is_public(text: str) -> bool:
    """Return whether the address *text* is on the public internet. An IPv4 address within an IPv6 one is unwrapped."""
    address: _Address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        wrapped = address.ipv4_mapped or address.sixtofour or (address.teredo and address.teredo[1])
        if address in _NAT64:
            wrapped = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if wrapped:
            address = wrapped
        elif address not in _GLOBAL_UNICAST:
            return False
    if any(address in network for network in _RESERVED):
        return False
    return address.is_global and not address.is_multicast
