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
_SOME_FAILED = 1  # pytest's exit code
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
    """One pass. What failed beside other tests is run once more by itself, and counts only if it fails again."""
    code = _run(arguments, environment)
    if code == _SOME_FAILED and "-n" in arguments:
        print("Once more, by themselves, the tests that failed:", flush=True)
        alone = [item for item in arguments if item not in ("-n", "2", "--dist", "loadfile")]
        code = _run(["--last-failed", "--last-failed-no-failures=none", *alone], environment)
    return code


def _run(arguments: list[str], environment: dict[str, str]) -> int:
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
