"""Backup, loss of everything, and restore as docs/operations.md describes them."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.core.files.storage import FileSystemStorage

from llmeval_site.management.commands import backup
from tests.commands import run_command
from tests.services import unavailable
from tests.site.server.web_server import web_server

SERVER = os.environ.get("LLMEVAL_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/postgres")
CONFIG = """
name: before the backup
environments: [{environment: word-problems, cases: [shelf-worm, drifting-boat, chess-clock, door-codes]}]
models:
  - {name: recorded-a, provider: replay, responses: RESPONSES/recorded-a.jsonl}
  - {name: recorded-b, provider: replay, responses: RESPONSES/recorded-b.jsonl}
review: {pairs: all, overlap: 1}
tracking: {mlflow: false}
"""


class Installation:
    """A data folder and a database that only this test uses."""

    def __init__(self, var: Path, database: str) -> None:
        self.var = var
        self.environment = {**os.environ, "LLMEVAL_VAR": str(var), "DATABASE_URL": database}
        self.environment.pop("MLFLOW_TRACKING_URI", None)

    def manage(self, *words: str, code: int = 0) -> str:
        command = [sys.executable, "manage.py", *words]
        environment = {**self.environment, "DJANGO_SUPERUSER_PASSWORD": "a-long-passphrase"}
        done = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def create_content(self, folder: Path) -> str:
        """Upload an environment, evaluate two models and return the key of an administrator's token."""
        bundle = folder / "bundle"
        shutil.copytree(settings.BASE_DIR / "hub" / "catalog" / "word-problems", bundle)
        manifest = bundle / "environment.yaml"
        manifest.write_text(manifest.read_text().replace("slug: word-problems", "slug: our-problems"))
        config = folder / "config.yaml"
        config.write_text(CONFIG.replace("RESPONSES", str(settings.BASE_DIR / "configs" / "responses")))
        self.manage("prepare")
        self.manage("createsuperuser", "--noinput", "--username", "ann", "--email", "ann@example.org")
        self.manage("import_bundle", str(bundle))
        self.manage("eval", "--config", str(config))
        return self.manage("token", "ann", "--scope", "read", "--scope", "review").strip()


def call(port: int, path: str, key: str, body: Mapping[str, object] | None = None) -> dict[str, object]:
    """Call REST and return its JSON."""
    data = json.dumps(body).encode() if body is not None else None
    headers = {"Authorization": f"Token {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/{path}", data, headers)
    try:
        with urllib.request.urlopen(request) as response:
            return json.load(response)  # type: ignore[no-any-return]
    except urllib.error.HTTPError as error:
        pytest.fail(f"{path}: {error.code} {error.read()[:500]!r}")


def content(database: str) -> dict[str, tuple[int, str]]:
    """Return the number and a digest of the rows of each table."""
    with psycopg.connect(database) as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
        query = "select count(*), coalesce(md5(string_agg(t::text, chr(10) order by t::text)), '') from {} t"
        return {name: connection.execute(query.format(name)).fetchone() for (name,) in tables}  # type: ignore[misc]


@pytest.fixture
def database() -> Iterator[str]:
    """Address of an empty PostgreSQL database."""
    name = f"operate_backup_{os.getpid()}"
    try:
        connection = psycopg.connect(SERVER, autocommit=True, connect_timeout=3)
    except psycopg.Error as error:
        unavailable("postgres", str(error))
    if shutil.which("pg_dump") is None or shutil.which("pg_restore") is None:
        unavailable("postgres", "pg_dump and pg_restore are not installed")
    with connection:
        connection.execute(f"create database {name}")
        try:
            yield f"{SERVER.rpartition('/')[0]}/{name}"
        finally:
            connection.execute(f"drop database if exists {name} with (force)")


@pytest.mark.exhaustive
@pytest.mark.postgres
def test_nothing_is_missing_after_backup_loss_and_restore_on_postgresql(tmp_path: Path, database: str) -> None:
    installation = Installation(tmp_path / "var", database)
    key = installation.create_content(tmp_path)
    with web_server(tmp_path, installation.environment) as port:
        pair = call(port, "pairs/next", key)
        call(port, f"pairs/{pair['pair']}/decision", key, {"verdict": "A"})
        report = call(port, "runs/1/report", key)
    stored = content(database)
    dump = tmp_path / "llmeval.dump"
    subprocess.run(["pg_dump", "--format", "custom", "--file", dump, database], check=True)
    copied = installation.manage("backup", str(tmp_path / "copy"))
    assert "NOT copied. The server 127.0.0.1" in copied

    with psycopg.connect(SERVER, autocommit=True) as connection:
        name = database.rpartition("/")[2]
        connection.execute(f"drop database {name} with (force)")
        connection.execute(f"create database {name}")
    shutil.rmtree(installation.var)

    (tmp_path / "copy").rename(installation.var)
    subprocess.run(["pg_restore", "--no-owner", "--exit-on-error", "--dbname", database, dump], check=True)
    assert content(database) == stored
    assert stored["runs_response"][0] == 8
    installation.manage("prepare")
    with web_server(tmp_path, installation.environment) as port:
        assert urllib.request.urlopen(f"http://127.0.0.1:{port}/login/").status == 200
        assert call(port, "runs/1/report", key) == report
        preferences = call(port, "preferences/", key)["results"]
        assert isinstance(preferences, list) and len(preferences) == stored["preferences_preference"][0] > 0
        assert [row["source"] for row in preferences].count("human") == 1
    installation.manage("export_bundle", "our-problems", str(tmp_path / "our-problems.zip"))
    installation.manage("eval", "--config", str(tmp_path / "config.yaml"))
    assert "before the backup" in installation.manage("runs", "show", "2")


@pytest.mark.exhaustive
def test_copy_of_an_embedded_installation_in_use_is_a_data_folder(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "var", "")
    installation.create_content(tmp_path)
    with web_server(tmp_path, installation.environment):
        installation.manage("backup", str(tmp_path / "copy"))
    assert (tmp_path / "copy").stat().st_mode & 0o077 == 0
    shutil.rmtree(installation.var)
    (tmp_path / "copy").rename(installation.var)
    assert "before the backup" in installation.manage("runs", "show", "1")
    installation.manage("export_bundle", "our-problems", str(tmp_path / "our-problems.zip"))
    installation.manage("eval", "--config", str(tmp_path / "config.yaml"))


@pytest.mark.exhaustive
def test_backup_names_missing_archives_and_replaces_no_folder(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "var", "")
    installation.manage("prepare")
    installation.manage("backup", str(tmp_path), code=2)
    next((installation.var / "media" / "bundles").rglob("*.zip")).unlink()
    installation.manage("backup", str(tmp_path / "copy"), code=1)
    assert (tmp_path / "copy" / "llmeval.sqlite3").is_file()


@pytest.mark.django_db
def test_backup_names_a_file_that_cannot_be_copied_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    media = tmp_path / "media"
    media.mkdir()
    (media / "gone").symlink_to(tmp_path / "nowhere")
    monkeypatch.setattr(backup, "_copy_database", lambda folder: [])
    monkeypatch.setattr(backup, "archive_storage", lambda: FileSystemStorage(media))
    said = run_command("backup", tmp_path / "copies" / "today", code=2)
    assert f"No backup was written to {tmp_path}/copies/today: {media}/gone cannot be copied: " in said
    assert "No such file or directory" in said
    assert os.listdir(tmp_path / "copies") == []


@pytest.mark.django_db
def test_backup_names_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = run_command("backup", tmp_path / "file" / "today", code=2)
    assert said.startswith(f"No backup was written to {tmp_path}/file/today: {tmp_path}/file/.partial-today-")
    assert said.endswith(": Not a directory\n")


@pytest.mark.django_db
def test_backup_on_a_full_disk_says_so_and_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def copy_database(folder: Path) -> list[str]:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(backup, "_copy_database", copy_database)
    said = run_command("backup", tmp_path / "today", code=2)
    assert said == f"No backup was written to {tmp_path}/today: database or disk is full\n"
    assert os.listdir(tmp_path) == []
