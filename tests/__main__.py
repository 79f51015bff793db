"""`python -m tests`: the suite on SQLite, then what touches the database once more on PostgreSQL, where there is one.

Arguments go to pytest. With arguments (a path, -k) there is one pass.
"""

import os
import subprocess
import sys

import psycopg

# They count containers, processes and descriptors of the whole machine, so that nothing may run beside them.
ALONE = ["tests/sandbox/test_docker_backend.py", "tests/sandbox/test_leaks.py"]
FOLDERS = ["tests/hub", "tests/runs", "tests/preferences", "tests/review", "tests/site"]
DEFAULT = "postgres://postgres@127.0.0.1:5432/postgres"


def main(arguments: list[str]) -> int:
    workers = ["-n", "2", "--dist", "loadfile"]
    if arguments:
        return _pytest([*workers, *arguments])
    code = _pytest([*workers, *(f"--ignore={path}" for path in ALONE)]) or _pytest(ALONE)
    if code:
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
