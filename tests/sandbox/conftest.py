"""One warm pool for the tests that only need to run something."""

from collections.abc import Iterator

import pytest

from sandbox.pool import Pool, PoolOptions


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    with Pool.open(PoolOptions(backend="local", accept=frozenset("ABC"), workers=4)) as opened:
        yield opened
