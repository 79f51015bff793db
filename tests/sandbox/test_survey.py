"""What an engine finds out about its machine: weaker only where the system says no, never by a mistake of its own."""

import shutil
import subprocess
import sys

import pytest

from sandbox.engine import landlock, lockdown, seccomp
from sandbox.pool import Pool, PoolOptions

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Only Linux has anything to survey.")


def no() -> None:
    raise PermissionError(1, "Operation not permitted")


def mistake() -> None:
    {}["x"]


def test_what_the_system_refuses_is_missing_with_its_reason() -> None:
    assert "Operation not permitted" in lockdown._try(no)
    assert lockdown._try(lambda: None) == ""


def test_a_mistake_is_not_taken_for_a_refusal() -> None:
    with pytest.raises(RuntimeError, match="KeyError"):
        lockdown._try(mistake)


def test_a_machine_with_namespaces_and_landlock_reaches_tier_a() -> None:
    unshare = shutil.which("unshare")
    tried = [str(unshare), "--user", "--map-root-user", "--mount", "--pid", "--fork", "true"]
    if unshare is None or subprocess.run(tried, capture_output=True).returncode or not landlock.abi():
        pytest.skip("This machine gives no user namespaces, or no Landlock.")
    assert seccomp.works()
    with Pool.open(PoolOptions(backend="local", accept=frozenset("ABC"))) as pool:
        assert (pool.tier, pool.selftest.missing) == ("A", {})


def test_a_tree_of_any_depth_and_mode_is_removed(tmp_path: object) -> None:
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
    lockdown.remove_tree(path)
    left = subprocess.run(["ls", str(tmp_path)], capture_output=True, text=True).stdout.split()
    assert left == ["outside"]
