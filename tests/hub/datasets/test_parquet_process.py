"""The process that reads Parquet files: damaged files, its limits and what it may access."""

import io
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.conf import settings

from hub.datasets import parquet
from hub.datasets.files import read_file
from hub.datasets.row_types import DatasetError
from sandbox.errors import SandboxUnavailable


def parquet_bytes(**columns: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def read(content: bytes) -> list[Any]:
    return [row for _, row in read_file("data/d.parquet", lambda _: io.BytesIO(content))]


def replace_worker(monkeypatch: pytest.MonkeyPatch, folder: Path, program: str) -> None:
    path = folder / "program.py"
    path.write_text(program)
    monkeypatch.setattr(parquet, "_WORKER", path)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import os; os.abort()", "damaged: the process that reads it ended before the end of the file (Aborted)"),
        ("print('[{}', end='', flush=True); import os; os.abort()", "before the end of the file (Aborted)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGXCPU)", "reading it needs more than 600 s of processor"),
        ("print('[{\"a\": 1}]')", "before the end of the file (exit code 0)"),
        ("print('3 <')", "before the end of the file (exit code 0)"),
    ],
)
def test_end_of_the_process_is_a_problem_of_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, reason: str
) -> None:
    replace_worker(monkeypatch, tmp_path, program)
    with pytest.raises(DatasetError, match=r"data/d\.parquet: ") as caught:
        read(parquet_bytes(a=[1]))
    assert reason in str(caught.value) and "Write the file again." in str(caught.value)


@pytest.mark.parametrize("program", ['print(\'{"unavailable": "no user"}\')', "import nothing"])
def test_process_that_does_not_start_is_no_problem_of_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str
) -> None:
    replace_worker(monkeypatch, tmp_path, program)
    with pytest.raises(SandboxUnavailable, match="Parquet files cannot be read here"):
        read(parquet_bytes(a=[1]))


def test_process_ends_when_reading_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def start(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(real(*words, **options))
        return started[0]

    monkeypatch.setattr(parquet.subprocess, "Popen", start)
    rows = read_file("d.parquet", lambda _: io.BytesIO(parquet_bytes(a=list(range(50_000)))))
    assert next(rows) == (1, {"a": 0})
    rows.close()  # type: ignore[attr-defined]
    assert started[0].poll() is not None


def test_times_with_zones_and_large_files_are_read() -> None:
    when = datetime(2026, 1, 31, 12, tzinfo=UTC)
    content = parquet_bytes(
        id=list(range(100_000)), at=pa.array([when] * 100_000, pa.timestamp("us", "Asia/Kathmandu"))
    )
    rows = read(content)
    expected = when.astimezone(ZoneInfo("Asia/Kathmandu")).isoformat()
    assert len(rows) == 100_000 and rows[-1] == {"id": 99_999, "at": expected}


_ESCAPED = """
import os, socket, sys
sys.path.insert(0, {root!r})
from hub.datasets import parquet_worker
parquet_worker.preload()
print(parquet_worker.contain(memory_mb=64, cpu_s=5))
def attempt(name, act):
    try:
        act()
    except (OSError, MemoryError):
        return
    print("could", name)
attempt("read", lambda: open("/etc/passwd"))
attempt("write", lambda: open("/tmp/x", "w"))
attempt("connect", lambda: socket.socket().connect(("127.0.0.1", 9)))
attempt("fork", os.fork)
attempt("use memory", lambda: bytearray(200 << 20))
"""


def test_process_has_no_files_network_processes_and_limited_memory() -> None:
    program = _ESCAPED.format(root=str(settings.BASE_DIR))
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    tier, *could = done.stdout.splitlines()
    assert tier == "B" and could == [], done.stderr
