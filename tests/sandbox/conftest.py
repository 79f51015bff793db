"""One shared pool for tests that only need to run jobs."""

from collections.abc import Iterator

import pytest

from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from tests.sandbox.conformance.bench import Setup


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep one setup of the conformance table, and a few rows as on older kernels, in the ordinary suite.

    The others are exhaustive.
    """
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        setup = params.get("engines") or params.get("setup")
        if not isinstance(setup, Setup) or setup.name == "local-A":
            continue
        if setup.landlock_abi is None or item.path.name != "test_conformance.py":
            item.add_marker(pytest.mark.exhaustive)


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    with Pool.open(PoolOptions(backend="local", accept=frozenset("ABC"), workers=4)) as opened:
        yield opened
