"""What the chaos run evaluates: two environments, one of texts and one of code, and the endpoint that answers."""

import json
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.endpoint import Answer, completion

MODELS = ("one", "two")
PRICE = 1.0  # USD per million tokens; a reply of the endpoint has 15

Key = tuple[str, str, int]
"""Model, question and seed: a response that the run needs."""

_TEXT = """\
spec: 1
slug: numbers
version: 1.0.0
title: Numbers
summary: Repeat the number.
category: domain-knowledge
dataset: {path: cases.jsonl, fields: {input: question, target: answer}}
scoring: {rules: [{type: exact_match}]}
"""
_CODE = """\
spec: 1
slug: functions
version: 1.0.0
title: Functions
summary: Write a function that returns the number.
category: domain-knowledge
dataset: {path: cases.jsonl, fields: {input: question, target: answer}}
scoring: {rules: [{type: python_tests, tests: "def test_f():\\n    assert f() == {{ answer }}"}]}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Size of a chaos run. latency_s: of the endpoint; concurrency: requests in flight per model."""

    texts: int
    programs: int
    attempts: int
    concurrency: int
    latency_s: float
    shard_responses: int
    faults: int
    within_s: float

    @property
    def responses(self) -> int:
        return (self.texts + self.programs) * len(MODELS) * self.attempts


SHORT = Size(
    texts=180, programs=20, attempts=2, concurrency=6, latency_s=0.25, shard_responses=50, faults=7, within_s=150.0
)
FULL = Size(
    texts=4800,
    programs=200,
    attempts=1,
    concurrency=16,
    latency_s=0.25,
    shard_responses=500,
    faults=20,
    within_s=1800.0,
)


def write_work(folder: Path, url: str, size: Size) -> str:
    """Write both environments into *folder*, and return the text of the config that evaluates them."""
    for name, manifest, count in (("numbers", _TEXT, size.texts), ("functions", _CODE, size.programs)):
        bundle = folder / name
        bundle.mkdir()
        (bundle / "environment.yaml").write_text(manifest)
        ask = "Repeat" if name == "numbers" else "Write the function"
        rows = [{"id": f"{name}-{i}", "question": f"{ask} {i}", "answer": str(i)} for i in range(count)]
        (bundle / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    models = [
        {
            "name": name,
            "provider": "openai",
            "model": name,
            "base_url": url,
            "price": {"input": PRICE, "output": PRICE},
            "parameters": {"send_seed": True},
        }
        for name in MODELS
    ]
    return json.dumps(
        {
            "name": "chaos",
            "environments": [{"path": "numbers"}, {"path": "functions"}],
            "models": models,
            "attempts": size.attempts,
            "concurrency": size.concurrency,
            "sandbox": {"accept": ["A", "B", "C"]},
            "tracking": {"mlflow": False},
        }
    )


def key_of(request: dict[str, object]) -> Key:
    """Return which response a request to the endpoint is for."""
    messages, seed = request["messages"], request["seed"]
    assert isinstance(messages, list) and isinstance(seed, int)
    return str(request["model"]), str(messages[-1]["content"]), seed


@dataclass(slots=True)
class CountingScript:
    """Answers of the endpoint, and when it received and answered each request. While it is down, it rejects all."""

    latency_s: float
    arrived: dict[Key, list[float]] = field(default_factory=dict)
    answered: dict[Key, list[float]] = field(default_factory=dict)
    peaks: Counter[str] = field(default_factory=Counter)
    peaked_at: dict[str, float] = field(default_factory=dict)
    rejected: int = 0
    down_until: float = 0.0
    _in_flight: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: dict[str, object], number: int) -> Answer:
        key, model = key_of(request), str(request["model"])
        with self._lock:
            self.arrived.setdefault(key, []).append(time.time())
            self._in_flight[model] += 1
            if self._in_flight[model] > self.peaks[model]:
                self.peaks[model], self.peaked_at[model] = self._in_flight[model], time.time()
        time.sleep(self.latency_s * random.uniform(0.5, 1.5))
        with self._lock:
            self._in_flight[model] -= 1
            if time.time() < self.down_until:
                self.rejected += 1
                return Answer({"error": {"message": "down"}}, status=503) if number % 2 else Answer(reset=True)
            self.answered.setdefault(key, []).append(time.time())
        verb, _, value = key[1].rpartition(" ")
        if verb == "Repeat":
            return completion(value if int(value) % 7 else "-1")
        return completion(f"```python\ndef f():\n    return {value if int(value) % 7 else -1}\n```")
