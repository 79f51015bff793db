"""Boxes that are opened before an episode needs them."""

import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator

import docker
import pytest
from django.conf import settings

from sandbox.errors import SandboxUnavailable
from sandbox.workspaces import docker_engine, prepared
from sandbox.workspaces.base import BoxLimits, BoxSpec, Handle, ServiceSpec
from sandbox.workspaces.docker_api import OWNER_LABEL
from sandbox.workspaces.docker_engine import DockerWorkspaces
from sandbox.workspaces.prepared import PreparedBoxes
from tests.processes import wait_until
from tests.sandbox import containers

LIMITS = BoxLimits(pids=48, disk_mb=16, memory_mb=128, output_kb=4, episode_s=300)


class Boxes:
    """Boxes without containers: which are open, and which were closed."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.closed: list[str] = []
        self.fails = False

    def open_box(self, spec: BoxSpec) -> Handle:
        if self.fails:
            raise SandboxUnavailable("no such image")
        name = uuid.uuid4().hex
        self.open.append(name)
        return Handle(host="host", id=name, generation=name, image=spec.image)

    def close(self, handle: Handle) -> None:
        self.open.remove(handle.id)
        self.closed.append(handle.id)

    def prepared(self, number: int) -> PreparedBoxes:
        return PreparedBoxes(number, self.open_box, self.close)


@pytest.fixture
def boxes() -> Boxes:
    return Boxes()


SPEC = BoxSpec(image="one", services=[])


def test_as_many_boxes_wait_as_were_used_lately_up_to_the_limit(boxes: Boxes) -> None:
    ready = boxes.prepared(3)
    assert ready.take(SPEC) is None
    wait_until(lambda: len(boxes.open) == 1)
    for _ in range(5):
        ready.take(BoxSpec(image="two"))
    wait_until(lambda: len(boxes.open) == 3)
    ready.close()
    assert not boxes.open


def test_box_is_used_once(boxes: Boxes) -> None:
    ready = boxes.prepared(1)
    ready.take(SPEC)
    wait_until(lambda: len(boxes.open) == 1)
    taken = ready.take(SPEC)
    assert taken is not None and taken.id == boxes.open[0]
    wait_until(lambda: len(boxes.open) == 2)  # another one in its place
    ready.close()
    assert boxes.open == [taken.id]


def test_boxes_that_nobody_uses_are_closed(boxes: Boxes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "IDLE_S", 0.2)
    monkeypatch.setattr(prepared, "_LATELY_S", 0.2)
    ready = boxes.prepared(2)
    ready.take(SPEC)
    wait_until(lambda: len(boxes.closed) == 1)
    assert not boxes.open
    ready.close()


def test_nothing_is_prepared_after_an_error_until_the_next_episode(boxes: Boxes) -> None:
    boxes.fails = True
    ready = boxes.prepared(2)
    ready.take(SPEC)
    wait_until(lambda: not ready._kinds)
    boxes.fails = False
    ready.take(SPEC)
    wait_until(lambda: len(boxes.open) == 1)
    ready.close()


def test_boxes_with_a_network_are_not_prepared(boxes: Boxes) -> None:
    ready = boxes.prepared(2)
    ready.take(BoxSpec(image="one", services=[ServiceSpec(name="db", image="two")]))
    ready.take(BoxSpec(image="one", allowed=["example.org:443"]))
    assert not ready._kinds and "workspaces-prepare" not in [thread.name for thread in threading.enumerate()]


# ---- containers ------------------------------------------------------------------------------------------------------

needs_docker = pytest.mark.docker


@pytest.fixture
def engine() -> Iterator[DockerWorkspaces]:
    containers.daemon().close()
    made = DockerWorkspaces(prepared=1)
    yield made
    made.prepared.close()


def spec(**values: object) -> BoxSpec:
    return BoxSpec(**{"image": containers.image(), "limits": LIMITS, "owner": "", **values})  # type: ignore[arg-type]


def waiting(engine: DockerWorkspaces) -> list[Handle]:
    return [box for kind in engine.prepared._kinds.values() for box, _ in kind.waiting]


def owned(owner: str) -> list[str]:
    api = docker.from_env().api
    try:
        return [found["Id"] for found in api.containers(all=True, filters={"label": f"{OWNER_LABEL}={owner}"})]
    finally:
        api.close()


class TestContainers:
    pytestmark = needs_docker

    def test_next_episode_begins_in_a_prepared_box(self, engine: DockerWorkspaces) -> None:
        first = engine.open(spec())
        wait_until(lambda: bool(waiting(engine)))
        (ready,) = waiting(engine)
        engine.execute(first, "echo secret > file", 20)
        second = engine.open(spec())
        try:
            assert second == ready
            assert engine.execute(second, "pwd; ls -A", 20).output == "/app\n"
        finally:
            for box in (first, second):
                engine.close(box)

    @pytest.mark.exhaustive
    def test_prepared_box_lives_as_long_as_an_episode_once_it_has_begun(
        self, engine: DockerWorkspaces, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(docker_engine, "_WAITS_S", 4.0)
        engine.close(engine.open(spec()))
        wait_until(lambda: bool(waiting(engine)))
        box = engine.open(spec())
        try:
            assert engine.execute(box, "sleep 5; echo still here", 20).output == "still here\n"
            assert engine.execute(box, "echo and now", 20).output == "and now\n"
        finally:
            engine.close(box)

    def test_box_that_has_ended_is_not_used(self, engine: DockerWorkspaces) -> None:
        engine.close(engine.open(spec()))
        wait_until(lambda: bool(waiting(engine)))
        (ready,) = waiting(engine)
        engine.close(ready)
        box = engine.open(spec())
        try:
            assert box.id != ready.id and engine.execute(box, "echo fine", 20).output == "fine\n"
        finally:
            engine.close(box)

    def test_box_of_an_earlier_image_is_not_used(self, engine: DockerWorkspaces) -> None:
        client = docker.from_env()
        name = f"llmeval-test-{uuid.uuid4().hex[:12]}"
        client.images.get(containers.image()).tag(name)
        try:
            engine.close(engine.open(spec(image=name)))
            wait_until(lambda: bool(waiting(engine)))
            (ready,) = waiting(engine)
            made = client.containers.create(containers.image(), labels={"changed": "yes"})
            made.commit(name)
            made.remove()
            box = engine.open(spec(image=name))
            assert box.image != ready.image
            engine.close(box)
            engine.prepared.close()
        finally:
            client.images.remove(name, force=True)
            client.close()

    @pytest.mark.exhaustive
    def test_nothing_is_left_when_a_process_ends_or_is_killed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        script = """
import os, sys, time
from sandbox.workspaces import docker_engine
from sandbox.workspaces.base import BoxLimits, BoxSpec
docker_engine._WAITS_S = 4.0
engine = docker_engine.DockerWorkspaces(prepared=1)
engine.close(engine.open(BoxSpec(image=sys.argv[1], limits=BoxLimits(disk_mb=16, memory_mb=128), owner=sys.argv[2])))
while not any(kind.waiting for kind in engine.prepared._kinds.values()):
    time.sleep(0.05)
if sys.argv[3] == "killed":
    os.kill(os.getpid(), 9)
"""
        for how in ("ends", "killed"):
            owner = f"test-{uuid.uuid4().hex}"
            command = [sys.executable, "-c", script, containers.image(), owner, how]
            done = subprocess.run(command, cwd=settings.BASE_DIR, env=os.environ, check=False, timeout=120)
            assert done.returncode == (0 if how == "ends" else -9)
            if how == "ends":
                assert not owned(owner)
            wait_until(lambda owner=owner: not owned(owner))  # type: ignore[misc]
