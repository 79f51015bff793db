"""`manage.py prepare`: databases that it refuses."""

import pytest
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from llmeval_site.management.commands import prepare

pytestmark = pytest.mark.django_db


def test_database_between_two_states_before_the_first_release_is_refused() -> None:
    prepare._refuse_earlier_database()
    MigrationRecorder(connection).record_unapplied("runs", "0039_spending_of_episodes")
    with pytest.raises(CommandError, match=r"runs\.0039_spending_of_episodes.*earlier commit that has"):
        prepare._refuse_earlier_database()
