"""Detection of isolation: a mechanism is missing only if the system denies it; a mistake of the engine raises."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from sandbox.client.self_test import Attack, SelfTest
from sandbox.engine.isolation import detection, landlock, scratch, seccomp, syscalls
from sandbox.verdicts.jobs import ProgramJob

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Only Linux has anything to survey.")


def no() -> None:
    raise PermissionError(1, "Operation not permitted")


def mistake() -> None:
    {}["x"]


def test_denied_mechanism_is_missing_with_reason() -> None:
    assert "Operation not permitted" in detection.try_in_fork(no)
    assert detection.try_in_fork(lambda: None) == ""


def test_mistake_in_attempt_raises() -> None:
    with pytest.raises(RuntimeError, match="KeyError"):
        detection.try_in_fork(mistake)


def test_machine_with_namespaces_and_landlock_reaches_tier_a() -> None:
    unshare = shutil.which("unshare")
    tried = [str(unshare), "--user", "--map-root-user", "--mount", "--pid", "--fork", "true"]
    if unshare is None or subprocess.run(tried, capture_output=True).returncode or not landlock.abi():
        pytest.skip("This machine gives no user namespaces, or no Landlock.")
    assert seccomp.works()
    with Pool.open(PoolOptions(backend="local", accept=frozenset("ABC"))) as pool:
        assert (pool.tier, pool.self_test.missing) == ("A", {})


def test_remove_tree_handles_any_depth_and_mode(tmp_path: object) -> None:
    deep = path = f"{tmp_path}/run"
    subprocess.run(["mkdir", path], check=True)
    for _ in range(300):
        deep += "/directory"
        subprocess.run(["mkdir", deep], check=True)
        if len(deep) > 3000:
            break
    subprocess.run(["ln", "-s", str(tmp_path), f"{path}/link"], check=True)
    subprocess.run(["touch", f"{tmp_path}/outside", f"{path}/file"], check=True)
    subprocess.run(["chmod", "000", f"{path}/directory"], check=True)
    scratch.remove_tree(path)
    left = subprocess.run(["ls", str(tmp_path)], capture_output=True, text=True).stdout.split()
    assert left == ["outside"]


@pytest.mark.parametrize("version", [1, 3])
def test_landlock_abi_option_limits_the_version(version: int) -> None:
    if landlock.abi() < version:
        pytest.skip(f"This kernel has Landlock {landlock.abi()}.")
    options = PoolOptions(backend="local", strongest="B", landlock_abi=version, accept=frozenset("ABC"), workers=1)
    code = "import os\nos.mkdir('x')\nopen('file', 'w').close()\nos.rename('file', 'x/file')\n"
    with Pool.open(options) as pool:
        assert pool.tier == "B"
        outcome = pool.run(ProgramJob(code))
    # Version 1 lets nobody move a file to another directory; later ones do where rules allow it.
    assert ("Invalid cross-device link" in outcome.message, outcome.ok) == (version == 1, version > 1)


def test_readable_file_is_not_truncated_below_landlock_3(tmp_path: Path) -> None:
    if not landlock.abi():
        pytest.skip("This kernel has no Landlock.")
    shared = tmp_path / "shared"
    shared.write_text("kept")

    def attack() -> None:
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        landlock.restricting(landlock.ruleset(2, [str(tmp_path)], [], []))()
        program = seccomp.build(own_pid=os.getpid(), processes=False, metadata=False, signals=False, truncation=False)
        seccomp.installing(program)()
        for mode in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_ACCMODE):
            try:
                os.open(shared, mode | os.O_TRUNC)
            except OSError:
                continue
        os.truncate(shared, 0)

    assert "not permitted" in detection.try_in_fork(attack)
    assert shared.read_text() == "kept"


def test_successful_attack_lowers_the_tier() -> None:
    denied = [Attack("truncate a host file", True, ""), Attack("see that a host file exists", False, "")]
    assert SelfTest("B", {}, denied).tier == "B"
    for name in ("truncate a host file", "have another process signalled"):
        tested = SelfTest("B", {}, [*denied, Attack(name, False, "succeeded")])
        assert (tested.tier, [attack.name for attack in tested.find_breaches("B")]) == ("C", [name])
