"""Whether a server can listen at an address."""

import socket


def find_bind_error(host: str, port: int) -> OSError | None:
    """Return why nothing can listen at *host* and *port*, or None.

    The port is in use also if its sockets are shared, as those of gunicorn.conf.py are.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error
    return None
