"""`manage.py prepare`: databases that it refuses."""

import io
import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import ManagementUtility, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import override_settings

from llmeval_site.management.commands import prepare

pytestmark = pytest.mark.django_db


@pytest.fixture
def earlier_database(tmp_path: Path) -> Iterator[None]:
    """Have a database of an earlier state, and a folder without the file that says that everything is prepared."""
    MigrationRecorder(connection).record_unapplied("runs", "0039_spending_of_episodes")
    with override_settings(VAR_DIR=tmp_path):
        yield


def test_prepared_database_is_accepted() -> None:
    prepare._refuse_earlier_database()


@pytest.mark.parametrize("replaced_by", ["empty", "with one migration less", "migrated but without a catalog"])
def test_database_that_was_replaced_by_another_is_prepared_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced_by: str
) -> None:
    called: list[str] = []
    monkeypatch.setattr(prepare, "call_command", lambda name, **options: called.append(name))
    with override_settings(VAR_DIR=tmp_path):
        call_command("prepare")
        call_command("prepare")
        assert called == ["migrate", "load_catalog"]
        recorder = MigrationRecorder(connection)
        if replaced_by == "empty":
            recorder.flush()
        else:
            recorder.record_unapplied("runs", "0002_redundant_indexes")
        if replaced_by == "migrated but without a catalog":
            recorder.record_applied("runs", "0002_redundant_indexes")
        call_command("prepare")
    assert called == ["migrate", "load_catalog"] * 2


def test_database_between_two_states_before_the_first_release_is_refused(earlier_database: None) -> None:
    printed = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("prepare", stderr=printed)
    assert ended.value.code == 2
    assert printed.getvalue().startswith("The database is of an earlier state of the main branch")
    assert re.search(r"runs\.0039_spending_of_episodes.*earlier commit that has", printed.getvalue())


@pytest.mark.parametrize("words", [["eval", "--env", "python-functions", "--model", "demo"], ["runs", "list"]])
def test_command_prints_a_database_that_cannot_be_prepared_as_json(
    earlier_database: None, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "vendor", "sqlite")  # the database that commands prepare
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}  # commands replace them
    try:
        with pytest.raises(SystemExit) as ended:
            ManagementUtility(["manage.py", *words, "--json"]).execute()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    printed = capsys.readouterr()
    message = json.loads(printed.out)["message"]
    assert ended.value.code == 2
    assert message.startswith("The database is of an earlier state") and message in printed.err
