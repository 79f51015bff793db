"""The state of an episode in a workspace: the live box and what a scoring box needs to be like it."""

from typing import NotRequired, TypedDict

from hub.protocols.messages import JSON
from sandbox.workspaces.base import Handle, WorkspaceEngine


class Box(TypedDict):
    """The live box in the state of an episode."""

    host: str
    id: str
    generation: str
    image: str
    network: NotRequired[str]


class World(TypedDict):
    """The environment's state: the live box, when its use ends, and what a scoring box needs to be like it."""

    box: Box
    ends_at: float
    workdir: str
    user: int
    limits: dict[str, JSON]
    artifacts: list[str]
    built: NotRequired[bool]  # the image has what the work folder begins with
    refusals: NotRequired[int]  # refused connections to the outside that the transcript has; absent without a network


def handle_of(world: World) -> Handle:
    return Handle(**world["box"])


def take_refusals(engine: WorkspaceEngine, world: World) -> tuple[World, list[str]]:
    """Return the refused connections to the outside that are new, and the world in which they are counted."""
    if "refusals" not in world:
        return world, []
    found = list(engine.refusals(handle_of(world), world["refusals"]))
    return {**world, "refusals": world["refusals"] + len(found)}, found
