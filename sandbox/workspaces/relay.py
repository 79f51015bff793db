"""The relay: runs an agent program in a box, and keeps its requests to the model as files for the host.

Runs inside the box as the agent's user with any Python from 3.9 on, from a `-c` argument, so that no file in the box
can replace it. `serve` offers an OpenAI-compatible endpoint on the loopback interface, starts the program, and writes
each request to a file; it answers when the reply's file appears. `next` waits for the next request or the end.
The host trusts nothing that either of them writes.
"""

# mypy: allow-any-generics

import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER = "/tmp/.relay"  # noqa: S108
MAX_BODY = 4 * 1024 * 1024
MAX_WAITING = 16
KEPT_OUTPUT = 64 * 1024
PATHS = ("/v1/chat/completions", "/chat/completions")

numbers = threading.Lock()
counts = {"requests": 0, "waiting": 0}


def write_file(path: str, content: bytes) -> None:
    with open(path + ".part", "wb") as file:
        file.write(content)
    os.rename(path + ".part", path)


def request_path(number: int) -> str:
    return FOLDER + "/requests/" + str(number)


def reply_path(number: int) -> str:
    return FOLDER + "/replies/" + str(number)


class RelayHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        if self.path.rstrip("/").endswith("/models"):
            self.answer(200, {"object": "list", "data": [{"id": "model", "object": "model", "owned_by": "run"}]})
        else:
            self.fail(404, "only chat completions are offered")

    def do_POST(self) -> None:
        self.close_connection = True
        try:
            length = int(self.headers.get("Content-Length") or "")
        except ValueError:
            return self.fail(411, "a request needs a Content-Length")
        if not 0 <= length <= MAX_BODY:
            return self.fail(413, "a request has at most " + str(MAX_BODY) + " bytes")
        if self.path.split("?")[0] not in PATHS:
            return self.fail(404, "only chat completions are offered")
        body = self.rfile.read(length)
        try:
            asked = json.loads(body)
        except ValueError:
            return self.fail(400, "the body is not JSON")
        with numbers:
            if counts["waiting"] >= MAX_WAITING:
                return self.fail(429, "too many requests at a time")
            counts["requests"] += 1
            counts["waiting"] += 1
            number = counts["requests"]
        try:
            key = (self.headers.get("Authorization") or "").partition(" ")[2]
            write_file(request_path(number), json.dumps({"key": key, "body": asked}).encode())
            reply = self.wait(number)
        finally:
            with numbers:
                counts["waiting"] -= 1
        if reply.get("error"):
            return self.fail(int(reply.get("status") or 500), str(reply["error"]))
        stream = isinstance(asked, dict) and bool(asked.get("stream"))
        (self.stream if stream else self.complete)(number, reply["message"])
        return None

    def wait(self, number: int) -> dict:
        while not os.path.exists(reply_path(number)):
            time.sleep(0.01)
        with open(reply_path(number), "rb") as file:
            reply = json.loads(file.read())
        os.unlink(reply_path(number))
        return dict(reply)

    def complete(self, number: int, message: dict) -> None:
        choice = {"index": 0, "message": message, "finish_reason": finish_reason(message), "logprobs": None}
        self.answer(200, envelope(number, "chat.completion", choice))

    def stream(self, number: int, message: dict) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        deltas: list[dict] = [{"role": "assistant", "content": ""}]
        if message.get("content"):
            deltas.append({"content": message["content"]})
        for index, call in enumerate(message.get("tool_calls") or []):
            deltas.append({"tool_calls": [dict(call, index=index)]})
        parts: list[dict] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        parts.append({"index": 0, "delta": {}, "finish_reason": finish_reason(message)})
        for part in parts:
            event = json.dumps(envelope(number, "chat.completion.chunk", part))
            self.wfile.write(b"data: " + event.encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")

    def answer(self, status: int, body: dict) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def fail(self, status: int, text: str) -> None:
        self.close_connection = True
        self.answer(status, {"error": {"message": text, "type": "invalid_request_error", "param": None, "code": None}})

    def log_message(self, *arguments: object) -> None:
        pass


def finish_reason(message: dict) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


def envelope(number: int, kind: str, choice: dict) -> dict:
    identity = "chatcmpl-" + str(number)
    return {"id": identity, "object": kind, "created": int(time.time()), "model": "model", "choices": [choice]}


class RelayServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *arguments: object) -> None:
        pass  # the program closed its connection


def serve(program: list, port: int) -> None:
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
        serve(json.loads(sys.argv[3]), int(sys.argv[2]))
    else:
        sys.stdout.write(json.dumps(find_next(int(sys.argv[2]), float(sys.argv[3]))))


if __name__ == "__main__":
    main()
