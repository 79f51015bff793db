"""The relay: runs an agent program in a box, and keeps its requests to the model as files for the host.

Runs inside the box as the agent's user with any Python from 3.9 on, from a `-c` argument, so that no file in the box
can replace it. `serve` offers an OpenAI-compatible endpoint on the loopback interface, starts the program, and writes
each request to a file; it answers with what the host writes. It keeps the items of earlier responses, which a request
may name instead of sending them again. `next` waits for the next request or the end. The host trusts nothing that
either of them writes.
"""

# mypy: allow-any-generics

import fcntl
import hashlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER = "/tmp/.relay"  # noqa: S108
MAX_BODY = 4 * 1024 * 1024
MAX_READ = 64 * 1024 * 1024  # of a body that is too large, so that the client reads the error
MAX_WAITING = 16
MAX_UNREAD = 16  # replies that are kept for a repetition of their request
KEPT_OUTPUT = 64 * 1024
RETRY_AFTER_S = 5
PATHS = ("/chat/completions", "/responses")
OFFERED = "only POST /chat/completions, POST /responses and GET /models are offered"
MODEL = {"id": "model", "object": "model", "created": 0, "owned_by": "run"}

lock = threading.Lock()  # for the requests below
counts = {"requests": 0}
pending: "list[PendingRequest]" = []  # requests without a reply, and those whose reply no client has read
responses: dict[str, list] = {}  # the items of each response's conversation, by its id
settings = {"keep_alive_s": 10.0}


def write_file(path: str, content: bytes) -> None:
    with open(path + ".part", "wb") as file:
        file.write(content)
    os.rename(path + ".part", path)


def request_path(number: int) -> str:
    return FOLDER + "/requests/" + str(number)


def reply_path(number: int) -> str:
    return FOLDER + "/replies/" + str(number)


def accepted_path(number: int) -> str:
    """Return the path of the file that the host writes once a request is valid and the model is asked."""
    return reply_path(number) + ".accepted"


class PendingRequest:
    """A request for the host. `handler` answers it; `abandoned` means that its client has closed the connection."""

    def __init__(self, number: int, digest: bytes, handler: "RelayHandler") -> None:
        self.number = number
        self.digest = digest
        self.reply: dict | None = None
        self.give_to(handler)

    def give_to(self, handler: "RelayHandler") -> None:
        self.handler = handler
        self.abandoned = False
        self.closed = select.poll()
        self.closed.register(handler.connection, select.POLLRDHUP)

    def abandon(self, handler: "RelayHandler") -> None:
        with lock:
            self.abandoned = self.abandoned or self.handler is handler

    def is_abandoned(self) -> bool:
        self.abandoned = self.abandoned or bool(self.closed.poll(0))
        return self.abandoned

    def read_reply(self) -> "dict | None":
        if self.reply is None and os.path.exists(reply_path(self.number)):
            with open(reply_path(self.number), "rb") as file:
                self.reply = dict(json.loads(file.read()))
            for path in (reply_path(self.number), accepted_path(self.number)):
                if os.path.exists(path):
                    os.unlink(path)
        return self.reply


class RelayHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    begun = False  # the header of a reply that is not known yet has been sent

    def do_GET(self) -> None:
        name = self.name()
        if name == "/models":
            self.answer(200, json.dumps({"object": "list", "data": [MODEL]}))
        elif name.startswith("/models/"):
            self.answer(200, json.dumps(dict(MODEL, id=name[len("/models/") :])))
        else:
            self.fail(404, OFFERED)

    do_HEAD = do_GET

    def do_OPTIONS(self) -> None:
        self.send_response(204)
        self.send_header("Allow", "GET, HEAD, OPTIONS, POST")
        self.end_headers()

    def do_DELETE(self) -> None:
        self.fail(404, OFFERED)

    do_PUT = do_PATCH = do_DELETE

    def do_POST(self) -> None:
        self.close_connection = True
        try:
            body = self.read_body()
        except ValueError as error:
            return self.fail(400, str(error))
        if self.name() not in PATHS:
            return self.fail(404, OFFERED)
        if body is None:
            return self.fail(413, "a request has at most " + str(MAX_BODY) + " bytes")
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            return self.fail(400, "the body is not JSON")
        history = self.history(asked)
        if history is None:
            text = "Previous response with id " + repr(asked["previous_response_id"]) + " not found."
            return self.fail(400, text, "previous_response_id", "previous_response_not_found")
        key = (self.headers.get("Authorization") or "").partition(" ")[2]
        sent = json.dumps({"key": key, "api": self.name(), "body": asked, "history": history}).encode()
        if len(sent) > 2 * MAX_BODY:
            return self.fail(413, "a request and the responses before it have at most " + str(2 * MAX_BODY) + " bytes")
        request = self.take_request(hashlib.sha256(json.dumps([self.name(), key]).encode() + body).digest(), sent)
        if request is None:
            return self.fail(429, "too many requests at a time", headers={"Retry-After": str(RETRY_AFTER_S)})
        options = asked if isinstance(asked, dict) else {}
        self.respond(request, None if options.get("store") is False else history, options.get("stream") is True)
        return None

    def respond(self, request: "PendingRequest", history: "list | None", stream: bool) -> None:
        """Answer with the reply to *request* once it is known.

        history: the items before the reply, stored with those of the reply for later requests; None to store nothing
        """
        try:
            reply = self.wait(request, stream)
            if reply is None:
                return
            if reply.get("items") and history is not None:
                responses["resp_" + str(request.number)] = history + reply["items"]
            self.answer_with(reply, stream)
        except OSError:
            request.abandon(self)
        finally:
            with lock:
                if request.handler is self and not (request.abandoned and request.reply):
                    pending.remove(request)

    def name(self) -> str:
        path = self.path.split("?")[0].rstrip("/")
        return path[len("/v1") :] if path.startswith("/v1/") else path

    def history(self, asked: object) -> "list | None":
        named = asked.get("previous_response_id") if isinstance(asked, dict) else None
        if named is None or self.name() != "/responses":
            return []
        return responses.get(named) if isinstance(named, str) else None

    # ---- bodies ----

    def read_body(self) -> "bytes | None":
        """Return the body, None if it is too large. Raises ValueError."""
        body, size = bytearray(), 0
        for part in self.body_parts():
            size += len(part)
            if size <= MAX_BODY:
                body += part
            elif size > MAX_READ:
                break
        return bytes(body) if size <= MAX_BODY else None

    def body_parts(self) -> "Iterator[bytes]":
        if (self.headers.get("Transfer-Encoding") or "").strip().lower() != "chunked":
            yield from self.read_parts(self.headers.get("Content-Length") or "", 10)
            return
        while True:
            size = self.rfile.readline(1000).partition(b";")[0].decode("latin-1").strip()
            if size.strip("0") == "" and size:
                break
            yield from self.read_parts(size, 16)
            self.rfile.readline(3)
        while self.rfile.readline(65537).strip():
            pass  # trailers

    def read_parts(self, size: str, base: int) -> "Iterator[bytes]":
        try:
            left = int(size, base)
        except ValueError:
            left = -1
        if left < 0:
            raise ValueError("a request needs a Content-Length, or a body in chunks")
        while left:
            part = self.rfile.read(min(left, 65536))
            if not part:
                raise ConnectionError("the body is not complete")
            left -= len(part)
            yield part

    # ---- replies ----

    def take_request(self, digest: bytes, sent: bytes) -> "PendingRequest | None":
        """Return the request for this handler; None if too many wait.

        Clients repeat a request after a time-out. If an equal one has been abandoned, its reply belongs to this one.
        """
        with lock:
            for request in pending:
                if request.digest == digest and request.is_abandoned():
                    request.give_to(self)
                    return request
            if sum(request.reply is None for request in pending) >= MAX_WAITING:
                return None
            unread = [request for request in pending if request.abandoned and request.reply is not None]
            for request in unread[: -MAX_UNREAD or None]:
                pending.remove(request)
            counts["requests"] += 1
            request = PendingRequest(counts["requests"], digest, self)
            write_file(request_path(request.number), sent)
            pending.append(request)
            return request

    def wait(self, request: PendingRequest, stream: bool) -> "dict | None":
        """Return the reply; None if the request has been taken over by its repetition."""
        due = time.monotonic() + settings["keep_alive_s"]
        while True:
            with lock:
                if request.handler is not self:
                    return None
                abandoned = request.is_abandoned()
                reply = request.read_reply()
            if reply is not None:
                return reply
            time.sleep(0.01)
            if abandoned:
                continue
            late = time.monotonic() >= due
            try:
                self.keep_alive(stream, os.path.exists(accepted_path(request.number)), late)
            except OSError:
                request.abandon(self)
            if late:
                due += settings["keep_alive_s"]

    def keep_alive(self, stream: bool, accepted: bool, late: bool) -> None:
        """Send the header of a stream, and after each interval what clients ignore, so that they do not time out.

        Until a request is accepted, it may get an error. Streams get one as an event; others must wait for the status.
        """
        if not self.begun and ((stream and accepted) or (late and (stream or accepted))):
            self.begun = True
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
            self.send_header("Cache-Control", "no-cache")
            if self.request_version != "HTTP/1.0":
                self.send_header("Transfer-Encoding", "chunked")
            self.send_header("Connection", "close")
            self.end_headers()
        if self.begun and late:
            self.send_part(b": waiting\n\n" if stream else b"\n")

    def send_part(self, data: bytes) -> None:
        chunked = self.request_version != "HTTP/1.0"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)

    def answer_with(self, reply: dict, stream: bool) -> None:
        kind = "text/event-stream" if reply["stream"] else "application/json"
        if not self.begun:
            return self.answer(reply["status"], reply["body"], kind)
        body = reply["body"] if reply["stream"] or not stream else self.error_event(json.loads(reply["body"])["error"])
        self.send_part(body.encode())
        if self.request_version != "HTTP/1.0":
            self.wfile.write(b"0\r\n\r\n")
        return None

    def error_event(self, error: dict) -> str:
        if self.name() == "/chat/completions":
            return "data: " + json.dumps({"error": error}) + "\n\n"
        event = dict(error, type="error", sequence_number=0, error=error)
        return "event: error\ndata: " + json.dumps(event) + "\n\n"

    def answer(
        self, status: int, body: str, kind: str = "application/json", headers: "dict[str, str] | None" = None
    ) -> None:
        content = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def fail(
        self,
        status: int,
        text: str,
        param: "str | None" = None,
        code: "str | None" = None,
        headers: "dict[str, str] | None" = None,
    ) -> None:
        self.close_connection = True
        error = {"message": text, "type": "invalid_request_error", "param": param, "code": code}
        self.answer(status, json.dumps({"error": error}), headers=headers)

    def send_error(self, code: int, message: "str | None" = None, explain: "str | None" = None) -> None:
        self.fail(code, message or "the request is not valid HTTP")

    def log_message(self, *arguments: object) -> None:
        pass


class RelayServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *arguments: object) -> None:
        pass  # the program closed its connection


def serve(program: list, port: int, keep_alive_s: float) -> None:
    settings["keep_alive_s"] = keep_alive_s
    lock = open(FOLDER + "/alive", "w")  # held until this process ends
    fcntl.flock(lock, fcntl.LOCK_EX)
    server = RelayServer(("127.0.0.1", port), RelayHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        process = subprocess.Popen(
            program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as error:
        write_file(FOLDER + "/ended", json.dumps({"code": 127, "output": str(error)}).encode())
        return
    output = bytearray()
    reader = threading.Thread(target=keep_end, args=(process.stdout, output), daemon=True)
    reader.start()
    code = process.wait()
    reader.join(1)  # a background process may hold the pipe open
    text = bytes(output[-KEPT_OUTPUT:]).decode("utf-8", "replace")
    write_file(FOLDER + "/ended", json.dumps({"code": code if code >= 0 else 128 - code, "output": text}).encode())


def keep_end(pipe: object, output: bytearray) -> None:
    while True:
        data = os.read(pipe.fileno(), 65536)  # type: ignore[attr-defined]
        if not data:
            return
        output += data
        if len(output) > 2 * KEPT_OUTPUT:
            del output[:-KEPT_OUTPUT]


def is_alive() -> bool:
    try:
        with open(FOLDER + "/alive") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def find_next(after: int, seconds: float) -> dict:
    deadline = time.monotonic() + seconds
    while True:
        alive = is_alive()  # before the files, so that none is missed
        ended = os.path.exists(FOLDER + "/ended")
        found = [
            int(name)
            for name in os.listdir(FOLDER + "/requests")
            if name.isdigit() and len(name) < 8 and int(name) > after
        ]
        if ended:
            return {"ended": True}
        if found:
            return {"request": min(found)}
        if not alive:
            return {"lost": True}
        if time.monotonic() > deadline:
            return {}
        time.sleep(0.01)


def main() -> None:
    if sys.argv[1] == "serve":
        os.makedirs(FOLDER + "/requests", exist_ok=True)
        os.makedirs(FOLDER + "/replies", exist_ok=True)
        serve(json.loads(sys.argv[3]), int(sys.argv[2]), float(sys.argv[4]))
    else:
        sys.stdout.write(json.dumps(find_next(int(sys.argv[2]), float(sys.argv[3]))))


if __name__ == "__main__":
    main()
