"""Fixtures of the hub: sandboxes, and a folder for stored bundles."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from sandbox.client.shared_pools import get_shared_pool
from sandbox.errors import SandboxUnavailable


@pytest.fixture(scope="session")
def sandbox_pool() -> Iterator[Pool]:
    """A real sandbox, whatever tier this machine allows."""
    with Pool.open(PoolOptions(accept=frozenset("ABC"))) as pool:
        yield pool


@pytest.fixture
def pool() -> Pool:
    """The sandbox pool that this process shares; skips the test if there is no sandbox."""
    try:
        return get_shared_pool(PoolOptions(accept=frozenset("ABC")))
    except SandboxUnavailable as error:
        pytest.skip(f"no sandbox: {error}")


@pytest.fixture
def media(settings: Settings, tmp_path: Path) -> Path:
    """A folder of its own for the bundles that the test stores."""
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"
