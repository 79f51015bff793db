"""The sandbox as this installation's settings have it: what a pool is opened with."""

from collections.abc import Iterable

from django.conf import settings

from sandbox.pool import PoolOptions
from sandbox.transports.base import TransportOptions


def pool_options(*, backend: str = "auto", accept: Iterable[str] = "AB") -> PoolOptions:
    """Options for a pool. *backend* `auto` leaves the choice to LLMEVAL_SANDBOX_BACKEND."""
    return PoolOptions(
        backend=settings.SANDBOX_BACKEND if backend == "auto" else backend,
        accept=frozenset(accept),
        workers=settings.SANDBOX_WORKERS or None,
        transport=TransportOptions(
            image=settings.SANDBOX_IMAGE or None,
            runtime=settings.SANDBOX_RUNTIME or None,
            socket=settings.SANDBOX_SOCKET,
            packages=settings.SANDBOX_PACKAGES,
        ),
    )
