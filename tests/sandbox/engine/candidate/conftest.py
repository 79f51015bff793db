"""Fixtures of the tests of programs in the sandbox."""

from collections.abc import Iterator

import pytest

from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool.open(PoolOptions(backend="local", accept=frozenset("ABC"), workers=1)) as pool:
        yield pool
