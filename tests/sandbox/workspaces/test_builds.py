"""Images of workspaces that are built from a folder of a bundle."""

import threading
from collections.abc import Iterator

import pytest

from sandbox.errors import SandboxUnavailable
from sandbox.workspaces.base import BoxSpec, BuildFailed
from sandbox.workspaces.builds import BUILD_LABEL, image_name
from sandbox.workspaces.docker_engine import DockerWorkspaces
from tests.sandbox import containers

pytestmark = pytest.mark.docker


@pytest.fixture
def engine() -> Iterator[DockerWorkspaces]:
    client = containers.daemon()
    yield DockerWorkspaces()
    for image in client.images.list(filters={"label": BUILD_LABEL}):
        if any(tag in NAMES for tag in image.tags):
            client.images.remove(image.id, force=True)
    client.close()
    NAMES.clear()


NAMES: set[str] = set()


def folder(steps: str, **files: bytes) -> dict[str, bytes]:
    context = {"Dockerfile": f"FROM {containers.image()}\nUSER root\n{steps}\n".encode(), **files}
    NAMES.add(image_name(context, "/app"))
    return context


def test_image_is_built_once_and_boxes_begin_with_its_work_folder(engine: DockerWorkspaces) -> None:
    context = folder(
        "COPY start.sh /app/tools/\nRUN echo kept > /opt/kept", **{"start.sh": b"#!/bin/sh\necho started\n"}
    )
    name = engine.build(context, "/app", 120, allowed=True)
    box = engine.open(BoxSpec(image=name, seeded=True))
    try:
        result = engine.execute(box, "cat /opt/kept; tools/start.sh; echo more > tools/more && ls tools", 10)
        assert result.output == "kept\nstarted\nmore\nstart.sh\n"
    finally:
        engine.close(box)
    assert engine.build(context, "/app", 120, allowed=False) == name  # it exists, so nothing is built
    assert engine.build(folder("RUN echo other > /opt/kept"), "/app", 120, allowed=True) != name


def test_hard_links_of_the_work_folder_are_kept(engine: DockerWorkspaces) -> None:
    context = folder("RUN mkdir -p /app/data && echo kept > /app/data/first && ln /app/data/first /app/second")
    box = engine.open(BoxSpec(image=engine.build(context, "/app", 120, allowed=True), seeded=True))
    try:
        result = engine.execute(box, "find . -samefile second | sort; echo more >> second; cat data/first", 10)
        assert result.output == "./data/first\n./second\nkept\nmore\n"
    finally:
        engine.close(box)


def test_folders_of_the_image_do_not_decide_the_modes_of_writable_ones(engine: DockerWorkspaces) -> None:
    name = engine.build(
        folder("RUN mkdir -p -m 777 /verify && mkdir -p /work && chmod 700 /work && chmod 755 /tmp"),
        "/app",
        120,
        allowed=True,
    )
    box = engine.open(BoxSpec(image=name, workdir="/work", verify=True))
    try:
        result = engine.execute(box, "stat -c '%n %a %u' /work /tmp /verify", 10)
        assert result.output == "/work 755 1000\n/tmp 1777 0\n/verify 700 0\n"
    finally:
        engine.close(box)


def test_concurrent_builds_of_one_folder_build_it_once(engine: DockerWorkspaces) -> None:
    context = folder("RUN sleep 1; cat /proc/sys/kernel/random/uuid > /opt/unique")
    names: list[str] = []
    threads = [
        threading.Thread(target=lambda: names.append(DockerWorkspaces().build(context, "/app", 120, allowed=True)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client = containers.daemon()
    assert len(names) == 3
    assert len(client.images.list(name=names[0])) == 1
    client.close()


def test_failed_step_is_reported_with_its_output(engine: DockerWorkspaces) -> None:
    with pytest.raises(
        BuildFailed, match=r"(?s)returned a non-zero code: 7 \(Step [^\n]*exit 7\)\n.*the reason is here"
    ) as failure:
        steps = "RUN echo of an earlier step\nRUN echo the reason is here >&2; exit 7"
        engine.build(folder(steps), "/app", 120, allowed=True)
    assert "\x1b" not in str(failure.value)
    assert "earlier" not in str(failure.value)


def test_invalid_dockerfile_is_a_failed_build(engine: DockerWorkspaces) -> None:
    with pytest.raises(BuildFailed, match="LAUNCH"):
        engine.build(folder("LAUNCH x"), "/app", 120, allowed=True)


@pytest.mark.exhaustive
def test_build_beyond_its_time_is_ended(engine: DockerWorkspaces) -> None:
    context = folder("RUN echo begun; sleep 3456")
    with pytest.raises(
        BuildFailed, match=r"did not end within its time \(limits.build_s\); it was at Step .*sleep 3456"
    ):
        engine.build(context, "/app", 3, allowed=True)
    client = containers.daemon()
    deadline = threading.Event()
    for _ in range(40):
        left = [item for item in client.containers.list(ignore_removed=True) if "sleep 3456" in str(item.attrs["Args"])]
        if not left:
            break
        deadline.wait(0.5)
    client.close()
    assert left == []


def test_missing_base_image_is_not_a_fault_of_the_bundle(engine: DockerWorkspaces) -> None:
    context = {"Dockerfile": b"FROM localhost:1/nothing-like-this:1\n"}
    with pytest.raises(SandboxUnavailable, match="docker pull localhost:1/nothing-like-this:1"):
        engine.build(context, "/app", 120, allowed=True)


def test_process_without_permission_does_not_build(engine: DockerWorkspaces) -> None:
    with pytest.raises(SandboxUnavailable, match="LLMEVAL_WORKSPACE_BUILDS=1"):
        engine.build(folder("RUN true"), "/app", 120, allowed=False)
