"""Ways to reach an engine: one module per backend."""

from sandbox.connections.transports.base import Transport, TransportOptions

__all__ = ["Transport", "TransportOptions"]
