"""Boxes on the Docker engines of several hosts. Every process that can reach the engines can use every box."""

import itertools
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TypeVar

from sandbox.errors import SandboxUnavailable, SandboxUnreachable
from sandbox.workspaces.base import (
    Artifacts,
    BoxSpec,
    CommandResult,
    Handle,
    SnapshotFacts,
    WorkspaceEngine,
    WorkspaceLost,
)
from sandbox.workspaces.docker_engine import DockerWorkspaces

logger = logging.getLogger(__name__)

T = TypeVar("T")
_AVOID_S = 30.0  # for which no box is opened on a host that could not be reached


class WorkspaceHosts(WorkspaceEngine):
    """Opens boxes on several hosts in turn; every other call goes to the host of its box.

    A host that cannot be reached gets no new boxes for a while. Its boxes are lost to this process. All hosts need the
    images of environments; images of bundles are built on each.
    """

    def __init__(self, engines: Sequence[DockerWorkspaces]) -> None:
        """engines: one for each host, at least one."""
        self._engines = list(engines)
        self._turn = itertools.count(random.randrange(len(engines)))  # noqa: S311  # processes begin with different ones
        self._avoided: dict[DockerWorkspaces, float] = {}  # until when

    def check(self, image: str = "") -> None:
        self._on_all(lambda engine: engine.check(image))

    def check_outside(self) -> None:
        self._on_all(lambda engine: engine.check_outside())

    def build(self, context: Mapping[str, bytes], workdir: str, seconds: float, *, allowed: bool) -> str:
        return self._on_all(lambda engine: engine.build(context, workdir, seconds, allowed=allowed))[0]

    def find_packages(self) -> str:
        digests = set(self._on_all(lambda engine: engine.find_packages()))
        if len(digests) > 1:
            raise SandboxUnavailable(
                "The hosts of workspaces have different images of packages. Build the image on one of them, and load "
                "it on the others with `docker save` and `docker load`."
            )
        return digests.pop()

    def open(self, spec: BoxSpec) -> Handle:
        return self._on_any(lambda engine: engine.open(spec))

    def open_snapshot(self, spec: BoxSpec, source: IO[bytes], max_mb: int) -> Handle:
        start = source.tell()

        def open_on(engine: DockerWorkspaces) -> Handle:
            source.seek(start)  # another host may have read a part of it
            return engine.open_snapshot(spec, source, max_mb)

        return self._on_any(open_on)

    def open_from(self, spec: BoxSpec, artifacts: Artifacts) -> Handle:
        return self._on_any(lambda engine: engine.open_from(spec, artifacts))

    def execute(
        self,
        handle: Handle,
        command: str,
        seconds: float,
        *,
        root: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> CommandResult:
        return self._engine_of(handle).execute(handle, command, seconds, root=root, environment=environment)

    def read(self, handle: Handle, path: str, max_bytes: int, *, root: bool = False) -> bytes:
        return self._engine_of(handle).read(handle, path, max_bytes, root=root)

    def write(self, handle: Handle, files: Mapping[str, bytes], *, root: bool = False, mode: int | None = None) -> None:
        self._engine_of(handle).write(handle, files, root=root, mode=mode)

    def ping(self, handle: Handle) -> None:
        self._engine_of(handle).ping(handle)

    def refusals(self, handle: Handle, after: int) -> Sequence[str]:
        return self._engine_of(handle).refusals(handle, after)

    def reached_limits(self, handle: Handle) -> Sequence[str]:
        return self._engine_of(handle).reached_limits(handle)

    def end_processes(self, handle: Handle) -> None:
        self._engine_of(handle).end_processes(handle)

    def export_artifacts(self, handle: Handle, paths: Sequence[str], max_mb: int) -> Artifacts:
        return self._engine_of(handle).export_artifacts(handle, paths, max_mb)

    def snapshot(self, handle: Handle, workdir: str, target: IO[bytes], max_mb: int) -> SnapshotFacts:
        return self._engine_of(handle).snapshot(handle, workdir, target, max_mb)

    def close(self, handle: Handle) -> None:
        try:
            engine = self._engine_of(handle)
        except WorkspaceLost:
            return  # the box ends by itself when it expires
        engine.close(handle)

    def sweep(self) -> list[str]:
        return [box for engine in self._engines for box in engine.sweep()]

    def _engine_of(self, handle: Handle) -> DockerWorkspaces:
        """Return the engine of a box. Raises WorkspaceLost if it cannot be reached or is not one of them."""
        for engine in self._reachable_first(self._engines):
            try:
                if engine.host() == handle.host:
                    return engine
            except SandboxUnavailable as error:
                self._avoid(engine, error)  # so that not every call of other boxes waits for it
        raise WorkspaceLost(
            "The host of the workspace cannot be reached or is not in LLMEVAL_WORKSPACE_HOSTS any more."
        )

    def _on_all(self, act: Callable[[DockerWorkspaces], T]) -> list[T]:
        """Return the results of *act* on all hosts that can be reached. Raises SandboxUnreachable if none can."""
        results: list[T] = []
        unreachable: SandboxUnreachable | None = None
        for engine in self._engines:
            try:
                results.append(act(engine))
            except SandboxUnreachable as error:
                unreachable = error
                self._avoid(engine, error)
            except SandboxUnavailable as error:
                raise SandboxUnavailable(f"{engine.address}: {error}") from error
        if not results and unreachable is not None:
            raise unreachable
        return results

    def _on_any(self, open_on: Callable[[DockerWorkspaces], Handle]) -> Handle:
        """Open a box on the next host that can be reached and has the image. Raises what the last one raised."""
        failure: SandboxUnavailable | None = None
        for engine in self._in_turn():
            try:
                return open_on(engine)
            except SandboxUnavailable as error:
                failure = error
                if isinstance(error, SandboxUnreachable):
                    self._avoid(engine, error)
        assert failure is not None
        raise failure

    def _in_turn(self) -> list[DockerWorkspaces]:
        """Return all engines, beginning with the next one. Those that could not be reached come last."""
        first = next(self._turn) % len(self._engines)
        return self._reachable_first(self._engines[first:] + self._engines[:first])

    def _reachable_first(self, engines: list[DockerWorkspaces]) -> list[DockerWorkspaces]:
        now = time.monotonic()
        return sorted(engines, key=lambda engine: self._avoided.get(engine, 0.0) > now)

    def _avoid(self, engine: DockerWorkspaces, error: SandboxUnavailable) -> None:
        logger.warning("a host of workspaces gets no boxes for %d s: %s", _AVOID_S, error)
        self._avoided[engine] = time.monotonic() + _AVOID_S
