"""Pool options from the settings of this installation."""

from collections.abc import Iterable

from django.conf import settings

from sandbox.client.options import DEFAULT_TIERS, PoolOptions
from sandbox.connections.transports import TransportOptions


def get_pool_options(*, backend: str = "auto", accept: Iterable[str] = DEFAULT_TIERS) -> PoolOptions:
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
