"""Stored state of an episode in a workspace: its live box, its snapshots, and the options of the box for scoring."""

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


class SnapshotState(TypedDict):
    """The latest snapshot: its digest, the turns and calls that it includes, and the processes that it lacks.

    `before` is the digest of the one before it, "" if there is none: a stored state may still name that.
    """

    digest: str
    before: str
    turns: int
    calls: int
    processes: int


class Divergence(TypedDict):
    """A repeated call whose result differs: its turn and number, both from 1, and the beginnings of both results."""

    turn: int
    call: int
    tool: str
    before: str
    after: str


class Restoration(TypedDict):
    """A box that was lost and opened again.

    `from_turn`: of its snapshot, 0 without one. `repeated`: calls since then. `ended`: processes that are missing.
    """

    turn: int
    from_turn: int
    repeated: int
    ended: int
    diverged: list[Divergence]


class RequestParameters(TypedDict):
    """Parameters of a program's requests (`temperature`) from a turn on, counted from 1."""

    turn: int
    parameters: dict[str, JSON]


class WorkspaceState(TypedDict):
    """The environment's state: the live box, when its use ends, and the options of a scoring box like it."""

    box: Box
    ends_at: float
    workdir: str
    user: int
    limits: dict[str, JSON]
    artifacts: list[str]
    packages: NotRequired[str]  # digest of the image whose packages the box has
    built: NotRequired[bool]  # the image has what the work folder begins with
    seen_at: NotRequired[float]  # when the latest turn ended
    snapshot: NotRequired[SnapshotState]
    restored: NotRequired[list[Restoration]]
    note: NotRequired[str]  # about a restoration, for the next result of a call
    parameters: NotRequired[list[RequestParameters]]  # of a program's requests; absent if there were none
    refusals: NotRequired[int]  # refused connections to the outside that the transcript has; absent without a network


def handle_of(world: WorkspaceState) -> Handle:
    """Return the live box as the engine of workspaces identifies it."""
    return Handle(**world["box"])


def take_refusals(engine: WorkspaceEngine, world: WorkspaceState) -> tuple[WorkspaceState, list[str]]:
    """Return the connections to the outside refused since the last call, and the state that counts them as reported."""
    if "refusals" not in world:
        return world, []
    found = list(engine.refusals(handle_of(world), world["refusals"]))
    return {**world, "refusals": world["refusals"] + len(found)}, found
