"""First commands after installation: they prepare the database, or explain how to."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings
from django.core.management import load_command_class

from hub.management.base import Command
from tests.services import unavailable

SERVER = os.environ.get("LLMEVAL_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/postgres")


def manage(var: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `manage.py` with a data folder of its own."""
    inherited = {name: value for name, value in os.environ.items() if name != "LLMEVAL_SECRET_KEY"}
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=settings.BASE_DIR,
        env={**inherited, "LLMEVAL_VAR": str(var), "DATABASE_URL": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["compare", "1", "2"], 2, "There is no run 1; none is stored yet."),
        pytest.param(
            ["validate_bundle", "hub/catalog/word-problems", "--no-gates"],
            0,
            "valid, 132 cases",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(["load_catalog"], 0, "word-problems@", marks=pytest.mark.exhaustive),
        (["createsuperuser", "--noinput", "--username", "ann", "--email", "ann@example.org"], 3, "manage.py prepare"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_first_command_after_installation_ends_without_traceback(
    tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    done = manage(tmp_path / "var", *words)
    assert "Traceback" not in done.stderr
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["comapre", "1"], id="comapre 1"),
        pytest.param(["help", "comapre"], id="help comapre", marks=pytest.mark.exhaustive),
        pytest.param(["--json", "eval"], id="--json eval", marks=pytest.mark.exhaustive),
    ],
)
def test_unknown_command_is_invalid_input(tmp_path: Path, words: list[str]) -> None:
    done = manage(tmp_path / "var", *words)
    assert (done.returncode, "Unknown command" in done.stderr) == (2, True), done.stderr


def test_characters_that_stdout_cannot_encode_are_escaped(tmp_path: Path) -> None:
    words = ["validate_bundle", "Prüfung-✓-😀"]
    done = manage(tmp_path, *words, PYTHONIOENCODING="ascii")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert r"Pr\xfcfung-\u2713" in done.stdout
    done = manage(tmp_path, *words, "--json", PYTHONIOENCODING="ascii")
    [problem] = json.loads(done.stdout)["problems"]
    assert words[1] in problem["message"]


@pytest.mark.parametrize("app", ["hub", "runs", "preferences"])
def test_commands_that_use_the_database_prepare_it(app: str) -> None:
    found = {path.stem for path in (settings.BASE_DIR / app / "management/commands").glob("[a-z]*.py")}
    commands = {name: load_command_class(app, name) for name in found}
    assert found and all(isinstance(command, Command) for command in commands.values())
    # eval prepares any database itself; the others use none.
    assert {name for name in found if not commands[name].needs_database} <= {"validate_bundle", "start_bundle", "eval"}


@pytest.fixture
def empty_database() -> Iterator[str]:
    """Address of an empty PostgreSQL database, without a password; dropped afterwards."""
    name = f"fresh_{os.getpid()}"
    try:
        connection = psycopg.connect(SERVER, autocommit=True, connect_timeout=3)
    except psycopg.Error as error:
        unavailable("postgres", str(error))
    with connection:
        connection.execute(f"create database {name}")
        try:
            yield f"{SERVER.rpartition('/')[0]}/{name}"
        finally:
            connection.execute(f"drop database {name} with (force)")


@pytest.mark.postgres
def test_reading_commands_do_not_migrate_a_database_server(tmp_path: Path, empty_database: str) -> None:
    done = manage(tmp_path / "var", "compare", "1", "2", DATABASE_URL=empty_database)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "manage.py prepare" in done.stderr


@pytest.mark.exhaustive
@pytest.mark.postgres
def test_concurrent_prepare_on_an_empty_database(tmp_path: Path, empty_database: str) -> None:
    def prepare(number: int) -> subprocess.CompletedProcess[str]:
        return manage(tmp_path / f"var{number}", "prepare", DATABASE_URL=empty_database)

    with ThreadPoolExecutor() as pool:
        done = list(pool.map(prepare, range(3)))
    assert [result.returncode for result in done] == [0, 0, 0], "".join(result.stderr for result in done)


@pytest.mark.exhaustive
@pytest.mark.postgres
def test_every_migration_can_be_reversed_on_postgresql(tmp_path: Path, empty_database: str) -> None:
    for words in (["migrate"], *(["migrate", app, "zero"] for app in ("review", "preferences", "runs", "hub"))):
        done = manage(tmp_path / "var", *words, DATABASE_URL=empty_database)
        assert done.returncode == 0, done.stderr


@pytest.mark.exhaustive
@pytest.mark.postgres
def test_database_password_from_a_file(tmp_path: Path, empty_database: str) -> None:
    parts = urlsplit(empty_database)
    (tmp_path / "password").write_text(f"{parts.password or 'any/+@#%2F'}\n")
    url = parts._replace(netloc=f"{parts.username}@{parts.netloc.rpartition('@')[2]}").geturl()
    file = str(tmp_path / "password")
    done = manage(tmp_path / "var", "prepare", DATABASE_URL=url, LLMEVAL_DATABASE_PASSWORD_FILE=file)
    assert done.returncode == 0, done.stderr


def test_invalid_database_url_suggests_percent_encoding_or_a_password_file(tmp_path: Path) -> None:
    done = manage(tmp_path / "var", "check", DATABASE_URL="postgres://llmeval:a/b@localhost/llmeval")
    assert "Percent-encode" in done.stderr and "LLMEVAL_DATABASE_PASSWORD_FILE" in done.stderr
    missing = manage(tmp_path / "var", "check", LLMEVAL_DATABASE_PASSWORD_FILE=str(tmp_path / "none"))
    assert (
        f"LLMEVAL_DATABASE_PASSWORD_FILE: {tmp_path}/none cannot be read: No such file or directory." in missing.stderr
    )


def test_data_folder_that_cannot_be_used_is_reported_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "var" / "secret_key").mkdir(parents=True)  # fails for root, too, as a file of another user does not
    done = manage(tmp_path / "var", "check")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert f"Run the command as the user who owns {tmp_path}/var, or name another data folder" in done.stderr


def test_key_that_another_process_is_about_to_write_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "var" / "secret_key"
    path.parent.mkdir(mode=0o700)
    path.touch()
    key = "a key that another process has generated at its start"
    writing = threading.Timer(0.8, path.write_text, [key])
    writing.start()
    done = manage(path.parent, "diffsettings")
    writing.join()
    assert f"SECRET_KEY = {key!r}" in done.stdout, done.stderr


def test_empty_variable_of_the_key_is_an_error_that_names_it(tmp_path: Path) -> None:
    done = manage(tmp_path / "var", "check", LLMEVAL_SECRET_KEY=" ")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert done.stderr.startswith("LLMEVAL_SECRET_KEY is set but empty. Give all processes the same")
    assert not (tmp_path / "var" / "secret_key").exists()


def test_empty_key_file_is_reported_with_its_remedy(tmp_path: Path) -> None:
    path = tmp_path / "var" / "secret_key"
    path.parent.mkdir(mode=0o700)
    path.touch()
    done = manage(path.parent, "check")
    assert (done.returncode, done.stderr.strip()) == (2, f"{path} is empty. Delete it: the next start generates a key.")


def test_database_that_is_not_supported_is_named_with_the_supported_ones(tmp_path: Path) -> None:
    done = manage(tmp_path / "var", "check", DATABASE_URL="mysql://llmeval:secret@localhost/llmeval")
    assert (done.returncode, "secret" in done.stderr) == (2, False)
    assert done.stderr.startswith("DATABASE_URL begins with mysql:, which is not supported. Use PostgreSQL, postgres:")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", "eval --config configs/eval_v1.yaml"),
        ("--limit 5", "eval --config configs/eval_v1.yaml --limit 5"),
        ("--resume 7", "eval --resume 7"),
        ("--env python-functions --model demo", "eval --env python-functions --model demo"),
    ],
)
def test_make_eval_names_a_config_unless_options_replace_it(tmp_path: Path, options: str, expected: str) -> None:
    assert make_eval(tmp_path, f"ARGS={options}") == ["manage.py", *expected.split()]


@pytest.mark.parametrize("name", ["a b.yaml", "it's (1).yaml", "é;true.yaml", "~/run.yaml"])
def test_make_eval_hands_on_the_name_of_a_config_unchanged(tmp_path: Path, name: str) -> None:
    assert make_eval(tmp_path, f"CONFIG={name}") == ["manage.py", "eval", "--config", name]


def make_eval(folder: Path, *words: str) -> list[str]:
    """Return the arguments that `make eval` with *words* calls Python with."""
    python = folder / "python"
    python.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    python.chmod(0o755)
    command = ["make", "--old-file=.venv/.installed", "eval", f"BIN={folder}", *words]
    # Not as a part of the `make test` that may run this test, which would hand its own options down.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    done = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_commands_start_without_the_large_libraries() -> None:
    # Each of them takes a tenth of a second or more to load, and memory in every process.
    large = ["PIL", "boto3", "docker", "mlflow", "numpy", "openai", "pandas", "pyarrow", "scipy"]
    program = f"""
import sys, django
django.setup()
import runs.management.commands.eval
from runs.providers.registry import PROVIDERS
[provider.Options for provider in PROVIDERS.values()]  # to read a config
print([name for name in {large} if name in sys.modules])
"""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "llmeval_site.settings"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
