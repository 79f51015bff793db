"""Ways to reach an engine; each is a pair of byte streams with the engine's program at the other end."""

from importlib import import_module

from sandbox.connections.transports.base import Transport, TransportOptions

_MODULES = {"local": "LocalTransport", "docker": "DockerTransport", "socket": "SocketTransport"}
BACKENDS = frozenset(_MODULES)


def transport_class(backend: str) -> type[Transport]:
    """The transport of a backend, imported when it is first asked for: the Docker SDK takes long to load."""
    found: type[Transport] = getattr(import_module(f"{__name__}.{backend}"), _MODULES[backend])
    return found


__all__ = ["BACKENDS", "Transport", "TransportOptions", "transport_class"]
