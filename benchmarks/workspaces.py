"""Speed of boxes of workspaces: the native and the Docker engine, in turns.

    python benchmarks/workspaces.py [--at-once 8] [--episodes 32] [--commands 10] [--rounds 3] [--files 2000]
        [--json FILE] [--inspect]

An episode opens a box (its reset), runs commands that write and read a file, and closes the box. The engines alternate
in each round, so that other load on the machine affects both; compare them only with each other. After the rounds,
files are written into a box, read as artifacts, and written into the box that scores them. Needs root, Docker, and the
sandbox's image, which is built. Exits with 1 if a command fails or a box is left behind. With `--inspect`, the
same episodes are executed in Inspect AI's Docker sandbox in each round, without a model.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from inspect_boxes import run_round

from sandbox.workspaces.base import BoxLimits, BoxSpec, WorkspaceEngine
from sandbox.workspaces.docker_engine import DockerWorkspaces
from sandbox.workspaces.native_engine import NativeWorkspaces
from tests.sandbox import containers

_COMMAND = "echo line >> notes; wc -l < notes"


class Times:
    """Milliseconds of each operation of one engine, and its episodes per second in each round."""

    def __init__(self) -> None:
        self.reset: list[float] = []
        self.command: list[float] = []
        self.close: list[float] = []
        self.rates: list[float] = []

    def summary(self) -> dict[str, float]:
        """Return the medians, 95th percentiles and the median rate."""
        found = {}
        for name in ("reset", "command", "close"):
            cuts = statistics.quantiles(getattr(self, name), n=20)
            found |= {f"{name}_p50_ms": cuts[9], f"{name}_p95_ms": cuts[18]}
        return found | {"episodes_per_s": statistics.median(self.rates)}


def run_episode(engine: WorkspaceEngine, image: str, commands: int, times: Times) -> None:
    """Open a box, run the commands and close it. Raises AssertionError if a command fails."""
    started = time.perf_counter()
    box = engine.open(BoxSpec(image=image, limits=BoxLimits(disk_mb=16, memory_mb=64, episode_s=300)))
    try:
        times.reset.append((time.perf_counter() - started) * 1000)
        for number in range(commands):
            started = time.perf_counter()
            result = engine.execute(box, _COMMAND, 30)
            times.command.append((time.perf_counter() - started) * 1000)
            assert result.output.strip() == str(number + 1), result
    finally:
        started = time.perf_counter()
        engine.close(box)
        times.close.append((time.perf_counter() - started) * 1000)


def prepared_times(image: str, number: int) -> list[float]:
    """Return the milliseconds in which *number* episodes begin in boxes of Docker that wait for them."""
    engine = DockerWorkspaces(prepared=1)
    spec = BoxSpec(image=image, limits=BoxLimits(disk_mb=16, memory_mb=64, episode_s=300))
    times = []
    for _ in range(number + 1):
        started = time.perf_counter()
        box = engine.open(spec)
        times.append((time.perf_counter() - started) * 1000)
        time.sleep(1.5)  # the model's time, in which the next box is opened
        engine.close(box)
    engine.prepared.close()
    return times[1:]


def copy_times(engine: WorkspaceEngine, image: str, number: int) -> dict[str, float]:
    """Return the seconds in which *number* small files are written into a box, read, and written into a second box."""
    spec = BoxSpec(image=image, limits=BoxLimits(disk_mb=256, memory_mb=64, episode_s=300))
    box = engine.open(spec)
    times = {}
    try:
        started = time.perf_counter()
        engine.write(box, {f"{i % 50}/{i}.txt": b"line\n" * 50 for i in range(number)})
        times["write"] = time.perf_counter() - started
        started = time.perf_counter()
        artifacts = engine.export_artifacts(box, [spec.workdir], 64)
        times["read"] = time.perf_counter() - started
        started = time.perf_counter()
        second = engine.open_from(spec, artifacts)
        times["open a box with them"] = time.perf_counter() - started
        engine.close(second)
    finally:
        engine.close(box)
    return times


def print_peer(peer: Times, times: dict[str, Times]) -> None:
    """Print the figures of Inspect's Docker sandbox, and how many times as fast the engines are."""
    rate, command = statistics.median(peer.rates), statistics.median(peer.command)
    print(f"Inspect's Docker sandbox: {rate:.2f} episodes a second, commands {command:.0f} ms (median)")
    for name, own in times.items():
        print(
            f"  {name}: {statistics.median(own.rates) / rate:.1f} times as many episodes a second, "
            f"commands {command / statistics.median(own.command):.1f} times as fast"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--commands", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=2000, help="that are copied, at most 19,900")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--inspect", action="store_true", help="also Inspect AI's Docker sandbox")
    options = parser.parse_args()
    image = containers.image()
    with tempfile.TemporaryDirectory(prefix="llmeval-bench-") as folder:
        native = NativeWorkspaces(Path(folder))
        native.check(image)
        engines: dict[str, WorkspaceEngine] = {"native": native, "docker": DockerWorkspaces()}
        times = {name: Times() for name in engines}
        peer = Times()
        for engine in engines.values():  # not measured
            run_episode(engine, image, 1, Times())
        if options.inspect:  # ends here if Inspect cannot use this Docker
            run_round(image, _COMMAND, episodes=1, commands=1, at_once=1)
        for _ in range(options.rounds):
            for name, engine in engines.items():
                started = time.perf_counter()
                with ThreadPoolExecutor(options.at_once) as threads:
                    made = [
                        threads.submit(run_episode, engine, image, options.commands, times[name])
                        for _ in range(options.episodes)
                    ]
                    for episode in made:
                        episode.result()
                times[name].rates.append(options.episodes / (time.perf_counter() - started))
            if options.inspect:
                measured = run_round(
                    image, _COMMAND, episodes=options.episodes, commands=options.commands, at_once=options.at_once
                )
                peer.command += measured.commands_ms
                peer.rates.append(options.episodes / measured.seconds)
        copies = {name: copy_times(engine, image, options.files) for name, engine in engines.items()}
        claims = prepared_times(image, 20)
        left = list(Path(folder, "boxes").iterdir())
    found = {name: measured.summary() for name, measured in times.items()}
    for figure in found["native"]:
        values = [found[name][figure] for name in engines]
        ratio = values[1] / values[0]
        print(f"{figure:18} native {values[0]:9.1f}   docker {values[1]:9.1f}   docker/native {ratio:6.2f}")
    cuts = statistics.quantiles(claims, n=20)
    print(f"reset in a prepared box of Docker: {cuts[9]:.1f} ms (median), {cuts[18]:.1f} ms (95th percentile)")
    for name, seconds in copies.items():
        parts = ", ".join(f"{what} {value:.2f} s" for what, value in seconds.items())
        print(f"{options.files:,} files, {name}: {parts}")
    if options.inspect:
        print_peer(peer, times)
        found["inspect"] = {
            "command_p50_ms": statistics.median(peer.command),
            "episodes_per_s": statistics.median(peer.rates),
        }
    if options.json:
        options.json.write_text(json.dumps(found, indent=2), encoding="utf-8")
    if left:
        print(f"{len(left)} boxes are left behind")
    return 1 if left else 0


if __name__ == "__main__":
    raise SystemExit(main())
