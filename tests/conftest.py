"""What every test starts with."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.core.cache import cache
from django.db.models.signals import post_migrate

_SEEDS = {
    "llmeval_site.migrations.0002_groups": "make_groups",
    "preferences.migrations.0002_categories": "seed",
    "review.migrations.0002_reviewers": "seed",
}


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    """Throttles and kept results go by the numbers of users and runs, which begin anew in each test."""
    cache.clear()
    yield


def pytest_sessionstart() -> None:
    post_migrate.connect(_seed_again, sender=apps.get_app_config("review"))


def _seed_again(**_: Any) -> None:
    """A test with real transactions empties every table when it ends; what migrations put there comes back."""
    from django.contrib.auth.models import Group

    if not Group.objects.exists():
        for module, name in _SEEDS.items():
            getattr(import_module(module), name)(apps, None)


def pytest_make_parametrize_id(val: Any) -> str | None:
    """Bytes are named by their length: an archive's own bytes carry the time it was made, and pytest's workers must
    all collect the same names."""
    return f"{len(val)}-bytes" if isinstance(val, bytes) else None
