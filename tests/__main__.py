"""`python -m tests`: what plain `pytest` leaves out. The exhaustive tests, those that run alone, and PostgreSQL.

`make test-all` runs plain `pytest` first. Every pass runs, whatever failed before; the exit code is 1 if any failed.
"""

import os
import subprocess
import sys

import psycopg

# Folders whose tests use the database.
FOLDERS = ["tests/hub", "tests/runs", "tests/preferences", "tests/review", "tests/site"]
DEFAULT_POSTGRES = "postgres://postgres@127.0.0.1:5432/postgres"
_NOTHING_COLLECTED = 5  # pytest's exit code


def main() -> int:
    """Run every pass and return the exit code."""
    passes = [
        ("The exhaustive tests", ["-m", "exhaustive", "--dist", "worksteal"], {}),
        ("The tests that count processes and containers of the whole machine", ["-m", "alone", "-n", "0"], {}),
    ]
    address = os.environ.get("LLMEVAL_TEST_POSTGRES", DEFAULT_POSTGRES)
    failed = False
    try:
        psycopg.connect(address, connect_timeout=3).close()
        passes.append(("The tests that use the database, on PostgreSQL", FOLDERS, {"DATABASE_URL": address}))
    except psycopg.Error as error:
        failed = "postgres" in os.environ.get("LLMEVAL_REQUIRE", "").split(",")
        print(f"{'FAILED' if failed else 'SKIPPED'}: the tests on PostgreSQL: {str(error).strip()}")
        print(
            "Name a server on which databases may be created: LLMEVAL_TEST_POSTGRES=postgres://user:password@host/name"
        )
    for title, arguments, environment in passes:
        print(f"\n{title}:", flush=True)
        command = [sys.executable, "-m", "pytest", *arguments]
        code = subprocess.run(command, env={**os.environ, **environment}, check=False).returncode
        failed = failed or code not in (0, _NOTHING_COLLECTED)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
