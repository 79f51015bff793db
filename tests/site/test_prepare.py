"""`manage.py prepare`: databases that it refuses."""

import io
import re
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import override_settings

from llmeval_site.management.commands import prepare

pytestmark = pytest.mark.django_db


def test_database_between_two_states_before_the_first_release_is_refused(tmp_path: Path) -> None:
    prepare._refuse_earlier_database()
    MigrationRecorder(connection).record_unapplied("runs", "0039_spending_of_episodes")
    printed = io.StringIO()
    # A folder without the file that says that everything is prepared.
    with override_settings(VAR_DIR=tmp_path), pytest.raises(SystemExit) as ended:
        call_command("prepare", stderr=printed)
    assert ended.value.code == 2
    assert printed.getvalue().startswith("The database is of an earlier state of the main branch")
    assert re.search(r"runs\.0039_spending_of_episodes.*earlier commit that has", printed.getvalue())
