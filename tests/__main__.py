"""`python -m tests`: run the tests that plain `pytest` leaves out, as `make test-all` does after it.

These are the exhaustive tests, the tests that must run alone, and the tests of the database on PostgreSQL. All passes
run even if one fails; the exit code is then 1.
"""

import os
import subprocess
import sys

import psycopg

FOLDERS = ["tests/hub", "tests/runs", "tests/preferences", "tests/review", "tests/site"]
# Their tests use the database only for what tests of the other folders store and query too.
NOT_ON_POSTGRES = [
    *("tests/hub/benchmarks", "tests/hub/bundles", "tests/preferences/test_tracking.py", "tests/review/judge"),
    *("tests/runs/test_eval_options.py", "tests/runs/tracking", "tests/site/middleware", "tests/site/test_held_out.py"),
]
QUEUE = "tests/runs/test_queue.py"
DEFAULT_POSTGRES = "postgres://postgres@127.0.0.1:5432/postgres"
_NO_TESTS_COLLECTED = 5  # exit code of pytest


def main() -> int:
    """Run every pass and return the exit code."""
    exhaustive = ["-m", "exhaustive and not alone and not release", "--dist", "worksteal"]
    passes: list[tuple[str, list[str], dict[str, str]]] = [
        ("Exhaustive tests", exhaustive, {}),
        ("Tests that count processes and containers of the whole machine", ["-m", "alone", "-n", "0"], {}),
    ]
    address = os.environ.get("LLMEVAL_TEST_POSTGRES", DEFAULT_POSTGRES)
    failed = False
    try:
        psycopg.connect(address, connect_timeout=3).close()
        exhaustive.append(f"--ignore={QUEUE}")  # it has a pass of its own
        passes += [
            (
                "Tests of the database, on PostgreSQL",
                ["--only-database", *FOLDERS, *(f"--ignore={path}" for path in NOT_ON_POSTGRES)],
                {"DATABASE_URL": address},
            ),
            ("Workers that share runs, on PostgreSQL", ["-m", "exhaustive", QUEUE], {"DATABASE_URL": address}),
        ]
    except psycopg.Error as error:
        failed = "postgres" in os.environ.get("LLMEVAL_REQUIRE", "").split(",")
        print(f"{'FAILED' if failed else 'SKIPPED'}: the tests on PostgreSQL: {str(error).strip()}")
        print(
            "Set LLMEVAL_TEST_POSTGRES=postgres://user:password@host/name to a server on which databases may be created"
        )
    summary = []
    for title, arguments, environment in passes:
        print(f"\n{title}:", flush=True)
        code, failures = run_pytest(arguments, environment)
        passed = code in (0, _NO_TESTS_COLLECTED)
        failed = failed or not passed
        summary += [f"{title}: {'passed' if passed else f'pytest ended with {code}'}", *failures]
    print("\nSummary of the passes:", *summary, sep="\n", flush=True)
    return int(failed)


def run_pytest(arguments: list[str], environment: dict[str, str]) -> tuple[int, list[str]]:
    """Run pytest, pass on its output, and return its exit code and the lines that name what failed."""
    command = [sys.executable, "-m", "pytest", *arguments]
    parts = []
    with subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while output := os.read(
            process.stdout.fileno(), 65_536
        ):  # what is there, so that progress shows while a line is incomplete
            sys.stdout.buffer.write(output)
            sys.stdout.flush()
            parts.append(output)
    lines = b"".join(parts).decode(errors="replace").splitlines()
    return process.returncode, [line for line in lines if line.startswith(("FAILED ", "ERROR "))]


if __name__ == "__main__":
    sys.exit(main())
