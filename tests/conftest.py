"""Fixtures and hooks for all tests."""

import os
import socketserver
from collections.abc import Iterator

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.management import create_contenttypes
from django.contrib.contenttypes.models import ContentType
from django.core.cache import cache
from django.core.management.color import no_style
from django.db import connection
from django.db.models import Model
from django.db.models.signals import post_migrate
from hypothesis import settings as hypothesis_settings
from pytest_django import DjangoDbBlocker

from preferences.models import IssueCategory
from review.models import Guideline

# Models whose first rows are created by migrations, or by Django after them. A row comes after those it refers to.
_SEEDED: list[type[Model]] = [ContentType, Permission, Group, Group.permissions.through, IssueCategory, Guideline]
_DATABASE_FIXTURES = {"db", "transactional_db", "django_db_reset_sequences", "django_db_serialized_rollback"}


# Examples have no time limit: a busy machine would break it.
hypothesis_settings.register_profile("llmeval", deadline=None)
hypothesis_settings.load_profile("llmeval")

# The servers of tests, Django's live server among them, write header and body separately. With Nagle's algorithm the
# body waits until the client has acknowledged the header, so each response would take 40 ms longer.
socketserver.StreamRequestHandler.disable_nagle_algorithm = True


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    """Throttles and cached results are keyed by ids of users and runs, which start again in each test."""
    cache.clear()
    yield


def pytest_xdist_auto_num_workers() -> int | None:
    """Start one worker more than there are cores: tests often wait for containers, servers and other processes."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else (os.cpu_count() or 1) + 1


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --only-database."""
    parser.addoption("--only-database", action="store_true", help="run only the tests that use the database")


def pytest_sessionstart() -> None:
    """Hash passwords quickly."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Store the first rows of a new database again whenever a test has emptied its tables.

    Tests with real transactions empty all tables when they end. If Django's receivers and the functions of migrations
    created these rows again, that would take 80 ms of processor time per test instead of 10.
    """
    with django_db_blocker.unblock():
        first_rows = [(model, list(model._default_manager.all())) for model in _SEEDED]
    assert all(rows for _, rows in first_rows)

    def restore(**_: object) -> None:
        if Group.objects.exists():
            return
        for model, rows in first_rows:
            model._default_manager.bulk_create(rows)
        with connection.cursor() as cursor:
            for statement in connection.ops.sequence_reset_sql(no_style(), _SEEDED):
                cursor.execute(statement)

    post_migrate.disconnect(create_contenttypes)
    post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
    post_migrate.connect(restore, sender=apps.get_app_config("review"), weak=False)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --only-database, deselect tests that do not use the database."""
    if not config.getoption("only_database"):
        return
    selected = [item for item in items if _uses_database(item)]
    config.hook.pytest_deselected(items=[item for item in items if not _uses_database(item)])
    items[:] = selected


def _uses_database(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", []))
    return item.get_closest_marker("django_db") is not None or bool(fixtures & _DATABASE_FIXTURES)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name bytes by their length: archives contain the time of their creation, and all workers need the same names."""
    return f"{len(val)}-bytes" if isinstance(val, bytes) else None
