"""Sandbox options from this installation's settings."""

from collections.abc import Iterable

from django.conf import settings

from sandbox.client.pool import PoolOptions
from sandbox.connections.transports.base import TransportOptions


def pool_options(*, backend: str = "auto", accept: Iterable[str] = "AB") -> PoolOptions:
    """Return the options of a pool. With *backend* `auto`, LLMEVAL_SANDBOX_BACKEND decides."""
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
