"""Files of the data folder (database, secrets) can be read by their owner only."""

import os
import stat
from pathlib import Path

import pytest
from django.conf import settings

from llmeval_site.configuration import private_files
from tests.site.test_fresh_installation import manage

SQLITE = {"ENGINE": "django.db.backends.sqlite3", "HOST": "", "PORT": ""}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_new_installation_has_private_database_and_secrets(tmp_path: Path) -> None:
    var = tmp_path / "new" / "var"
    done = manage(var, "migrate", "hub", "--verbosity", "0")
    assert done.returncode == 0, done.stderr
    assert mode(var) == 0o700
    assert mode(var / "secret_key") == 0o600
    assert {mode(path) for path in var.glob("llmeval.sqlite3*")} == {0o600}
    assert "other users" not in done.stderr


@pytest.mark.exhaustive
def test_readable_installation_is_made_private_with_one_warning(tmp_path: Path) -> None:
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


def test_file_that_cannot_be_restricted_is_reported_with_a_command(
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


def test_data_folder_of_the_tests_is_private() -> None:
    assert mode(settings.VAR_DIR) == 0o700


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_private_file_that_cannot_be_written_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty secret_key would be read at the next start."""
    opened = os.open

    def open_full(path: Path, flags: int, mode: int = 0o777) -> int:
        os.close(opened(path, flags, mode))
        return opened("/dev/full", os.O_WRONLY)

    monkeypatch.setattr(os, "open", open_full)
    with pytest.raises(OSError, match="No space left"):
        private_files.create_private_file(tmp_path / "secret_key", "text")
    assert not (tmp_path / "secret_key").exists()
