"""Restrictions on the network addresses of endpoints."""

from django.conf import settings

from hub.common.addresses import AddressRefused, resolve_host


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
    return await resolve_host(
        host,
        port,
        private=name in listed or settings.PRIVATE_ENDPOINTS,
        permission="add the host to LLMEVAL_ENDPOINT_HOSTS or set LLMEVAL_PRIVATE_ENDPOINTS=1",
    )
