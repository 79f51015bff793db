"""Engines that the tests of boxes run on."""

import pytest
from django.conf import settings

from sandbox.workspaces.base import WorkspaceEngine
from sandbox.workspaces.docker_engine import DockerWorkspaces
from sandbox.workspaces.native_engine import NativeWorkspaces, missing_protection
from tests.sandbox import containers


def make_engine(name: str, **options: str) -> WorkspaceEngine:
    """Return an engine by name, with *options* of its class.

    The running test is skipped if this machine lacks what the engine needs.
    """
    containers.daemon().close()  # native boxes take the files of their image from Docker too
    if name == "docker":
        return DockerWorkspaces(**options)  # type: ignore[arg-type]
    if problem := missing_protection():
        pytest.skip(f"native workspaces: {problem}")
    # It keeps the files of images for later tests.
    return NativeWorkspaces(settings.BASE_DIR / "var" / "test-workspaces", **options)
