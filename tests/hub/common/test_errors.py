"""UserError and its subclasses give the same message in every command and REST view."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError

from hub.common.errors import Conflict, NotFound, UserError
from hub.common.problems import Problem
from hub.common.rest.errors import error_response
from hub.management import base
from hub.manifest.problems import MANIFEST, BundleError


class Failing(base.Command):
    requires_system_checks: list[str] = []

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def handle(self, *args: Any, **options: Any) -> None:
        raise self.error


def run(error: Exception, **options: Any) -> int:
    command = Failing(error)
    with pytest.raises(SystemExit) as left:
        command.execute(force_color=False, no_color=True, skip_checks=True, stdout=None, stderr=None, **options)
    return int(str(left.value.code))


def test_commands_exit_with_the_code_of_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(UserError("The file is empty.")) == 2
    assert capsys.readouterr().err == "The file is empty.\n"
    assert (
        run(BundleError([Problem("unknown key", "harness", file=MANIFEST), Problem("missing", "slug", file=MANIFEST)]))
        == 2
    )
    said = capsys.readouterr().err
    assert said.startswith("2 problems; nothing was stored.\n  environment.yaml (harness): unknown key")


def test_commands_report_files_that_they_may_not_use(
    tmp_path: Path, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.VAR_DIR = tmp_path / "var"
    bundle, lease = tmp_path / "cases.jsonl", tmp_path / "var" / "leases" / "1"
    assert run(PermissionError(errno.EACCES, "Permission denied", str(bundle))) == 2
    assert capsys.readouterr().err == f"{bundle} cannot be written or read: Permission denied.\n"
    assert run(PermissionError(errno.EACCES, "Permission denied", str(lease))) == 2
    assert capsys.readouterr().err == (
        f"{lease} cannot be written or read: Permission denied. Run the command as the user who owns {tmp_path}/var, "
        "or name another data folder in LLMEVAL_VAR.\n"
    )


def test_commands_report_files_of_their_own_user_that_are_not_writable(
    tmp_path: Path, settings: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VAR_DIR = tmp_path
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    lock = tmp_path / "prepare.lock"
    assert run(PermissionError(errno.EACCES, "Permission denied", str(lock))) == 2
    assert f"Permission denied. Make {tmp_path} writable, or name another data" in capsys.readouterr().err
    lock.touch()
    assert run(PermissionError(errno.EACCES, "Permission denied", str(lock))) == 2
    assert f"Permission denied. Make {lock} writable, or name another data" in capsys.readouterr().err


def test_commands_report_files_in_folders_that_they_may_not_search(
    tmp_path: Path, settings: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> bool:  # as for users other than root
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    settings.VAR_DIR = tmp_path
    monkeypatch.setattr(Path, "exists", fail)
    assert run(PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "a" / "b"))) == 2
    assert "Run the command as the user who owns" in capsys.readouterr().err


def test_commands_report_what_is_wrong_with_the_disk_and_the_database(
    tmp_path: Path, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.VAR_DIR = tmp_path
    lock = tmp_path / "prepare.lock"
    assert run(OSError(errno.EROFS, "Read-only file system", str(lock))) == 2
    assert capsys.readouterr().err == (
        f"{lock} cannot be written or read: Read-only file system. Make {tmp_path} writable, or name another data "
        "folder in LLMEVAL_VAR.\n"
    )
    assert run(OSError(errno.ENOSPC, "No space left on device", str(lock))) == 2
    assert "No space left on device. Free some space, or name another" in capsys.readouterr().err
    assert run(DatabaseError("file is not a database")) == 3
    assert "The database is damaged (DATABASE_URL, LLMEVAL_VAR): file is not a database." in capsys.readouterr().err
    assert run(OperationalError("attempt to write a readonly database")) == 3
    assert "attempt to write a readonly database. Run the command as a user who may write it" in capsys.readouterr().err
    assert run(OperationalError("database or disk is full")) == 3
    assert capsys.readouterr().err == (
        "The disk of the database is full (DATABASE_URL, LLMEVAL_VAR). Free some space, and try again.\n"
    )
    assert run(OperationalError("disk I/O error")) == 3  # what SQLite reports if not even its -shm file can be created
    assert "The disk of the database is full or does not work (DATABASE_URL, LLMEVAL_VAR)" in capsys.readouterr().err


def test_interrupted_command_prints_its_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        Failing(KeyboardInterrupt()).execute(force_color=False, no_color=True, skip_checks=True, json=True)
    assert json.loads(capsys.readouterr().out)["message"] == "Interrupted."


def test_json_output_of_commands_lists_all_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BundleError([Problem("unknown key", "harness", file=MANIFEST)]), json=True) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["message"] == "1 problem; nothing was stored."
    assert document["errors"][0]["path"] == "environment.yaml (harness)"


@pytest.mark.parametrize(
    ("error", "status", "errors"),
    [
        (UserError("Wrong.", "name"), 400, [{"path": "name", "message": "Wrong."}]),
        (UserError("Wrong."), 400, []),
        (NotFound("There is no run 3."), 404, []),
        (Conflict("It is running."), 409, []),
    ],
)
def test_rest_response_has_the_status_of_the_error(error: UserError, status: int, errors: list[Any]) -> None:
    answer = error_response(error, {})
    assert answer is not None and answer.status_code == status
    assert (answer.data["message"], answer.data["errors"]) == (error.message, errors)
