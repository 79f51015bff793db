"""Processor time per call of the official OpenAI client, its transports and the HTTP clients below it, in turns.

    .venv/bin/python benchmarks/transports.py [--rounds 4] [--calls 600]

All call the same local endpoint with 64 requests in flight. Compare the ratio: absolute times depend on the machine.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import httpx2
import openai

PORT = 9932
URL = f"http://127.0.0.1:{PORT}/v1"
HEADERS = {"Authorization": "Bearer x", "Content-Type": "application/json"}
IN_FLIGHT = 64
PRODUCT = "official client, post, aiohttp (the product)"

Call = Callable[[bytes], Awaitable[object]]


async def measure(call: Call, calls: int) -> float:
    """Return the processor time of this process per call, in milliseconds."""
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def one(i: int) -> None:
        async with slots:
            message = {"role": "user", "content": f"number {i}"}
            await call(json.dumps({"model": "echo", "messages": [message]}).encode())

    await asyncio.gather(*(one(i) for i in range(IN_FLIGHT)))  # connections are made outside the measure
    started = time.process_time()
    await asyncio.gather(*(one(i) for i in range(calls)))
    return (time.process_time() - started) * 1000 / calls


def official_create(client: openai.AsyncOpenAI) -> Call:
    """Return a call of `chat.completions.create`, as most programs make it."""

    async def call(body: bytes) -> object:
        return await client.chat.completions.with_raw_response.create(**json.loads(body))

    return call


def official_post(client: openai.AsyncOpenAI) -> Call:
    """Return a call as runs/providers/openai_api/client.py makes it."""

    async def call(body: bytes) -> object:
        return await client.post("/chat/completions", cast_to=httpx2.Response, content=body)

    return call


def http_client(client: httpx2.AsyncClient) -> Call:
    async def call(body: bytes) -> object:
        return (await client.post(f"{URL}/chat/completions", content=body, headers=HEADERS)).content

    return call


def aiohttp_session(session: aiohttp.ClientSession) -> Call:
    async def call(body: bytes) -> object:
        async with session.post(f"{URL}/chat/completions", data=body, headers=HEADERS) as response:
            return await response.read()

    return call


async def compare(rounds: int, calls: int) -> None:
    default = openai.AsyncOpenAI(api_key="x", base_url=URL, http_client=openai.DefaultAsyncHttpxClient())
    fast = openai.AsyncOpenAI(api_key="x", base_url=URL, http_client=openai.DefaultAioHttpClient())
    async with default, fast, openai.DefaultAioHttpClient() as http, aiohttp.ClientSession() as session:
        named = {
            "official client, create, default transport": official_create(default),
            "official client, create, aiohttp": official_create(fast),
            PRODUCT: official_post(fast),
            "HTTP client of the official client, aiohttp": http_client(http),
            "aiohttp alone": aiohttp_session(session),
        }
        figures: dict[str, list[float]] = {name: [] for name in named}
        for _ in range(rounds):
            for name, call in named.items():
                figures[name].append(await measure(call, calls))
    medians = {name: statistics.median(values) for name, values in figures.items()}
    for name, value in medians.items():
        print(f"{name:45} {value:5.2f} ms of processor time per call   {value / medians[PRODUCT]:5.2f} x the product's")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--calls", type=int, default=600)
    options = parser.parse_args()
    script = Path(__file__).with_name("endpoint.py")
    server = subprocess.Popen([sys.executable, str(script), "--port", str(PORT), "--latency", "0.02"])
    try:
        time.sleep(1)
        asyncio.run(compare(options.rounds, options.calls))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
