"""The list of sandbox backends. Settings, run configs, commands and the pool read the names from here.

A new backend is a module in `transports/`, its name in `Backend`, its class in `_TRANSPORTS`, and a row of the table of
backends in docs/sandbox.md.
"""

from importlib import import_module
from typing import Literal, get_args

from sandbox.connections.transports.base import Transport

Backend = Literal["local", "docker", "socket"]
BackendChoice = Literal["auto", Backend]
"""A backend, or `auto`: local, or docker if local engines do not reach an accepted isolation tier."""

BACKENDS: tuple[str, ...] = get_args(Backend)
BACKEND_CHOICES: tuple[str, ...] = get_args(BackendChoice)

# Imported at first use, since the Docker SDK takes long to import.
_TRANSPORTS = {
    "local": "sandbox.connections.transports.local:LocalTransport",
    "docker": "sandbox.connections.transports.docker:DockerTransport",
    "socket": "sandbox.connections.transports.socket:SocketTransport",
}


def get_transport_class(backend: str) -> type[Transport]:
    """Import and return the transport of a backend."""
    module, _, name = _TRANSPORTS[backend].partition(":")
    found: type[Transport] = getattr(import_module(module), name)
    return found
