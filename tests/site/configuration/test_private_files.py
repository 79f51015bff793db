"""What the product writes is its owner's alone: the data folder, the database with its tests, the secrets."""

import stat
from pathlib import Path

import pytest
from django.conf import settings

from llmeval_site.configuration import private_files
from llmeval_site.management.commands import prepare
from tests.site.test_fresh_installation import manage

SQLITE = {"ENGINE": "django.db.backends.sqlite3", "HOST": "", "PORT": ""}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_fresh_installation_lets_no_other_user_read_database_and_secrets(tmp_path: Path) -> None:
    var = tmp_path / "new" / "var"
    done = manage(var, "migrate", "hub", "--verbosity", "0")
    assert done.returncode == 0, done.stderr
    assert mode(var) == 0o700
    assert mode(var / "secret_key") == 0o600
    assert {mode(path) for path in var.glob("llmeval.sqlite3*")} == {0o600}
    assert "other users" not in done.stderr


def test_an_installation_that_others_can_read_is_made_private_and_says_so_once(tmp_path: Path) -> None:
    var, database = tmp_path / "var", tmp_path / "elsewhere.sqlite3"
    assert (
        manage(var, "migrate", "contenttypes", "--verbosity", "0", DATABASE_URL=f"sqlite:///{database}").returncode == 0
    )
    var.chmod(0o755)
    for path in (database, var / "secret_key"):
        path.chmod(0o644)
    done = manage(var, "showmigrations", "contenttypes", DATABASE_URL=f"sqlite:///{database}")
    for path, before in ((var, 0o755), (database, 0o644), (var / "secret_key", 0o644)):
        assert mode(path) == before & 0o700
        assert f"{path}: other users could read it (mode {before:04o}); changed to mode" in done.stderr
    again = manage(var, "showmigrations", "contenttypes", DATABASE_URL=f"sqlite:///{database}")
    assert "other users" not in again.stderr


def test_what_cannot_be_made_private_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "database"
    path.touch()
    path.chmod(0o644)

    def refuse(self: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refuse)
    private_files.restrict_files([path, tmp_path / "missing"])
    assert f"Run: chmod 600 {path}" in caplog.text


def test_a_lost_database_is_prepared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = tmp_path / "llmeval.sqlite3"
    called = []

    def record(name: str, **options: object) -> None:
        called.append(name)
        database.write_text("tables")

    monkeypatch.setattr(prepare, "call_command", record)
    monkeypatch.setattr(settings, "VAR_DIR", tmp_path)
    monkeypatch.setattr(settings, "DATABASES", {"default": {**SQLITE, "NAME": database}})
    for _ in range(2):
        prepare.Command().handle()
    assert called == ["migrate", "load_catalog"]
    database.write_text("")  # as the settings create it
    prepare.Command().handle()
    assert called == ["migrate", "load_catalog"] * 2


def test_the_data_folder_of_these_tests_is_private_too() -> None:
    assert mode(settings.VAR_DIR) == 0o700
