"""Ways to reach an engine; each is a pair of byte streams with the engine's program at the other end."""

from sandbox.transports.base import Transport
from sandbox.transports.local import LocalTransport

TRANSPORTS: dict[str, type[Transport]] = {LocalTransport.backend: LocalTransport}

__all__ = ["TRANSPORTS", "LocalTransport", "Transport"]
