"""Fixtures and hooks for all tests."""

from collections.abc import Iterator
from importlib import import_module

import pytest
from django.apps import apps
from django.conf import settings
from django.core.cache import cache
from django.db.models.signals import post_migrate
from hypothesis import settings as hypothesis_settings

# Data that migrations create, with the function that creates it.
_SEEDS = {
    "llmeval_site.migrations.0002_groups": "make_groups",
    "preferences.migrations.0002_categories": "seed",
    "review.migrations.0002_reviewers": "seed",
}
_DATABASE_FIXTURES = {"db", "transactional_db", "django_db_reset_sequences", "django_db_serialized_rollback"}


# Examples have no time limit: a busy machine would break it.
hypothesis_settings.register_profile("llmeval", deadline=None)
hypothesis_settings.load_profile("llmeval")


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    """Throttles and cached results are keyed by ids of users and runs, which start again in each test."""
    cache.clear()
    yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --only-database."""
    parser.addoption("--only-database", action="store_true", help="run only the tests that use the database")


def pytest_sessionstart() -> None:
    """Hash passwords quickly, and create the data of migrations again whenever a test has emptied the tables."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    post_migrate.connect(_create_seeds, sender=apps.get_app_config("review"))


def _create_seeds(**_: object) -> None:
    """Create the data of migrations. Tests with real transactions empty every table when they end."""
    from django.contrib.auth.models import Group

    if not Group.objects.exists():
        for module, name in _SEEDS.items():
            getattr(import_module(module), name)(apps, None)


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
