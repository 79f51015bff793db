"""The docker backend: isolation, replacement and removal of its containers."""

import io
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import docker
import pytest

from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from sandbox.connections.transports import Transport, TransportOptions
from sandbox.connections.transports import docker as backend
from sandbox.connections.transports.docker import LABEL, OWNER_LABEL, DockerTransport, owner, sweep
from sandbox.errors import SandboxUnavailable
from sandbox.limits import Limits
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.results import Status
from tests.sandbox import containers
from tests.sandbox.conformance.case import ADD_TESTS, function_job, program_job

pytestmark = pytest.mark.alone

JUDGED = function_job("def add(a, b): return a + b\n", ADD_TESTS["judged"])
LITERAL = function_job("def add(a, b): return a + b\n", ADD_TESTS["literal"])


@pytest.fixture(scope="module")
def api() -> Iterator[docker.APIClient]:
    client = containers.daemon()
    yield client.api
    client.close()


@pytest.fixture
def pool(api: docker.APIClient) -> Iterator[Pool]:
    transport = TransportOptions(image=containers.image(), memory_mb=700, cpus=0.5)
    with Pool.open(PoolOptions(backend="docker", workers=1, transport=transport)) as opened:
        yield opened


def ours(api: docker.APIClient) -> list[dict[str, Any]]:
    """The containers of this process's engines, inspected."""
    found = api.containers(all=True, filters={"label": f"{OWNER_LABEL}={owner()}"})
    return [api.inspect_container(container["Id"]) for container in found]


@pytest.mark.docker
def test_container_has_no_network_root_capabilities_or_writable_files(pool: Pool, api: docker.APIClient) -> None:
    (found,) = ours(api)
    host = found["HostConfig"]
    assert found["Config"]["User"] == "65534:65534"
    assert host["NetworkMode"] == "none" and not host["Privileged"]
    assert host["CapDrop"] == ["ALL"] and not host["CapAdd"]
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert host["ReadonlyRootfs"] and list(host["Tmpfs"]) == ["/tmp"]
    assert not host["Binds"] and not host.get("Mounts") and not found["Mounts"]
    assert host["IpcMode"] == "none" and not host["PidMode"]


@pytest.mark.docker
def test_container_has_limits_and_no_log_and_ends_with_its_engine(pool: Pool, api: docker.APIClient) -> None:
    (found,) = ours(api)
    host = found["HostConfig"]
    assert (host["Memory"], host["MemorySwap"], host["NanoCpus"]) == (700 << 20, 700 << 20, 500_000_000)
    assert 0 < host["PidsLimit"] <= 256
    assert host["LogConfig"]["Type"] == "none"
    assert host["AutoRemove"] and found["Config"]["StdinOnce"]


@pytest.mark.docker
def test_container_cpus_are_limited_to_those_of_the_machine(api: docker.APIClient) -> None:
    there = api.info()["NCPU"]
    options = TransportOptions(image=containers.image(), cpus=there + 7)
    with Pool.open(PoolOptions(backend="docker", workers=1, transport=options)):
        (found,) = ours(api)
        assert found["HostConfig"]["NanoCpus"] == there * 1_000_000_000


@pytest.mark.docker
def test_container_runs_image_by_id_with_engine_as_process_1(pool: Pool, api: docker.APIClient) -> None:
    (found,) = ours(api)
    assert found["Config"]["Image"] == api.inspect_image(containers.image())["Id"]
    assert found["Path"] == "python3" and found["Args"][-1] == "/usr/lib/llmeval/engine"
    (process, *_) = api.top(found["Id"])["Processes"]
    assert process[-1].endswith("/usr/lib/llmeval/engine")


@pytest.mark.docker
def test_container_has_no_environment_variables_of_the_client(
    api: docker.APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLMEVAL_PLANTED_KEY", "planted")
    options = PoolOptions(backend="docker", workers=1, transport=TransportOptions(image=containers.image()))
    with Pool.open(options):
        (found,) = ours(api)
        assert "planted" not in str(found["Config"]["Env"])


@pytest.mark.docker
def test_code_and_judge_run_in_different_containers(pool: Pool, api: docker.APIClient) -> None:
    assert pool.run(LITERAL).status is Status.PASSED
    (of_code,) = ours(api)
    assert pool.run(JUDGED).status is Status.PASSED
    (of_judge,) = (found for found in ours(api) if found["Id"] != of_code["Id"])
    ways_in = {"NetworkMode": f"container:{of_code['Id']}"}  # which has no network itself; there the engines meet
    assert of_judge["HostConfig"] == of_code["HostConfig"] | ways_in
    assert of_judge["Config"]["User"] == of_code["Config"]["User"] == "65534:65534"


@pytest.mark.docker
def test_candidate_and_judge_containers_are_linked(pool: Pool) -> None:
    for _ in range(3):
        assert pool.run(JUDGED).status is Status.PASSED
    ((pair, _),) = pool.engines.idle
    assert pair.can_link and pair.test_judge is not pair.candidate


@pytest.mark.docker
def test_frames_are_relayed_without_link(api: docker.APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DockerTransport, "create_test_judge_transport", Transport.create_test_judge_transport)
    options = PoolOptions(backend="docker", workers=1, transport=TransportOptions(image=containers.image()))
    with Pool.open(options) as opened:
        assert opened.run(JUDGED).status is Status.PASSED
        assert (
            opened.run(FunctionJob("def add(a, b): return 0\n", "add", ADD_TESTS["judged"])).status is Status.ASSERTION
        )
        assert [found["HostConfig"]["NetworkMode"] for found in ours(api)] == ["none", "none"]
        ((pair, _),) = opened.engines.idle
        assert not pair.can_link


@pytest.mark.docker
def test_candidate_engine_that_dies_is_replaced(pool: Pool, api: docker.APIClient) -> None:
    assert pool.run(JUDGED).status is Status.PASSED
    before = {found["Id"] for found in ours(api)}
    for container in before:
        api.kill(container)
    assert pool.run(JUDGED).status is Status.PASSED
    assert not before & {found["Id"] for found in ours(api)}


@pytest.mark.docker
@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("while True: pass\n", Status.TIMEOUT),
        ("import os\nos.write(3, b'\\0\\0\\0\\2V{}')\nos.write(3, b'\\0\\0\\0\\1Vx')\n", Status.TAMPERED),
    ],
    ids=["timeout", "tampering"],
)
def test_container_is_replaced_after(pool: Pool, api: docker.APIClient, code: str, status: Status) -> None:
    (before,) = ours(api)
    job = FunctionJob(code + "def f(): return 1\n", "f", [{"expect": 1}], limits=Limits(cpu_s=1, wall_s=2))
    assert pool.run(job).status is status
    assert pool.run(LITERAL).status is Status.PASSED
    assert before["Id"] not in [found["Id"] for found in ours(api)]


@pytest.mark.docker
def test_container_is_replaced_after_enough_runs(
    pool: Pool, api: docker.APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DockerTransport, "max_runs", 3)
    (before,) = ours(api)
    for _ in range(3):
        assert pool.run(LITERAL).status is Status.PASSED
    assert pool.run(LITERAL).status is Status.PASSED
    assert before["Id"] not in [found["Id"] for found in ours(api)]


@pytest.mark.docker
def test_files_are_sent_to_a_container_over_the_stream(pool: Pool) -> None:
    job = program_job("print(len(open('in.bin', 'rb').read()))", files={"in.bin": bytes(1_000_000)})
    assert pool.run(job).stdout == "1000000\n"


@pytest.mark.docker
def test_image_with_packages_offers_them_to_code_and_tests() -> None:
    transport = TransportOptions(image=containers.image("packages"))
    options = PoolOptions(backend="docker", workers=1, packages=("/opt/packages",), transport=transport)
    job = FunctionJob(
        "import numpy as np\nimport pandas\ndef double(x): return (np.array(x) * 2).tolist()\n",
        "double",
        "import numpy as np\nimport pytest\n"
        "def check(candidate):\n    for x in ([1, 2], [3]):\n"
        "        assert np.allclose(candidate(x), np.array(x) * 2)\n",
    )
    with Pool.open(options) as opened:
        outcome = opened.run(job)
    assert outcome.status is Status.PASSED, outcome


@pytest.mark.docker
def test_closed_pool_leaves_no_container(api: docker.APIClient) -> None:
    options = PoolOptions(backend="docker", workers=1, transport=TransportOptions(image=containers.image()))
    with Pool.open(options) as pool:
        pool.run(JUDGED)
        assert len(ours(api)) == 2
    assert ours(api) == []


@pytest.mark.docker
def test_missing_image_is_reported_with_build_command(api: docker.APIClient) -> None:
    options = PoolOptions(backend="docker", transport=TransportOptions(image="llmeval-sandbox:nowhere"))
    with pytest.raises(SandboxUnavailable, match=r"llmeval-sandbox:nowhere .* `make sandbox-image`"):
        Pool.open(options)


@pytest.mark.docker
def test_unknown_runtime_is_reported_with_the_daemons_reason(api: docker.APIClient) -> None:
    transport = TransportOptions(image=containers.image(), runtime="no-such-runtime")
    with pytest.raises(SandboxUnavailable, match="no-such-runtime"):
        Pool.open(PoolOptions(backend="docker", transport=transport))
    assert ours(api) == []


def test_missing_docker_engine_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(SandboxUnavailable, match="Is the Docker engine running"):
        Pool.open(PoolOptions(backend="docker"))


def _labelled(api: docker.APIClient, owned_by: str) -> str:
    """A container that was made and never started."""
    made = api.create_container(containers.image(), labels={LABEL: "engine", OWNER_LABEL: owned_by})
    return str(made["Id"])


@pytest.mark.docker
def test_sweep_removes_only_containers_of_ended_owners(api: docker.APIClient) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    host = socket.gethostname()
    orphan = _labelled(api, f"{host}/{gone.pid}/1")
    reborn = _labelled(api, f"{host}/{os.getpid()}/1")  # the same pid, but another process
    mine, elsewhere = _labelled(api, owner()), _labelled(api, f"other-{host}/1/1")
    try:
        swept = sweep(api)
        assert {orphan, reborn} <= set(swept)
        assert not {mine, elsewhere} & set(swept)
    finally:
        for container in (orphan, reborn, mine, elsewhere):
            backend.remove(api, container)


@pytest.mark.docker
def test_sweep_removes_old_containers_that_never_started(
    api: docker.APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = _labelled(api, "other-host/1/1")
    monkeypatch.setattr(backend, "_ABANDONED_S", -10)
    assert elsewhere in sweep(api)


def test_attached_output_is_decoded_for_any_chunking() -> None:
    ours_end, daemon_end = socket.socketpair()
    transport = DockerTransport(TransportOptions())
    transport._stream = ours_end
    pieces = b"".join(
        struct.pack(">BxxxL", kind, len(text)) + text for kind, text in ((1, b"ab"), (2, b"no"), (1, b"cd"))
    )
    for cut in range(1, len(pieces)):
        daemon_end.sendall(pieces[:cut])
        taken = transport.read() if cut >= 10 else b""
        daemon_end.sendall(pieces[cut:])
        while len(taken) < 4:
            taken += transport.read()
        assert taken == b"abcd"
    daemon_end.close()
    assert transport.read() == b""
    transport.detach_after_fork()


@pytest.mark.docker
def test_image_of_another_release_is_rejected(api: docker.APIClient) -> None:
    tag = f"llmeval-sandbox:test-stale-{os.getpid()}"
    changed = "/usr/lib/llmeval/engine/protocol/frames.py"
    recipe = f"FROM {containers.image()}\nUSER root\nRUN echo '# as released before' >> {changed}\n"
    list(api.build(fileobj=io.BytesIO(recipe.encode()), tag=tag, rm=True, forcerm=True))
    try:
        with pytest.raises(SandboxUnavailable, match=rf"{tag} contains the engine \w{{12}}, .* `make sandbox-image`"):
            Pool.open(PoolOptions(backend="docker", workers=1, transport=TransportOptions(image=tag)))
    finally:
        api.remove_image(tag, force=True)
    assert ours(api) == []


@pytest.mark.docker
def test_without_landlock_and_filter_no_process_can_trace_another_of_its_user(api: docker.APIClient) -> None:
    transport = TransportOptions(image=containers.image())
    options = PoolOptions(backend="docker", strongest="C", accept=frozenset("C"), workers=1, transport=transport)
    attach = "import ctypes, os\nprint(ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0))"
    with Pool.open(options) as pool:
        assert pool.run(program_job(attach)).stdout == "-1\n"
