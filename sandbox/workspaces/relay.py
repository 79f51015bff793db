"""The relay: runs an agent program in a box, and keeps its requests to the model as files for the host.

Runs inside the box as the agent's user with any Python from 3.9 on, from a `-c` argument, so that no file in the box
can replace it. `serve` offers an OpenAI-compatible endpoint on the loopback interface, starts the program, and writes
each request to a file; it answers with what the host writes. It keeps the items of earlier responses, which a request
may name instead of sending them again. `next` waits for the next request or the end. The host trusts nothing that
either of them writes.
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
PATHS = ("/chat/completions", "/responses")
MODEL = {"id": "model", "object": "model", "created": 0, "owned_by": "run"}

numbers = threading.Lock()
counts = {"requests": 0, "waiting": 0}
responses: dict[str, list] = {}  # the items of each response's conversation, by its id


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
        name = self.name()
        if name == "/models":
            self.answer(200, json.dumps({"object": "list", "data": [MODEL]}))
        elif name.startswith("/models/"):
            self.answer(200, json.dumps(dict(MODEL, id=name[len("/models/") :])))
        else:
            self.fail(404, "only POST /chat/completions, POST /responses and GET /models are offered")

    do_DELETE = do_GET

    def do_POST(self) -> None:
        self.close_connection = True
        try:
            length = int(self.headers.get("Content-Length") or "")
        except ValueError:
            return self.fail(411, "a request needs a Content-Length")
        if not 0 <= length <= MAX_BODY:
            return self.fail(413, "a request has at most " + str(MAX_BODY) + " bytes")
        if self.name() not in PATHS:
            return self.fail(404, "only POST /chat/completions, POST /responses and GET /models are offered")
        body = self.rfile.read(length)
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
        with numbers:
            if counts["waiting"] >= MAX_WAITING:
                return self.fail(429, "too many requests at a time")
            counts["requests"] += 1
            counts["waiting"] += 1
            number = counts["requests"]
        try:
            write_file(request_path(number), sent)
            reply = self.wait(number)
        finally:
            with numbers:
                counts["waiting"] -= 1
        if reply.get("items") and asked.get("store") is not False:
            responses["resp_" + str(number)] = history + reply["items"]
        self.answer(reply["status"], reply["body"], "text/event-stream" if reply["stream"] else "application/json")
        return None

    def name(self) -> str:
        path = self.path.split("?")[0].rstrip("/")
        return path[len("/v1") :] if path.startswith("/v1/") else path

    def history(self, asked: object) -> "list | None":
        named = asked.get("previous_response_id") if isinstance(asked, dict) else None
        if named is None or self.name() != "/responses":
            return []
        return responses.get(named) if isinstance(named, str) else None

    def wait(self, number: int) -> dict:
        while not os.path.exists(reply_path(number)):
            time.sleep(0.01)
        with open(reply_path(number), "rb") as file:
            reply = json.loads(file.read())
        os.unlink(reply_path(number))
        return dict(reply)

    def answer(self, status: int, body: str, kind: str = "application/json") -> None:
        content = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def fail(self, status: int, text: str, param: "str | None" = None, code: "str | None" = None) -> None:
        self.close_connection = True
        error = {"message": text, "type": "invalid_request_error", "param": param, "code": code}
        self.answer(status, json.dumps({"error": error}))

    def log_message(self, *arguments: object) -> None:
        pass


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
