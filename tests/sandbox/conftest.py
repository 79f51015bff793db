"""One shared pool for tests that only need to run jobs."""

from collections.abc import Iterator

import pytest

from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep one setup of the conformance table, and a few rows as on older kernels, in the ordinary suite.

    The others are exhaustive.
    """
    for item in items:
        setup = getattr(item, "callspec", None) and item.callspec.params.get("engines")  # type: ignore[attr-defined]
        if setup is None or setup.name == "local-A":
            continue
        if setup.landlock_abi is None or item.path.name != "test_conformance.py":
            item.add_marker(pytest.mark.exhaustive)


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    with Pool.open(PoolOptions(backend="local", accept=frozenset("ABC"), workers=4)) as opened:
        yield opened
