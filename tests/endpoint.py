"""Chat-completions endpoint for tests: a real HTTP server on a free port, with answers from a function."""

import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """Response of the endpoint. `body` is JSON unless it is bytes.

    drip_s: seconds between the bytes of the body. reset: reset the connection instead of answering.
    """

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    drip_s: float = 0.0
    reset: bool = False


def completion(content: str | None = "hello", *, finish: str = "stop", usage: Any = None, **message: Any) -> Answer:
    """Return a valid chat completion."""
    given = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15} if usage is None else usage
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return Answer({**body, "usage": given})


@dataclass
class Endpoint:
    """Running endpoint, with the requests that it received in order. Names of headers are in lower case.

    paths: path and query of each request. peak: the highest number of requests in progress at the same time.
    """

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    peak: int = 0


@contextmanager
def endpoint(script: Callable[[dict[str, Any], int], Answer]) -> Iterator[Endpoint]:
    """Serve until the block ends. *script* returns the answer to the JSON of a request and its number, from 0."""
    lock = threading.Lock()
    inflight = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            nonlocal inflight
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                number = len(running.requests)
                running.requests.append(request)
                running.paths.append(self.path)
                running.headers.append({name.lower(): value for name, value in self.headers.items()})
                inflight += 1
                running.peak = max(running.peak, inflight)
            try:
                answer = script(request, number)
            finally:
                with lock:
                    inflight -= 1
            if answer.reset:
                # Without a linger time, closing sends a reset instead of the usual end of the connection.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
                return
            body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            try:
                self.end_headers()
                for chunk in [body[i : i + 1] for i in range(len(body))] if answer.drip_s else [body]:
                    time.sleep(answer.drip_s)
                    self.wfile.write(chunk)
            except ConnectionError:
                """Some tests are about clients that close the connection first."""

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing, so that the output of a test is only its own."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, request: object, client_address: object) -> None:
            """Print the errors of a script, but nothing if the client has reset its connection."""
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)  # type: ignore[arg-type]

    server = Server(("127.0.0.1", 0), Handler)
    running = Endpoint(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
