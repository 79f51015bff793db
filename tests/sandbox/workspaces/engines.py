"""Engines that the tests of boxes run on."""

import pytest
from django.conf import settings

from sandbox.workspaces.base import WorkspaceEngine
from sandbox.workspaces.docker_engine import DockerWorkspaces
from sandbox.workspaces.native_engine import NativeWorkspaces, missing_protection


def make_engine(name: str) -> WorkspaceEngine:
    """Return an engine by name; the running test is skipped if this machine has not what it needs."""
    if name == "docker":
        return DockerWorkspaces()
    if problem := missing_protection():
        pytest.skip(f"native workspaces: {problem}")
    return NativeWorkspaces(settings.BASE_DIR / "var" / "test-workspaces")  # keeps the files of images for later tests
