"""`python -m tests`: the suite on SQLite, then what touches the database once more on PostgreSQL, where there is one.

Arguments go to pytest. With arguments of its own choosing (a path, -k) only the first pass is made.
"""

import os
import subprocess
import sys

import psycopg

FOLDERS = ["tests/hub", "tests/runs", "tests/preferences", "tests/review", "tests/site"]
DEFAULT = "postgres://postgres@127.0.0.1:5432/postgres"


def main(arguments: list[str]) -> int:
    workers = ["-n", "2", "--dist", "loadfile"]
    code = _pytest([*workers, *arguments])
    if arguments or code:
        return code
    address = os.environ.get("LLMEVAL_TEST_POSTGRES", DEFAULT)
    try:
        psycopg.connect(address, connect_timeout=3).close()
    except psycopg.Error as error:
        required = "postgres" in os.environ.get("LLMEVAL_REQUIRE", "").split(",")
        print(f"{'FAILED' if required else 'SKIPPED'} the pass on PostgreSQL: {str(error).strip()}")
        print("Name a server that may create databases: LLMEVAL_TEST_POSTGRES=postgres://user:password@host/name")
        return 1 if required else 0
    print("Once more on PostgreSQL:", flush=True)
    return _pytest([*workers, *FOLDERS], DATABASE_URL=address)


def _pytest(arguments: list[str], **environment: str) -> int:
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
