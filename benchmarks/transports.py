"""Processor time per call of the two transports of the official OpenAI client, measured in turns.

    .venv/bin/python benchmarks/transports.py [--rounds 4] [--calls 600]

Both call the same local endpoint with 64 requests in flight. Compare the ratio: absolute times depend on the machine.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path

import openai

PORT = 9932
IN_FLIGHT = 64


async def measure(client: openai.AsyncOpenAI, calls: int) -> float:
    """Return the processor time of this process per call, in milliseconds."""
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def one(i: int) -> None:
        async with slots:
            await client.chat.completions.with_raw_response.create(
                model="echo", messages=[{"role": "user", "content": f"number {i}"}]
            )

    await asyncio.gather(*(one(i) for i in range(IN_FLIGHT)))  # connections are made outside the measure
    started = time.process_time()
    await asyncio.gather(*(one(i) for i in range(calls)))
    return (time.process_time() - started) * 1000 / calls


async def compare(rounds: int, calls: int) -> None:
    url = f"http://127.0.0.1:{PORT}/v1"
    clients = {
        "default": openai.AsyncOpenAI(api_key="x", base_url=url, http_client=openai.DefaultAsyncHttpxClient()),
        "aiohttp": openai.AsyncOpenAI(api_key="x", base_url=url, http_client=openai.DefaultAioHttpClient()),
    }
    figures: dict[str, list[float]] = {name: [] for name in clients}
    for _ in range(rounds):
        for name, client in clients.items():
            figures[name].append(await measure(client, calls))
    for client in clients.values():
        await client.close()
    medians = {name: statistics.median(values) for name, values in figures.items()}
    for name, value in medians.items():
        print(f"{name:8} {value:.2f} ms of processor time per call")
    print(f"the default transport costs {medians['default'] / medians['aiohttp']:.2f} x aiohttp's")


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
