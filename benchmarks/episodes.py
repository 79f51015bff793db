"""Throughput of episodes over REST: single-turn episodes and tool steps per second with 32 clients, with p95 latency.

    .venv/bin/python benchmarks/episodes.py [--episodes 600] [--clients 32]

Starts the site (gunicorn, as `manage.py serve` does) on a new database, and runs the environments word-problems and
order-desk with their gold answers. There is no other product to compare with; the figures show the time that the
product adds to each step. On Linux the processor time of the site and its sandboxes per request is printed as well,
because other processes on the machine hardly affect it.

Last, all clients take a step at the same time whose tool sleeps for seven seconds, and `/healthz` is requested ten
times a second until all steps have ended.
"""

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from processes import processor_seconds

ROOT = Path(__file__).resolve().parent.parent
PORT = 9934
URL = f"http://127.0.0.1:{PORT}"
_TOKEN = """
from django.contrib.auth.models import User
from hub.models import Environment
from llmeval_site.accounts.tokens import create_token
Environment.objects.update(visibility="published")
print(create_token(user=User.objects.create_user("bench"), scopes=["read", "train"])[1])
"""


_LONG_STEP_S = 7
_SLOW_ENVIRONMENT = {
    "environment.yaml": f"""
spec: 1
slug: long-steps
version: 1.0.0
title: Long steps
summary: A tool that sleeps.
category: tool-use
license: MIT
dataset: {{path: cases.jsonl}}
harness: {{type: tools, tools: tools.py, prompt: "{{{{ input }}}}", max_turns: 3, call_seconds: {_LONG_STEP_S + 5}}}
scoring: {{rules: [{{name: word, type: includes, target: done}}]}}
""",
    "tools.py": f"""
import time

def rest() -> str:
    \"\"\"Rest.\"\"\"
    time.sleep({_LONG_STEP_S})
    return "rested"
""",
    "cases.jsonl": '{"id": "rest", "input": "Rest, then say done."}\n',
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=600)
    parser.add_argument("--clients", type=int, default=32)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, _site(folder) as site:
        single = _gold("word-problems")
        driven = _drive(site, "word-problems", single, options.episodes, options.clients)
        _tell("single-turn episodes", options.episodes, driven)
        tools = _gold("order-desk")
        driven = _drive(site, "order-desk", tools, max(options.episodes // 6, 1), options.clients)
        _tell("tool steps", len(driven.steps), driven)
        driven = _drive(site, "order-desk", tools, 40, 1)
        _tell("tool steps, one client", len(driven.steps), driven)
        for calls in sorted(set(driven.calls)):
            found = [ms for ms, made in zip(driven.steps, driven.calls, strict=True) if made == calls]
            print(f"  with {calls} calls of tools: {len(found):3} steps   p50 {statistics.median(found):6.1f} ms")
        health = _health_during_long_steps(site, options.clients)
        p95 = statistics.quantiles(health, n=20)[18]
        print(f"/healthz during {options.clients} steps of {_LONG_STEP_S} s: {len(health)} requests   ", end="")
        print(f"p50 {statistics.median(health):.1f} ms   p95 {p95:.1f} ms   longest {max(health):.1f} ms")


@dataclass(frozen=True, slots=True)
class Site:
    token: str
    pid: int


@dataclass(frozen=True, slots=True)
class Driven:
    """Wall time in seconds, each step's in milliseconds, and the processor time of a request in milliseconds.

    `calls`: how many tools each step called. A step without any is the episode's last, which is scored.
    """

    seconds: float
    steps: list[float]
    calls: list[int]
    processor_ms: float


def _tell(what: str, count: int, driven: Driven) -> None:
    p95 = statistics.quantiles(driven.steps, n=20)[18]
    print(
        f"{what:24} {count / driven.seconds:7.1f} a second   step p50 {statistics.median(driven.steps):6.1f} ms   "
        f"p95 {p95:6.1f} ms   processor {driven.processor_ms:5.1f} ms a request"
    )


def _gold(slug: str) -> dict[str, list[dict[str, Any]]]:
    """The assistant's turns of each case's gold answer."""
    turns = {}
    for line in (ROOT / "hub" / "catalog" / slug / "gold.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        turns[row["case"]] = row.get("messages") or [{"content": row["content"]}]
    return turns


def _drive(site: Site, slug: str, gold: dict[str, list[dict[str, Any]]], episodes: int, clients: int) -> Driven:
    """Play *episodes* by so many *clients* at once."""
    cases = [case for case, _ in zip(_forever(list(gold)), range(episodes), strict=False)]
    local = threading.local()
    steps: list[tuple[float, int]] = []

    def play(case: str) -> None:
        if not hasattr(local, "http"):
            local.http = http.client.HTTPConnection("127.0.0.1", PORT, timeout=120)
        begun = _call(local.http, site.token, "/api/v1/episodes/", {"environment": slug, "case": case})
        for message in gold[case]:
            started = time.perf_counter()
            step = _call(local.http, site.token, f"/api/v1/episodes/{begun['id']}/step", {"message": message})
            steps.append(((time.perf_counter() - started) * 1000, len(message.get("tool_calls", []))))
        if not step["done"] or step["reward"] != 1.0:
            sys.exit(f"{slug} {case}: the gold answer earned {step}")

    for case in cases[:clients]:
        play(case)  # the workers and their sandboxes are warm before the clock starts
    steps.clear()
    started, used = time.monotonic(), processor_seconds(site.pid)
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(play, cases))
    took, used = time.monotonic() - started, processor_seconds(site.pid) - used
    times, calls = map(list, zip(*steps, strict=True))
    return Driven(took, times, calls, used * 1000 / (len(steps) + episodes))


def _health_during_long_steps(site: Site, clients: int) -> list[float]:
    """Return the milliseconds of each request of `/healthz` while each client waits for the answer to a long step."""
    tool = {"id": "c1", "type": "function", "function": {"name": "rest", "arguments": "{}"}}
    message = {"role": "assistant", "content": "", "tool_calls": [tool]}
    headers = {"Authorization": f"Token {site.token}", "Prefer": "respond-async"}

    def step(_: int) -> None:
        with requests.Session() as session:
            session.headers.update(headers)
            begun = session.post(f"{URL}/api/v1/episodes/", json={"environment": "long-steps"}, timeout=120)
            if begun.status_code != 201:
                sys.exit(f"the episode of long steps was not started: {begun.text}")
            url = f"{URL}/api/v1/episodes/{begun.json()['id']}"
            answer = session.post(f"{url}/step", json={"message": message, "turn": 0}, timeout=120)
            while answer.status_code == 202:
                time.sleep(float(answer.headers["Retry-After"]))
                answer = session.get(f"{url}/turns/0?wait=20", timeout=120)
            if answer.json()["observation"]["messages"][-1]["content"] != "rested":
                sys.exit(f"the long step was answered with {answer.text}")

    times = []
    with ThreadPoolExecutor(clients) as pool, requests.Session() as session:
        steps = [pool.submit(step, number) for number in range(clients)]
        while not all(item.done() for item in steps):
            started = time.perf_counter()
            session.get(f"{URL}/healthz", timeout=120).raise_for_status()
            times.append((time.perf_counter() - started) * 1000)
            time.sleep(0.1)
        for item in steps:
            item.result()
    return times


def _call(connection: http.client.HTTPConnection, token: str, path: str, body: dict[str, Any]) -> Any:
    """Post *body*, by the library that costs least: a client's own time is no part of a step's."""
    headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status >= 300:
        sys.exit(f"{path} answered {answer.status}: {text[:400]!r}")
    return json.loads(text)


def _forever(items: list[str]) -> Iterator[str]:
    while True:
        yield from items


@contextmanager
def _site(folder: str) -> Iterator[Site]:
    environment = {**os.environ, "LLMEVAL_VAR": folder, "LLMEVAL_EPISODES_PER_USER": "100000"}
    manage = [sys.executable, str(ROOT / "manage.py")]
    subprocess.run([*manage, "prepare"], check=True, env=environment)
    bundle = Path(folder) / "long-steps"
    bundle.mkdir()
    for name, text in _SLOW_ENVIRONMENT.items():
        (bundle / name).write_text(text, encoding="utf-8")
    subprocess.run([*manage, "import_bundle", str(bundle)], check=True, env=environment, stdout=subprocess.DEVNULL)
    shell = [*manage, "shell", "-v0", "-c", _TOKEN]
    token = subprocess.run(shell, check=True, env=environment, capture_output=True, text=True).stdout.split()[-1]
    web = [sys.executable, "-m", "gunicorn", "llmeval_site.wsgi", "--bind", f"127.0.0.1:{PORT}", "--workers", "2"]
    process = subprocess.Popen([*web, "--threads", "8", "--log-level", "error"], env=environment, cwd=ROOT)
    try:
        for _ in range(100):
            try:
                requests.get(f"{URL}/healthz", timeout=10)
                break
            except requests.RequestException:
                time.sleep(0.1)
        yield Site(token, process.pid)
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
