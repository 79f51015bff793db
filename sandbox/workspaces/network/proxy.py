"""The egress proxy: process 1 of a container between the network of a box and the outside.

Runs with any Python from 3.9 on, started with `python3 -I -S -c`: it imports only the standard library. It carries out
CONNECT requests to the hosts and ports of its list and refuses all others. A name is resolved once, and the connection
goes to the address that was checked, so a name whose address changes cannot lead to a private network. Each refusal is
a line of JSON on standard output.
"""

import ipaddress
import json
import re
import select
import socket
import sys
import threading

PORT = 3128
MAX_HEAD = 8192
MAX_CONNECTIONS = 64
MAX_REFUSALS = 200  # further ones are refused, but not written
HEAD_S = 10.0
CONNECT_S = 15.0
IDLE_S = 300.0

_lock = threading.Lock()
_written = 0


class ConnectionRefusal(Exception):
    """A request that is refused; the message is the reason."""

    def __init__(self, status: str, target: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.target = target


def write_line(values: "dict[str, object]") -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def write_refusal(refusal: ConnectionRefusal) -> None:
    global _written
    with _lock:
        if _written < MAX_REFUSALS:
            _written += 1
            write_line({"target": refusal.target, "reason": str(refusal)})


def read_head(client: socket.socket) -> bytes:
    head = b""
    client.settimeout(HEAD_S)
    while b"\r\n\r\n" not in head:
        data = client.recv(4096)
        head += data
        if not data or len(head) > MAX_HEAD:
            raise ConnectionRefusal("400 Bad Request", "a request", "it is not a request for a proxy")
    return head


def read_target(head: bytes) -> "tuple[str, int]":
    """Return host and port of a CONNECT request."""
    line = head.split(b"\r\n", 1)[0].decode("ascii", "replace")
    words = line.split(" ")
    found = re.match(r"([A-Za-z0-9._-]{1,253}):([0-9]{1,5})$", words[1]) if len(words) == 3 else None
    if words[0] != "CONNECT":
        target = re.sub(r"[^A-Za-z0-9._:/ -]", "?", " ".join(words[:2]))[:200]
        raise ConnectionRefusal("405 Method Not Allowed", target, "only CONNECT is possible, as for https")
    if found is None:
        raise ConnectionRefusal("400 Bad Request", "a request", "it names no host and port")
    return found[1].lower().rstrip("."), int(found[2])


def public_address(host: str, port: int) -> str:
    """Return an address of *host*. A host with any address that is not public is refused."""
    target = host + ":" + str(port)
    try:
        found = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        raise ConnectionRefusal("502 Bad Gateway", target, "its name cannot be resolved") from None
    addresses = [str(item[4][0]) for item in found]
    for address in addresses:
        parsed = ipaddress.ip_address(address)
        if not parsed.is_global or parsed.is_multicast:
            raise ConnectionRefusal("403 Forbidden", target, "its address " + address + " is not public")
    return addresses[0]


def open_target(head: bytes, allowed: "set[str]") -> socket.socket:
    host, port = read_target(head)
    target = host + ":" + str(port)
    if target not in allowed:
        raise ConnectionRefusal("403 Forbidden", target, "it is not in the list of allowed hosts")
    address = public_address(host, port)
    try:
        return socket.create_connection((address, port), CONNECT_S)
    except OSError as error:
        raise ConnectionRefusal(
            "502 Bad Gateway", target, "it cannot be reached: " + (error.strerror or str(error))
        ) from None


def relay(client: socket.socket, target: socket.socket) -> None:
    other = {client: target, target: client}
    for stream in other:
        stream.settimeout(IDLE_S)
    open_streams = [client, target]
    while open_streams:
        ready = select.select(open_streams, [], [], IDLE_S)[0]
        if not ready:
            return
        for stream in ready:
            data = stream.recv(65536)
            if data:
                other[stream].sendall(data)
            else:
                open_streams.remove(stream)
                other[stream].shutdown(socket.SHUT_WR)


def serve(client: socket.socket, allowed: "set[str]", free: threading.Semaphore) -> None:
    try:
        with client:
            try:
                head = read_head(client)
                target = open_target(head, allowed)
            except ConnectionRefusal as refusal:
                write_refusal(refusal)
                text = refusal.target + ": " + str(refusal) + "\n"
                client.sendall(("HTTP/1.1 " + refusal.status + "\r\nConnection: close\r\n\r\n" + text).encode())
                return
            with target:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                rest = head.split(b"\r\n\r\n", 1)[1]
                if rest:
                    target.sendall(rest)
                relay(client, target)
    except OSError:
        pass  # one side has closed the connection
    finally:
        free.release()


def main() -> None:
    config = json.loads(sys.argv[1])
    inside = ipaddress.ip_network(config["inside"])
    allowed = set(config["allowed"])
    free = threading.Semaphore(MAX_CONNECTIONS)
    with socket.create_server(("0.0.0.0", PORT), backlog=128) as server:  # noqa: S104
        write_line({"ready": True})
        while True:
            client, peer = server.accept()
            if ipaddress.ip_address(peer[0]) not in inside:  # the outside reaches this port, too
                client.close()
                continue
            free.acquire()
            threading.Thread(target=serve, args=(client, allowed, free), daemon=True).start()


if __name__ == "__main__":
    main()
