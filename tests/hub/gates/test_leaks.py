"""Tests of the gate `sealed`: its probe finds expected answers in files and objects, and reports nothing else."""

import subprocess
import sys

import pytest

from hub.bundles.loader import open_bundle
from hub.gates.leaks import FOLDERS, MARK, probe_answer
from hub.gates.runner import run_gates
from hub.protocols.cases import CaseData
from tests.hub.bundle_files import lines, write_bundle
from tests.hub.playing import environment

TESTS = ["assert largest([1, 2, 3]) == 3", "assert largest([-7, -9]) == -7"]
RULE = {"type": "python_tests", "entry_point": "largest", "tests": TESTS}


def probe():
    answer = probe_answer(
        environment({"type": "single_turn"}, rules=[RULE]), CaseData(id="c", input="Write it."), [], []
    )
    return answer["content"].removeprefix("```python\n").removesuffix("\n```")


def run_probe(folder, before=""):
    """Return the error output of the probe, run in *folder* without a sandbox and searching only this folder."""
    (folder / "answer.py").write_text(before + probe().replace(FOLDERS, "[os.getcwd()]"))
    done = subprocess.run([sys.executable, "-I", "answer.py"], cwd=folder, capture_output=True, text=True, timeout=60)
    return done.stderr


def test_probe_finds_tests_in_a_file_beside_it(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "cache.bin").write_bytes(b"\x00\x01" + TESTS[1].encode())
    assert f"{MARK} {tmp_path}/deep/cache.bin" in run_probe(tmp_path)


def test_probe_finds_tests_in_objects_of_its_process(tmp_path):
    assert f"{MARK} an object" in run_probe(tmp_path, before=f"suite = {{'t': 'x' + {TESTS[0][::-1]!r}[::-1]}}\n")


def test_probe_does_not_report_itself(tmp_path):
    assert run_probe(tmp_path) == ""


def test_no_probe_if_no_rule_runs_code_of_the_model():
    assert (
        probe_answer(
            environment({"type": "single_turn"}, rules=[{"type": "exact_match"}]), CaseData(id="c", target="x"), [], []
        )
        is None
    )


@pytest.fixture
def bundle(tmp_path):
    row = {"id": "c", "input": "Write largest.", "code": "def largest(values):\n    return max(values)\n"}
    changes = {"dataset": {"path": "cases.jsonl"}, "scoring": {"rules": [RULE]}, "gold": {"content": "{{ code }}"}}
    return write_bundle(tmp_path, files={"cases.jsonl": lines([row])}, wrong=None, **changes)


def sealed(folder, pool):
    with open_bundle(folder) as opened:
        return next(gate for gate in run_gates(opened, pool=pool)["gates"] if gate["name"] == "sealed")


def test_probe_finds_nothing_in_the_sandbox(bundle, pool):
    assert (sealed(bundle, pool)["status"], sealed(bundle, pool)["checked"]) == ("passed", 1)


def test_report_of_the_probe_leaves_the_sandbox(bundle, pool, monkeypatch):
    known = "OS routines for NT or Posix"  # in the docstring of a module that every process has imported
    monkeypatch.setattr("hub.gates.leaks.secret_texts", lambda *_: [known])
    assert "an object of its own process" in sealed(bundle, pool)["failures"][0]["message"]
