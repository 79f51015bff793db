"""A chat-completions endpoint with a fixed latency, to measure the time that a harness adds. Standard library only.

    python benchmarks/endpoint.py --port 9931 --latency 0.1 [--humaneval HumanEval.jsonl.gz]

The model `echo` replies with the last message, `solver` with the canonical solution of the HumanEval problem in the
prompt.
GET /stats returns the number of requests, the highest number in flight, and the times of the first request and the
last response; with ?reset it then starts to count anew.
"""

import argparse
import asyncio
import gzip
import json
import re
import time
from pathlib import Path
from typing import Any


class Endpoint:
    """The server's state and its answers."""

    def __init__(self, latency: float, problems: dict[str, dict[str, Any]]) -> None:
        self.latency = latency
        self.problems = {_squeezed(problem["prompt"]): problem for problem in problems.values()}
        self.inflight = 0
        self._reset()

    def _reset(self) -> None:
        self.requests = self.peak = 0
        self.first = self.last = 0.0

    def stats(self, *, reset: bool) -> dict[str, Any]:
        stats = {"requests": self.requests, "peak": self.peak, "first": self.first, "last": self.last}
        if reset:
            self._reset()
        return stats

    async def complete(self, request: dict[str, Any]) -> dict[str, Any]:
        self.first = self.first or time.time()
        self.requests += 1
        self.inflight += 1
        self.peak = max(self.peak, self.inflight)
        await asyncio.sleep(self.latency)
        text = _text(request["messages"][-1])
        content = self._solution(text) if "solver" in request["model"] else text
        self.inflight -= 1
        self.last = time.time()
        usage = {"prompt_tokens": len(text) // 4, "completion_tokens": len(content) // 4}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        return {
            "id": f"chatcmpl-{self.requests}",
            "object": "chat.completion",
            "created": int(self.last),
            "model": request["model"],
            "choices": [choice],
            "usage": {**usage, "total_tokens": sum(usage.values())},
        }

    def _solution(self, text: str) -> str:
        flat = _squeezed(text)
        for prompt, problem in self.problems.items():
            if prompt in flat:
                return f"```python\n{problem['prompt']}{problem['canonical_solution']}\n```"
        return "I do not know this problem."

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length:\s*(\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(int(length[1])) if length else b""
                if head.startswith(b"POST"):
                    answer = await self.complete(json.loads(body))
                else:
                    answer = self.stats(reset=head.startswith(b"GET /stats?reset "))
                payload = json.dumps(answer).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                    % (len(payload), payload)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _squeezed(text: str) -> str:
    return "".join(text.split())


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--latency", type=float, default=0.1, help="seconds")
    parser.add_argument("--humaneval", type=Path)
    options = parser.parse_args()
    problems: dict[str, dict[str, Any]] = {}
    if options.humaneval:
        with gzip.open(options.humaneval, "rt", encoding="utf-8") as file:
            problems = {row["task_id"]: row for row in map(json.loads, file)}
    endpoint = Endpoint(options.latency, problems)
    server = await asyncio.start_server(endpoint.serve, "127.0.0.1", options.port, backlog=4096)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
