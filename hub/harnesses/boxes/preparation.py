"""Opening the box of an episode: its image, its files and its setup script."""

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import cast

from hub.harnesses.base import EpisodeContext, HarnessError
from hub.harnesses.boxes.options import ServiceOptions, WorkspaceOptions
from hub.harnesses.boxes.state import Box, WorkspaceState
from hub.harnesses.boxes.tools import describe_result
from hub.harnesses.steps.workspace_files import command_of, missing_interpreter
from hub.protocols.cases import file_bytes
from hub.protocols.messages import JSON
from sandbox.connections.owners import owner
from sandbox.workspaces.base import (
    BoxLimits,
    BoxSpec,
    BuildFailed,
    Handle,
    PackagesUnsuitable,
    ServiceFailed,
    ServiceSpec,
    WorkspaceEngine,
    WorkspaceError,
    WorkspaceLost,
)
from sandbox.workspaces.packages import check_packages
from sandbox.workspaces.shared import build_image, get_workspaces, in_thread, open_in_thread

_SCORING_S = 600  # for a last command's end, and for copying artifacts


async def open_workspace(context: EpisodeContext[WorkspaceOptions]) -> WorkspaceState:
    """Open the episode's box and prepare it. Raises HarnessError, SandboxUnavailable."""
    options = context.options
    image = await in_thread(built_image, options, context.files) if options.build else options.image
    packages = await in_thread(get_workspaces().find_packages) if context.packages else ""
    handle = await open_prepared(context, box_spec(context, image, packages))
    now = time.time()
    world: WorkspaceState = {
        "box": cast(Box, asdict(handle)),
        "ends_at": now + options.limits.episode_s,
        "seen_at": now,
        "workdir": options.workdir,
        "user": options.user,
        "limits": cast(dict[str, JSON], asdict(_limits(options))),
        "artifacts": options.artifacts or [options.workdir],
    }
    if options.build:
        world["built"] = True
    if packages:
        world["packages"] = packages
    if options.network:
        world["refusals"] = 0
    return world


def _limits(options: WorkspaceOptions) -> BoxLimits:
    return BoxLimits(**options.limits.model_dump(exclude={"build_s", "snapshot_mb"}))


def box_spec(context: EpisodeContext[WorkspaceOptions], image: str, packages: str) -> BoxSpec:
    """Return the box of an episode, of *image*, with the packages of the image *packages* unless that is ""."""
    options, limits = context.options, _limits(context.options)
    # The box lives longer than the episode, so that it can be scored after its last command.
    life = replace(limits, episode_s=limits.episode_s + math.ceil(options.call_seconds) + _SCORING_S)
    return BoxSpec(
        image=image,
        workdir=options.workdir,
        seeded=bool(options.build),
        user=options.user,
        limits=life,
        owner=owner() if context.services.process_bound else "",
        services=[_service(service) for service in options.services],
        allowed=options.network.allow if options.network else [],
        packages=packages,
    )


async def open_prepared(context: EpisodeContext[WorkspaceOptions], spec: BoxSpec) -> Handle:
    """Open a box with the case's files, after the setup script. Raises HarnessError, SandboxUnavailable."""
    options, setup = context.options, b""
    if options.setup:
        if options.setup not in context.files:
            raise HarnessError(f"The bundle has no setup script {options.setup!r}.")
        setup = context.files[options.setup]
    engine = get_workspaces()
    try:
        handle = await open_in_thread(engine, engine.open, spec)
    except ServiceFailed as error:
        raise HarnessError(str(error), temporary=True) from None
    try:
        if spec.packages:
            await in_thread(check_packages, engine, handle, spec.image, spec.packages, context.packages)
        await _prepare(context, engine, handle, setup)
    except PackagesUnsuitable as error:
        await in_thread(engine.close, handle)
        raise HarnessError(str(error)) from None
    except BaseException:
        await in_thread(engine.close, handle)
        raise
    return handle


def _service(options: ServiceOptions) -> ServiceSpec:
    return ServiceSpec(
        name=options.name,
        image=options.image,
        environment=options.env,
        healthcheck=options.healthcheck,
        start_s=options.start_s,
        user=options.user,
        writable=options.writable,
    )


async def _prepare(
    context: EpisodeContext[WorkspaceOptions], engine: WorkspaceEngine, handle: Handle, setup: bytes
) -> None:
    files = {path: file_bytes(content) for path, content in context.case.files.items()}
    try:
        await in_thread(engine.write, handle, files)
        if not setup:
            return
        script = "/tmp/setup.sh"  # noqa: S108
        await in_thread(engine.write, handle, {script: setup}, mode=0o700)
        command = f"{command_of(script, setup)}; code=$?; rm -f {script}; exit $code"
        result = await in_thread(engine.execute, handle, command, context.options.call_seconds)
    except WorkspaceLost:
        raise
    except WorkspaceError as error:
        raise HarnessError(f"The box could not be prepared: {error}.", temporary=True) from None
    if result.exit_code or result.timed_out:
        reason = missing_interpreter(script, setup, result.output) or describe_result(result)[-2000:]
        raise HarnessError(f"{context.options.setup} failed: {reason}", temporary=result.timed_out)


def built_image(options: WorkspaceOptions, files: Mapping[str, bytes]) -> str:
    """Return the image of `build`. Raises HarnessError, SandboxUnavailable."""
    folder = options.build
    context = {path.removeprefix(folder): data for path, data in files.items() if path.startswith(folder)}
    if "Dockerfile" not in context:
        raise HarnessError(f"The bundle has no file '{folder}Dockerfile'.")
    try:
        return build_image(context, options.workdir, options.limits.build_s)
    except BuildFailed as error:
        raise HarnessError(f"{folder}Dockerfile cannot be built: {error}", temporary=True) from None
