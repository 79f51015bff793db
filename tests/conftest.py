"""What every test starts with."""

from collections.abc import Iterator

import pytest
from django.core.cache import cache


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    """Throttles and kept results go by the numbers of users and runs, which begin anew in each test."""
    cache.clear()
    yield
