"""The engines of workspaces that tests of boxes run on."""

from collections.abc import Iterator

import pytest

from sandbox.workspaces.base import WorkspaceEngine
from tests.sandbox import containers
from tests.sandbox.workspaces.engines import make_engine


@pytest.fixture(scope="module", params=containers.ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[WorkspaceEngine]:
    made = make_engine(request.param)
    yield made
    made.sweep()


@pytest.fixture(scope="module")
def native() -> Iterator[WorkspaceEngine]:
    made = make_engine("native")
    yield made
    made.sweep()
