"""What tests of the hub share: one sandbox for all of them."""

from collections.abc import Iterator

import pytest

from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool


@pytest.fixture(scope="session")
def sandbox_pool() -> Iterator[Pool]:
    """A real sandbox, whatever tier this machine allows."""
    with Pool.open(PoolOptions(accept=frozenset("ABC"))) as pool:
        yield pool
