"""Errors of steps in the background, stored for the requests that ask for the answer."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from hub.teams.quotas import QuotaExceeded
from runs.rollouts.errors import (
    EnvironmentFailed,
    RolloutError,
    RolloutFailed,
    StepCrashed,
    error_json,
    restore_error,
)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RolloutError("The message is not allowed.", "message"), "invalid"),
        (QuotaExceeded("Red has spent all.", quota=4.5, used=4.75), "quota"),
        (QuotaExceeded("Red has spent all.", quota=1, used=2, resets_at=timezone.now() + timedelta(days=1)), "quota"),
        (EnvironmentFailed("harness.py: step failed."), "environment"),
        (RolloutFailed("The sandbox does not answer."), "unavailable"),
    ],
)
def test_stored_error_is_restored(error: Exception, kind: str) -> None:
    stored = json.loads(json.dumps(error_json(error)))
    restored = restore_error(stored)
    assert (stored["kind"], type(restored), str(restored)) == (kind, type(error), str(error))
    assert error_json(restored) == stored
    assert getattr(restored, "path", "") == getattr(error, "path", "") == stored["path"]


def test_message_of_a_mistake_in_the_server_is_not_stored() -> None:
    stored = error_json(ZeroDivisionError("secret"))
    assert stored["kind"] == "crashed" and "secret" not in json.dumps(stored)
    assert isinstance(restore_error(json.loads(json.dumps(stored))), StepCrashed)


def test_unknown_kind_is_restored_as_a_mistake_in_the_server() -> None:
    assert isinstance(restore_error({"kind": "later", "message": "m", "path": ""}), StepCrashed)
