"""The engine of workspaces that a process shares, and the thread that removes boxes without an owner."""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from django.conf import settings

from sandbox.workspaces.base import Handle, WorkspaceEngine

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
SWEEP_EVERY_S = 60.0
_THREADS = 64  # each waits for one command

_lock = threading.Lock()
_may_build = False
_engine: WorkspaceEngine | None = None
_executor: ThreadPoolExecutor | None = None


def get_workspaces() -> WorkspaceEngine:
    """Return the process's engine. The first call starts the sweep, now and every minute."""
    global _engine
    with _lock:
        if _engine is None:
            _engine = _make_engine()
            threading.Thread(target=_sweep, args=(_engine,), name="workspaces-sweep", daemon=True).start()
        return _engine


def _make_engine() -> WorkspaceEngine:
    if settings.WORKSPACES == "native":
        from sandbox.workspaces.native_engine import NativeWorkspaces

        return NativeWorkspaces(Path(settings.WORKSPACES_DIR), packages_image=settings.WORKSPACE_PACKAGES)

    from sandbox.connections.transports.docker import DEFAULT_IMAGE
    from sandbox.workspaces.docker_engine import DockerWorkspaces  # the Docker SDK takes long to import
    from sandbox.workspaces.hosts import WorkspaceHosts

    engines = [
        DockerWorkspaces(
            settings.SANDBOX_RUNTIME or None,
            outside=settings.WORKSPACE_NETWORK,
            proxy_image=settings.SANDBOX_IMAGE or DEFAULT_IMAGE,
            packages_image=settings.WORKSPACE_PACKAGES,
            prepared=settings.WORKSPACES_PREPARED,
            address=address,
        )
        for address in settings.WORKSPACE_HOSTS or [""]
    ]
    return WorkspaceHosts(engines) if len(engines) > 1 else engines[0]


def has_docker() -> bool:
    """Return whether a Docker engine seems to be configured, without a connection to it."""
    named = settings.WORKSPACE_HOSTS or os.environ.get("DOCKER_HOST")
    return bool(named) or Path("/var/run/docker.sock").exists()


def has_workspaces() -> bool:
    """Return whether this process may have boxes to sweep, without a connection to a Docker engine."""
    return settings.WORKSPACES == "native" or has_docker()


def allow_builds() -> None:
    """Let this process build images of bundles. Called by commands: who may run them may use the Docker engine."""
    global _may_build
    _may_build = True


def build_image(context: Mapping[str, bytes], workdir: str, seconds: float) -> str:
    """Return the image of a folder with a Dockerfile. Raises BuildFailed, SandboxUnavailable."""
    allowed = _may_build or settings.WORKSPACE_BUILDS
    return get_workspaces().build(context, workdir, seconds, allowed=allowed)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of *function*, called in a thread of its own executor, so that commands do not block others."""
    return await asyncio.wrap_future(_get_executor().submit(function, *args, **kwargs))


async def open_in_thread(
    engine: WorkspaceEngine, open_box: Callable[P, Handle], *args: P.args, **kwargs: P.kwargs
) -> Handle:
    """Return the box that *open_box* opens in a thread. If the caller is cancelled meanwhile, the box is closed."""
    executor = _get_executor()
    opening = executor.submit(open_box, *args, **kwargs)

    def close(opened: Future[Handle]) -> None:
        if not opened.cancelled() and opened.exception() is None:
            try:
                executor.submit(engine.close, opened.result())
            except RuntimeError:  # the process is ending, and waits for this thread
                engine.close(opened.result())

    try:
        return await asyncio.wrap_future(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(close)
        raise


def _get_executor() -> ThreadPoolExecutor:
    global _executor
    with _lock:
        if _executor is None:
            _executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="workspace")
        return _executor


def _sweep(engine: WorkspaceEngine) -> None:
    wait = threading.Event()
    while True:
        try:
            removed = engine.sweep()
        except Exception:
            logger.warning("the sweep of workspaces failed", exc_info=True)
        else:
            if removed:
                logger.info("removed %d workspaces that expired or whose process ended", len(removed))
        wait.wait(SWEEP_EVERY_S)


def _reset_after_fork() -> None:
    global _lock, _engine, _executor
    _lock, _engine, _executor = threading.Lock(), None, None


os.register_at_fork(after_in_child=_reset_after_fork)
