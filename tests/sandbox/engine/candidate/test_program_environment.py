"""Tests that programs find what they find with `python main.py`: files, names of `site`, streams."""

import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from sandbox.connections.transports.local import interpreter
from sandbox.engine.candidate import program
from sandbox.verdicts.jobs import ProgramJob

STDIN = "1 2\n3 4\n"

PROGRAMS = {
    "standard input as a file": """
        import sys
        sys.stdin = open("/dev/stdin")
        print(input())
        print(open("/dev/stdin").read(), end="")
    """,
    "source code": """
        import inspect, linecache
        def double(number):
            return number * 2
        print(inspect.getsource(double), linecache.getline(__file__, 2), len(open(__file__).read()))
    """,
    "files beside the program": """
        import glob, os
        print(os.path.exists(__file__), glob.glob("*"))
    """,
    "source in a traceback": """
        import traceback
        try:
            [][0]
        except IndexError:
            print(*traceback.format_exc().splitlines()[2:], sep="\\n")
    """,
    "the module of built-in functions": """
        print(type(__builtins__).__name__, __builtins__.len("abc"))
    """,
    "names of site": """
        print(exit, quit, len(str(copyright)) > 0)
        help(abs)
        exit(3)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_prints_and_exits_as_in_the_interpreter(name: str, pool: Pool, tmp_path: Path) -> None:
    code = dedent(PROGRAMS[name])
    (tmp_path / "main.py").write_text(code)
    (tmp_path / "stdin").write_text(STDIN)
    with (tmp_path / "stdin").open() as stdin:
        (tmp_path / "stdin").unlink()
        expected = subprocess.run(
            [interpreter(), "-I", "main.py"], cwd=tmp_path, stdin=stdin, capture_output=True, text=True, check=False
        )

    outcome = pool.run(ProgramJob(code, stdin=STDIN))

    assert outcome.stdout == expected.stdout != ""
    assert outcome.exit_code == expected.returncode


@pytest.mark.parametrize("strongest", ["A", "B", "C"])
def test_standard_input_is_read_by_path_on_each_tier(strongest: str) -> None:
    options = PoolOptions(backend="local", strongest=strongest, accept=frozenset("ABC"), workers=1)
    text = "x" * 3_000_000
    code = "print(len(open('/dev/stdin').read()), open(0).read(2))"
    with Pool.open(options) as pool:
        if pool.tier != strongest:
            pytest.skip(f"This machine gives tier {pool.tier}.")
        outcomes = [pool.run(ProgramJob(code, stdin=stdin)) for stdin in ("", "ab", text)]
    assert [outcome.stdout for outcome in outcomes] == ["0 \n", "2 ab\n", "3000000 xx\n"]


@pytest.mark.parametrize("strongest", ["A", "B", "C"])
def test_standard_input_is_stored_once_on_each_tier(strongest: str) -> None:
    options = PoolOptions(backend="local", strongest=strongest, accept=frozenset("ABC"), workers=1)
    code = "import os\nprint(os.path.samestat(os.fstat(0), os.stat('/dev/stdin')), input())"
    with Pool.open(options) as pool:
        if pool.tier != strongest:
            pytest.skip(f"This machine gives tier {pool.tier}.")
        outcome = pool.run(ProgramJob(code, stdin=STDIN))
    assert outcome.stdout == "True 1 2\n"


def test_standard_input_that_cannot_be_stored_is_a_fault_of_the_sandbox(tmp_path: Path) -> None:
    path = tmp_path / "stdin"
    path.touch()
    with pytest.raises(OSError, match=r"the standard input of the program cannot be stored: .*File exists"):
        program.set_stdin(b"1 2", str(path))
    assert path.exists()


def test_input_longer_than_the_files_of_a_run_is_read(pool: Pool) -> None:
    outcome = pool.run(ProgramJob("print(len(input()))", stdin="\u20ac" * 8_000_000))
    assert outcome.stdout == "8000000\n", outcome.message
