"""Runs code of the repaired repository in a process of the agent's user, and compares its results in this one."""

import json
import os
import subprocess
import sys

_START = """
import json, os, sys
_out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
def show(value):
    print(json.dumps(value), file=_out, flush=True)
def outcome(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
"""


def expect(what, code, *wanted):
    """Run *code*, which calls `show` once for each value of *wanted*. Expected values never enter its process."""
    try:
        result = subprocess.run(
            ["as-agent", "python3", "-B", "-c", _START + code],
            cwd=os.environ["WORKDIR"],
            capture_output=True,
            timeout=20,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        sys.exit(f"{what}: no end within 20 seconds")
    found = result.stdout.decode("utf-8", "replace").splitlines()
    expected = [json.dumps(value) for value in wanted]
    for number, value in enumerate(expected):
        if number >= len(found):
            error = result.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            sys.exit(f"{what}: {error or 'the program ended early'}")
        if found[number] != value:
            sys.exit(f"{what}: check {number + 1} gives {found[number][:200]}")
    if len(found) != len(expected) or result.returncode:
        sys.exit(f"{what}: it ended with code {result.returncode}")
