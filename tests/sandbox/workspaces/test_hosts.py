"""Boxes on two Docker engines, which stand for two hosts."""

import io
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sandbox.errors import SandboxUnavailable, SandboxUnreachable
from sandbox.workspaces import hosts
from sandbox.workspaces.base import BoxLimits, BoxSpec, WorkspaceLost
from sandbox.workspaces.docker_engine import DockerWorkspaces
from sandbox.workspaces.hosts import WorkspaceHosts
from tests.sandbox import containers
from tests.sandbox.second_docker import SecondDocker, second_docker

pytestmark = [pytest.mark.docker, pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def second() -> Iterator[SecondDocker]:
    with second_docker(Path(tempfile.mkdtemp(prefix="llmeval-docker-", dir="/tmp"))) as engine:
        yield engine


def spec(**more: object) -> BoxSpec:
    limits = BoxLimits(pids=48, disk_mb=16, memory_mb=128, output_kb=4)
    return BoxSpec(**{"image": containers.image(), "limits": limits, **more})  # type: ignore[arg-type]


def on_both(second: SecondDocker) -> WorkspaceHosts:
    """Return what another process has that may use both engines."""
    return WorkspaceHosts([DockerWorkspaces(), DockerWorkspaces(address=second.address)])


def test_boxes_are_opened_in_turn_and_used_by_every_process(second: SecondDocker) -> None:
    workspaces = on_both(second)
    workspaces.check(containers.image())
    boxes = [workspaces.open(spec()) for _ in range(4)]
    assert sorted(Counter(box.host for box in boxes).values()) == [2, 2]
    for number, box in enumerate(boxes):
        workspaces.write(box, {"/app/number": str(number).encode()})
    other = on_both(second)
    assert [other.execute(box, "cat number", 20).output for box in boxes] == ["0", "1", "2", "3"]
    taken = other.export_artifacts(boxes[1], ["/app"], 1)
    boxes.append(other.open_from(spec(verify=True), taken))
    assert other.read(boxes[-1], "/app/number", 10, root=True) == b"1"
    for box in boxes:
        other.close(box)
        with pytest.raises(WorkspaceLost):
            workspaces.ping(box)


def test_box_of_a_snapshot_may_be_on_another_host(second: SecondDocker) -> None:
    workspaces = on_both(second)
    box = workspaces.open(spec())
    workspaces.execute(box, "echo kept > file", 20)
    with tempfile.TemporaryFile() as file:
        workspaces.snapshot(box, "/app", file, 1)
        copies = []
        for _ in range(2):
            file.seek(0)
            copies.append(workspaces.open_snapshot(spec(), file, 1))
    assert len({copy.host for copy in copies}) == 2
    assert [workspaces.read(copy, "/app/file", 10) for copy in copies] == [b"kept\n"] * 2
    for opened in (box, *copies):
        workspaces.close(opened)


def test_stopped_host_loses_its_boxes_and_gets_new_ones_when_it_is_back(
    second: SecondDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspaces, later = on_both(second), on_both(second)
    boxes = [workspaces.open(spec()) for _ in range(2)]
    here, there = sorted(boxes, key=lambda box: box.host != DockerWorkspaces().host())
    second.stop()
    try:
        for process in (workspaces, later):  # the second one does not know the ids of the hosts yet
            assert process.execute(here, "echo works", 20).output == "works\n"
            with pytest.raises(WorkspaceLost):
                process.ping(there)
        workspaces.check(containers.image())
        opened = [workspaces.open(spec()) for _ in range(3)]
        assert {box.host for box in opened} == {here.host}
        workspaces.close(there)
        with pytest.raises(SandboxUnreachable):
            WorkspaceHosts([DockerWorkspaces(address=second.address)]).check()
    finally:
        second.start()
    boxes = [workspaces.open(spec()) for _ in range(2)]
    assert {box.host for box in boxes} == {here.host}, "a host that could not be reached is avoided for a while"
    monkeypatch.setattr(hosts.time, "monotonic", lambda: 1e9)
    boxes += [workspaces.open(spec()) for _ in range(2)]
    assert {box.host for box in boxes} == {here.host, there.host}
    for box in [here, *opened, *boxes]:
        workspaces.close(box)


def test_image_that_a_host_lacks_is_reported_with_its_address_and_used_elsewhere(second: SecondDocker) -> None:
    workspaces = on_both(second)
    with closing(containers.daemon()) as client:
        client.images.get(containers.image()).tag("llmeval-sandbox", "only-here")
    try:
        with pytest.raises(SandboxUnavailable, match=f"{second.address}: The image llmeval-sandbox:only-here"):
            workspaces.check("llmeval-sandbox:only-here")
        boxes = [workspaces.open(spec(image="llmeval-sandbox:only-here")) for _ in range(2)]
        assert {box.host for box in boxes} == {DockerWorkspaces().host()}
        for box in boxes:
            workspaces.close(box)
    finally:
        with closing(containers.daemon()) as client:
            client.images.remove("llmeval-sandbox:only-here")


def test_image_of_a_bundle_is_built_on_all_hosts(second: SecondDocker) -> None:
    workspaces = on_both(second)
    name = workspaces.build(
        {"Dockerfile": f"FROM {containers.image()}\nRUN echo 1\n".encode()}, "/app", 60, allowed=True
    )
    workspaces.check(name)
    boxes = [workspaces.open(spec(image=name)) for _ in range(2)]
    assert len({box.host for box in boxes}) == 2
    for box in boxes:
        workspaces.close(box)


def test_image_of_packages_must_be_the_same_on_all_hosts(second: SecondDocker) -> None:
    image = containers.image()
    same = WorkspaceHosts([DockerWorkspaces(packages_image=image, address=at) for at in ("", second.address)])
    assert same.find_packages().startswith("sha256:")
    with closing(second.client()) as client:
        client.images.build(fileobj=io.BytesIO(f"FROM {image}\nLABEL a=b\n".encode()), tag="llmeval-test-packages")
    with closing(containers.daemon()) as client:
        client.images.get(image).tag("llmeval-test-packages")
    different = [DockerWorkspaces(packages_image="llmeval-test-packages", address=at) for at in ("", second.address)]
    try:
        with pytest.raises(SandboxUnavailable, match="different images of packages"):
            WorkspaceHosts(different).find_packages()
    finally:
        with closing(containers.daemon()) as client:
            client.images.remove("llmeval-test-packages")
