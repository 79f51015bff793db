"""Episodes over REST: single-turn episodes a second with 32 clients, and tool steps a second, with their p95.

    .venv/bin/python benchmarks/episodes.py [--episodes 600] [--clients 32]

Starts the site (gunicorn, as `manage.py serve` does) on a database of its own, and drives the catalogue's word-problems
and order-desk with their gold answers. The product has no peer here to stand beside; the share of each step that is
the product's own is what the figures say.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

ROOT = Path(__file__).resolve().parent.parent
PORT = 9934
URL = f"http://127.0.0.1:{PORT}"
_TOKEN = """
from django.contrib.auth.models import User
from rest_framework.authtoken.models import Token
print(Token.objects.create(user=User.objects.create_user("bench")).key)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=600)
    parser.add_argument("--clients", type=int, default=32)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, _site(folder) as token:
        single = _gold("word-problems")
        took, steps = _drive(token, "word-problems", single, options.episodes, options.clients)
        _tell("single-turn episodes", options.episodes, took, steps)
        tools = _gold("order-desk")
        took, steps = _drive(token, "order-desk", tools, max(options.episodes // 6, 1), options.clients)
        _tell("tool steps", len(steps), took, steps)
        took, steps = _drive(token, "order-desk", tools, 40, 1)
        _tell("tool steps, one client", len(steps), took, steps)


def _tell(what: str, count: int, seconds: float, steps: list[float]) -> None:
    p95 = statistics.quantiles(steps, n=20)[18]
    print(
        f"{what:24} {count / seconds:7.1f} a second   step p50 {statistics.median(steps):6.1f} ms   p95 {p95:6.1f} ms"
    )


def _gold(slug: str) -> dict[str, list[dict[str, Any]]]:
    """The assistant's turns of each case's gold answer."""
    turns = {}
    for line in (ROOT / "hub" / "catalog" / slug / "gold.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        turns[row["case"]] = row.get("messages") or [{"content": row["content"]}]
    return turns


def _drive(
    token: str, slug: str, gold: dict[str, list[dict[str, Any]]], episodes: int, clients: int
) -> tuple[float, list[float]]:
    """Play *episodes*; the wall time in seconds, and each step's in milliseconds."""
    cases = [case for case, _ in zip(_forever(list(gold)), range(episodes), strict=False)]
    local = threading.local()
    steps: list[float] = []

    def play(case: str) -> None:
        if not hasattr(local, "http"):
            local.http = requests.Session()
            local.http.headers["Authorization"] = f"Token {token}"
        begun = _call(local.http.post, f"{URL}/api/v1/episodes/", {"environment": slug, "case": case})
        for message in gold[case]:
            started = time.perf_counter()
            step = _call(local.http.post, f"{URL}/api/v1/episodes/{begun['id']}/step", {"message": message})
            steps.append((time.perf_counter() - started) * 1000)
        if not step["done"] or step["reward"] != 1.0:
            sys.exit(f"{slug} {case}: the gold answer earned {step}")

    for case in cases[:clients]:
        play(case)  # the workers and their sandboxes are warm before the clock starts
    steps.clear()
    started = time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(play, cases))
    return time.monotonic() - started, steps


def _call(method: Callable[..., requests.Response], url: str, body: dict[str, Any]) -> Any:
    answer = method(url, json=body, timeout=120)
    if not answer.ok:
        sys.exit(f"{url} answered {answer.status_code}: {answer.text[:400]}")
    return answer.json()


def _forever(items: list[str]) -> Iterator[str]:
    while True:
        yield from items


@contextmanager
def _site(folder: str) -> Iterator[str]:
    environment = {**os.environ, "LLMEVAL_VAR": folder, "LLMEVAL_EPISODES_PER_USER": "100000"}
    manage = [sys.executable, str(ROOT / "manage.py")]
    subprocess.run([*manage, "prepare"], check=True, env=environment)
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
        yield token
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
