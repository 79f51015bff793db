"""Memory and time per case for runs of 1,000 and 50,000 cases, each in its own process.

    .venv/bin/python benchmarks/scale.py [--small 1000] [--large 50000]

The endpoint replies immediately, so that only the product is measured. Compare the two ratios.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "var" / "bench"
PORT = 9933


@dataclass(frozen=True)
class Figures:
    """Figures of one run: seconds of execution, and peak resident memory of the process in MiB."""

    cases: int
    seconds: float
    peak_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=1000)
    parser.add_argument("--large", type=int, default=50_000)
    options = parser.parse_args()
    command = [sys.executable, str(ROOT / "benchmarks" / "endpoint.py"), "--port", str(PORT), "--latency", "0"]
    server = subprocess.Popen(command)
    try:
        time.sleep(1)
        small, large = (_run(cases) for cases in (options.small, options.large))
    finally:
        server.terminate()
        server.wait()
    for item in (small, large):
        per_case = item.seconds * 1000 / item.cases
        print(f"{item.cases:7,} cases: peak {item.peak_mb:6.1f} MiB, {per_case:.2f} ms a case")
    memory = large.peak_mb / small.peak_mb
    pace = (large.seconds / large.cases) / (small.seconds / small.cases)
    print(f"{options.large // options.small} times the cases: {memory:.2f} x the memory, {pace:.2f} x the time a case")


def _run(cases: int) -> Figures:
    folder = BENCH / f"scale-{cases}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "cases.jsonl").open("w", encoding="utf-8") as file:
        for i in range(cases):
            file.write(json.dumps({"id": str(i), "input": f"Repeat the number {i}", "target": str(i)}) + "\n")
    (folder / "environment.yaml").write_text(
        f"spec: 1\nslug: scale-{cases}\nversion: 1.0.0\ntitle: Scale\nsummary: Echoed numbers.\ncategory: reasoning\n"
        "dataset: {path: cases.jsonl}\nscoring: {rules: [{type: number}]}\n"
    )
    config = BENCH / f"scale-{cases}.yaml"
    config.write_text(
        f"name: scale\nenvironments: [{{path: scale-{cases}}}]\nconcurrency: 64\ntracking: {{mlflow: false}}\n"
        f"models: [{{name: local, provider: openai, model: echo, base_url: 'http://127.0.0.1:{PORT}/v1'}}]\n"
    )
    # Imported beforehand, so that only the run is measured.
    _manage("prepare")
    _manage("import_bundle", str(folder))
    report = BENCH / "scale.json"
    with report.open("w") as out:
        process = subprocess.Popen(
            [
                *_MANAGE,
                "eval",
                "--config",
                str(config.resolve()),
                "--set",
                f"environments=[scale-{cases}]",
                "--no-cache",
                "--json",
            ],
            stdout=out,
            stderr=subprocess.PIPE,
        )
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"the run of {cases} cases ended with status {status}: {process.stderr.read().decode()}")
    return Figures(cases, json.loads(report.read_text())["seconds"], usage.ru_maxrss / 1024)


_MANAGE = [sys.executable, str(ROOT / "manage.py")]


def _manage(*arguments: str) -> None:
    subprocess.run([*_MANAGE, *arguments], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
