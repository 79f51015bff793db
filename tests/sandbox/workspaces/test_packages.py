"""Packages of environments in boxes: numpy, pandas and pytest, which nothing in a box can change."""

import io
from collections.abc import Iterator

import docker
import pytest

from sandbox.errors import SandboxUnavailable
from sandbox.workspaces import packages as packages_module
from sandbox.workspaces.base import BoxLimits, BoxSpec, Handle, PackagesUnsuitable, WorkspaceEngine
from sandbox.workspaces.docker_api import PACKAGES_LABEL
from sandbox.workspaces.packages import check_image, check_packages
from tests.sandbox import containers
from tests.sandbox.workspaces.engines import make_engine

pytestmark = pytest.mark.docker
LIMITS = BoxLimits(pids=48, disk_mb=16, memory_mb=256, output_kb=4)
NAMES = ["numpy", "pandas", "pytest"]
IMPORTS = "import numpy, pandas, pytest; print(numpy.__file__, numpy.arange(4).sum())"


def remove_image(name: str) -> None:
    """Remove an image, and the containers with its packages."""
    client = docker.from_env()
    for container in client.containers.list(
        all=True, filters={"label": f"{PACKAGES_LABEL}={client.images.get(name).id}"}
    ):
        container.remove(v=True)
    client.images.remove(name)
    client.close()


@pytest.fixture(scope="module", params=containers.ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[WorkspaceEngine]:
    made = make_engine(request.param, packages_image=containers.image("packages"))
    yield made
    made.sweep()


def spec(engine: WorkspaceEngine, **values: object) -> BoxSpec:
    options = {"image": containers.image(), "limits": LIMITS, "packages": engine.find_packages(), **values}
    return BoxSpec(**options)  # type: ignore[arg-type]


@pytest.fixture
def box(engine: WorkspaceEngine) -> Iterator[Handle]:
    handle = engine.open(spec(engine, verify=True))
    yield handle
    engine.close(handle)


def test_commands_of_the_agent_and_of_tests_import_packages(engine: WorkspaceEngine, box: Handle) -> None:
    for root in (False, True):
        result = engine.execute(box, f"python3 -c '{IMPORTS}'", 60, root=root)
        assert (result.exit_code, result.output) == (0, "/opt/packages/numpy/__init__.py 6\n"), result.output
    engine.write(box, {"test_it.py": b"def test_it():\n    assert 1 + 1 == 2\n"})
    assert "1 passed" in engine.execute(box, "python3 -m pytest -q", 60).output


def test_box_without_packages_has_none(engine: WorkspaceEngine) -> None:
    handle = engine.open(spec(engine, packages=""))
    result = engine.execute(handle, "python3 -c 'import numpy'; ls /opt/packages; echo \"<$PYTHONPATH>\"", 60)
    engine.close(handle)
    assert "No module named 'numpy'" in result.output
    assert result.output.endswith("<>\n")
    assert "numpy\n" not in result.output


@pytest.mark.exhaustive
def test_packages_do_not_count_for_the_disk_and_are_in_every_box(engine: WorkspaceEngine) -> None:
    for _ in range(2):  # the second box finds them after the first was closed
        handle = engine.open(spec(engine))
        result = engine.execute(
            handle, f"head -c 15000000 /dev/zero > /app/full && python3 -c '{IMPORTS}' && du -sm /opt/packages", 60
        )
        engine.close(handle)
        assert result.exit_code == 0, result.output
        assert int(result.output.split()[-2]) > LIMITS.disk_mb


def test_image_is_checked_by_an_import(engine: WorkspaceEngine, box: Handle) -> None:
    check_image(engine, containers.image(), NAMES)
    check_packages(engine, box, containers.image(), engine.find_packages(), NAMES)
    with pytest.raises(
        PackagesUnsuitable, match=r"its Python 3\.11 \(cpython-311-.*\) cannot import no_such: .*No module"
    ):
        check_packages(engine, box, "x", engine.find_packages(), ["no_such"])


ATTACKS = """
echo evil > /opt/packages/numpy/__init__.py
echo evil > /opt/packages/json.py
rm /opt/packages/pytest/__init__.py
mv /opt/packages /opt/other
mv /opt/packages/numpy /opt/packages/other
rmdir /opt/packages
rm -r /opt/packages
ln -sfn /tmp /opt/packages/numpy
chmod u+w /opt/packages/pytest/__init__.py
touch /opt/packages/pytest/__init__.py
ln /opt/packages/pytest/__init__.py /opt/packages/other.py
mount -o remount,rw /opt/packages
mount -t tmpfs none /opt/packages
umount /opt/packages
unshare -Ur true
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("root", [False, True])
def test_packages_cannot_be_changed(engine: WorkspaceEngine, box: Handle, root: bool) -> None:
    for attack in ATTACKS.strip().splitlines():
        assert engine.execute(box, attack, 20, root=root).exit_code != 0, attack
    other = engine.open(spec(engine))
    try:
        for handle in (box, other):
            assert engine.execute(handle, f"python3 -c '{IMPORTS}'", 60).output.endswith(" 6\n")
    finally:
        engine.close(other)


@pytest.mark.exhaustive
def test_packages_come_before_those_of_the_agent_also_for_tests(engine: WorkspaceEngine, box: Handle) -> None:
    """A file of the agent is imported first only from the folder that Python itself puts first."""
    engine.write(box, {"/tmp/evil/numpy.py": b"print('evil')\n", "numpy.py": b"print('evil')\n"})
    engine.execute(box, "mkdir -p ~/.local/lib/python3.11/site-packages && cp numpy.py $_", 20)
    for command in (
        "cd / && python3 -c",
        "cd /verify && python3 -c",
        "cd / && PYTHONPATH=$PYTHONPATH:/tmp/evil python3 -c",
    ):
        output = engine.execute(box, f"{command} '{IMPORTS}'", 60, root=True).output
        assert output == "/opt/packages/numpy/__init__.py 6\n", command


@pytest.mark.exhaustive
def test_packages_are_no_part_of_artifacts_and_snapshots(engine: WorkspaceEngine, box: Handle) -> None:
    engine.execute(box, "ln -s /opt/packages all; ln -s /opt/packages/pytest/__init__.py link.py; echo x > kept", 20)
    found = engine.export_artifacts(box, ["/app"], 1)
    assert [item.path for item in found.entries] == ["/app", "/app/kept"]
    assert sorted(found.refused) == ["/app/all", "/app/link.py"]
    target = io.BytesIO()
    assert engine.snapshot(box, "/app", target, 1).size < 10_000
    target.seek(0)
    again = engine.open_snapshot(spec(engine), target, 1)
    output = engine.execute(again, f"cat kept; python3 -c '{IMPORTS}'", 60).output
    engine.close(again)
    assert output.startswith("x\n")
    assert output.endswith(" 6\n")


@pytest.mark.exhaustive
def test_packages_for_another_python_are_refused_with_both_versions(engine: WorkspaceEngine, tmp_path: object) -> None:
    steps = [
        f"FROM {containers.image()}",
        "USER root",
        "RUN mkdir -p /opt/packages/numpy && touch /opt/packages/numpy/__init__.py"
        " /opt/packages/numpy/core.cpython-312-x86_64-linux-gnu.so",
    ]
    client = containers.daemon()
    client.images.build(fileobj=io.BytesIO("\n".join(steps).encode()), tag="llmeval-sandbox:test-other-python")
    client.close()
    other = make_engine(
        "docker" if "Docker" in type(engine).__name__ else "native", packages_image="llmeval-sandbox:test-other-python"
    )
    try:
        with pytest.raises(SandboxUnavailable) as refused:
            check_image(other, containers.image(), ["numpy"])
    finally:
        remove_image("llmeval-sandbox:test-other-python")
    assert str(refused.value) == (
        f"The image {containers.image()} cannot be used with `packages`: it has Python 3.11 "
        "(cpython-311-x86_64-linux-gnu), and numpy are for Python 3.12 (cpython-312-x86_64-linux-gnu). Use an image "
        "with the Python of the packages, or install them in the image and leave out `packages`."
    )


def test_missing_image_of_packages_is_reported_with_its_remedy() -> None:
    for name in ("docker", "native"):
        engine = make_engine(name, packages_image="no-such-packages:1")
        with pytest.raises(SandboxUnavailable, match="no-such-packages:1"):
            engine.find_packages()


def test_remedy_of_the_default_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.workspaces.docker_api.PACKAGES_IMAGE", "no-such-packages:1")
    engine = make_engine("docker", packages_image="no-such-packages:1")
    with pytest.raises(SandboxUnavailable, match=r"make sandbox-image PACKAGES=1"):
        engine.find_packages()


@pytest.mark.exhaustive
def test_each_image_is_tried_once(engine: WorkspaceEngine, box: Handle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages_module, "_suitable", set())
    given = (containers.image(), engine.find_packages(), ["pytest"])
    check_packages(engine, box, *given)
    engine.close(box)
    check_packages(engine, box, *given)  # would fail: the box is closed
