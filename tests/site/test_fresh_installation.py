"""Commands that are the first to be run after installing: the database is prepared for them, or they say how."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.core.management import load_command_class

from hub.management.base import Command
from tests.services import unavailable

SERVER = os.environ.get("LLMEVAL_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/postgres")


def manage(var: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `manage.py` with a data folder of its own."""
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=settings.BASE_DIR,
        env={**os.environ, "LLMEVAL_VAR": str(var), "DATABASE_URL": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["compare", "1", "2"], 2, "There is no run 1; none is stored yet."),
        pytest.param(["export_bundle", "word-problems", "OUT"], 0, "word-problems@", marks=pytest.mark.exhaustive),
        (["validate_bundle", "hub/catalog/word-problems", "--no-gates"], 0, "valid, 132 cases"),
        pytest.param(["load_catalog"], 0, "word-problems@", marks=pytest.mark.exhaustive),
        (["createsuperuser", "--noinput", "--username", "ann", "--email", "ann@example.org"], 3, "manage.py prepare"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_first_command_after_installation_ends_without_traceback(
    tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    done = manage(tmp_path / "var", *(str(tmp_path / "out") if word == "OUT" else word for word in words))
    assert "Traceback" not in done.stderr
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr


@pytest.mark.parametrize("app", ["hub", "runs", "preferences"])
def test_commands_that_use_the_database_prepare_it(app: str) -> None:
    found = {path.stem for path in (settings.BASE_DIR / app / "management/commands").glob("[a-z]*.py")}
    commands = {name: load_command_class(app, name) for name in found}
    assert found and all(isinstance(command, Command) for command in commands.values())
    # validate_bundle uses no database; eval prepares any database itself.
    assert {name for name in found if not commands[name].needs_database} <= {"validate_bundle", "eval"}


def test_reading_commands_do_not_migrate_a_database_server(tmp_path: Path) -> None:
    name = f"fresh_{os.getpid()}"
    try:
        connection = psycopg.connect(SERVER, autocommit=True, connect_timeout=3)
    except psycopg.Error as error:
        unavailable("postgres", str(error))
    with connection:
        connection.execute(f"create database {name}")
        try:
            url = f"{SERVER.rpartition('/')[0]}/{name}"
            done = manage(tmp_path / "var", "compare", "1", "2", DATABASE_URL=url)
        finally:
            connection.execute(f"drop database {name}")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "manage.py prepare" in done.stderr
