"""Reader of .parquet files, in a process of its own with limits: PyArrow aborts its process on some damaged files."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from hub.datasets.row_types import MAX_DATA_BYTES, MAX_ROW_BYTES, MAX_ROWS, DatasetError
from sandbox.errors import SandboxUnavailable

# Not imported here: that would load PyArrow in every process.
_WORKER = Path(__file__).resolve().with_name("parquet_worker.py")
_CPU_S = 600  # of processor time to read a file
_MAX_PART = 32 * MAX_ROW_BYTES  # bytes of one part of the rows as JSON
_END_S = 10.0  # for the process to end after its last part


def read_parquet(path: str, stream: IO[bytes]) -> Iterator[tuple[int, object]]:
    """Yield (number, row) of a parquet file, from 1. Raises DatasetError, also if the process that reads it ends."""
    with tempfile.TemporaryFile() as file:  # parquet needs a seekable file, which a zip member or a .gz is not
        size = 0
        while chunk := stream.read(1 << 20):
            size += len(chunk)
            if size > MAX_DATA_BYTES:
                raise DatasetError(path, None, f"the data is more than {MAX_DATA_BYTES:,} bytes.")
            file.write(chunk)
        file.seek(0)
        yield from _read(path, file)


def _read(path: str, file: IO[bytes]) -> Iterator[tuple[int, object]]:
    limits = {"data_bytes": MAX_DATA_BYTES, "row_bytes": MAX_ROW_BYTES, "rows": MAX_ROWS, "cpu_s": _CPU_S}
    with subprocess.Popen(
        [sys.executable, "-I", "-B", str(_WORKER), json.dumps(limits)],
        stdin=file,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.defpath, "PYTHONUTF8": "1", "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            number = 0
            while line := process.stdout.readline(_MAX_PART):
                try:
                    part = json.loads(line)
                except (ValueError, RecursionError):
                    break  # it ended within the line
                if isinstance(part, dict):
                    if "error" in part:
                        raise DatasetError(path, part["line"], part["error"], part["remedy"])
                    if "unavailable" in part:
                        raise SandboxUnavailable(f"Parquet files cannot be read here: {part['unavailable']}.")
                    return
                for row in part:
                    number += 1
                    yield number, row
            process.stdout.close()
            raise DatasetError(path, None, _why_ended(process), "Write the file again.")
        finally:
            process.kill()


def _why_ended(process: subprocess.Popen[bytes]) -> str:
    """Return why the process ended before the end of the file. Raises SandboxUnavailable if it could not start."""
    try:
        status = process.wait(_END_S)
    except subprocess.TimeoutExpired:
        return "the process that reads it wrote something else than rows."
    if status == -signal.SIGXCPU:
        return f"reading it needs more than {_CPU_S:,} s of processor time."
    if status > 0:
        raise SandboxUnavailable(f"Parquet files cannot be read here: the process that reads them ends with {status}.")
    reason = signal.strsignal(-status) if status < 0 else f"exit code {status}"
    return f"damaged: the process that reads it ended before the end of the file ({reason})."
