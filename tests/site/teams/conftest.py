"""Fixture of tests of teams."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.members import member


@pytest.fixture
def ann(client: Client) -> User:
    """The only manager of the team vision, signed in."""
    ann = member(name="ann")
    client.force_login(ann)
    return ann
