"""Signed-in users of the tests of pages and REST."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.members import member


@pytest.fixture
def user(client: Client) -> User:
    """A signed-in user without a role."""
    user = member()
    client.force_login(user)
    return user


@pytest.fixture
def curator(client: Client) -> User:
    """A signed-in curator who may also use the admin."""
    user = member("Curator", staff=True)
    client.force_login(user)
    return user
