"""Packages that environments can list: a missing one is an error of the environment, never a wrong answer."""

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from sandbox import packages
from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from sandbox.connections.transports import TransportOptions
from sandbox.errors import SandboxUnavailable
from sandbox.verdicts.jobs import CallJob, FunctionJob, Job, ProgramJob
from sandbox.verdicts.results import Status

CODE = "import numpy as np\n\ndef mean(xs):\n    return np.mean(np.array(xs))\n"
PLAIN = "def mean(xs):\n    return sum(xs) / len(xs)\n"
TESTS = "import numpy as np\n\ndef check(candidate):\n    assert np.allclose(candidate([1, 2, 6]), 3.0)\n"
INNER = (
    "def check(candidate):\n    assert candidate([1, 2, 6]) == 3\n"
    "    import numpy as np\n    assert np.pi > candidate([1])\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with numpy as this environment has it, as if `sandbox_packages install` had put it there."""
    found = importlib.util.find_spec("numpy")
    if found is None or not found.submodule_search_locations:
        pytest.skip("numpy is not installed")
    source = Path(found.submodule_search_locations[0])
    made = tmp_path_factory.mktemp("packages")
    for name in ("numpy", "numpy.libs"):
        if (source.parent / name).is_dir():
            shutil.copytree(source.parent / name, made / name)
    for parent in (made, *made.parents):  # runs have a user of their own
        if parent.owner() == Path.home().owner() and str(parent).startswith("/tmp/pytest"):
            parent.chmod(0o755)
    return made


def opened(folder: Path) -> Pool:
    options = PoolOptions(
        backend="local", accept=frozenset("ABC"), workers=1, transport=TransportOptions(packages=str(folder))
    )
    return Pool.open(options)


@pytest.fixture
def pool(folder: Path) -> Iterator[Pool]:
    with opened(folder) as made:
        yield made


def test_code_and_tests_can_import_a_required_package(pool: Pool) -> None:
    outcome = pool.with_packages(["numpy"]).run(FunctionJob(code=CODE, entry_point="mean", tests=TESTS))
    assert (outcome.status, outcome.message) == (Status.PASSED, "All 1 tests passed.")


def test_other_jobs_of_the_pool_cannot_import_packages(pool: Pool) -> None:
    pool.with_packages(["numpy"])
    outcome = pool.run(FunctionJob(code=CODE, entry_point="mean", tests="assert mean([1]) == 1"))
    assert outcome.status is Status.EXCEPTION
    assert "numpy" in outcome.message


@pytest.mark.parametrize("tests", [TESTS, INNER], ids=["at the top", "after an assert"])
@pytest.mark.parametrize("trust", ["isolated", "in_process"])
def test_package_missing_in_tests_leaves_response_unscored(pool: Pool, tests: str, trust: str) -> None:
    outcome = pool.run(FunctionJob(code=PLAIN, entry_point="mean", tests=tests, trust=trust))  # type: ignore[arg-type]
    assert outcome.status is Status.BAD_TESTS
    assert "numpy" in outcome.message
    assert "`manage.py sandbox_packages install`" in outcome.message


@pytest.mark.parametrize("module", ["numpy", "numpy.linalg"])
def test_code_that_imports_an_unlisted_package_fails_with_the_key_that_lists_it(pool: Pool, module: str) -> None:
    advice = "The `packages:` of the environment do not include numpy."
    jobs: list[Job] = [
        FunctionJob(code=f"import {module}\n{PLAIN}", entry_point="mean", tests="assert mean([2]) == 2"),
        FunctionJob(
            code="def f(x):\n    import numpy\n", entry_point="f", tests="def check(f):\n    f(1)\n    assert 1\n"
        ),
        CallJob(files={"tool.py": f"import {module}\ndef f(): pass\n".encode()}, module="tool.py", function="f"),
        ProgramJob(f"import {module}"),
    ]
    for job in jobs:
        outcome = pool.run(job)
        assert outcome.status is Status.EXCEPTION and outcome.message.endswith(advice), outcome


def test_missing_module_that_is_no_package_is_not_explained(pool: Pool) -> None:
    job = FunctionJob(code="import nump", entry_point="f", tests="assert f(1)")
    assert "packages:" not in pool.run(job).message


def test_tests_that_handle_a_missing_package_are_run(pool: Pool) -> None:
    tests = "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n\ndef check(f):\n    assert f([2]) == 2\n"
    assert pool.run(FunctionJob(code=PLAIN, entry_point="mean", tests=tests)).status is Status.PASSED


def test_missing_package_is_reported_with_install_command(tmp_path: Path) -> None:
    with opened(tmp_path / "nothing") as pool, pytest.raises(SandboxUnavailable) as refused:
        pool.with_packages(["numpy"])
    assert "run `manage.py sandbox_packages install`" in str(refused.value)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str]:
    """Return the exit code and the message of a refused `sandbox_packages`."""
    with pytest.raises(SystemExit) as left:
        call_command("sandbox_packages", *arguments)
    return left.value.code, capsys.readouterr().err


def test_failed_installation_keeps_installed_packages(
    tmp_path: Path, settings: object, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "kept.py").write_text("")
    settings.SANDBOX_PACKAGES = str(folder)  # type: ignore[attr-defined]
    empty = tmp_path / "wheels"
    empty.mkdir()
    code, message = refusal(capsys, "install", "--wheels", str(empty))
    assert code == 3
    assert message.startswith("pip failed: ")
    assert message.endswith(f"Nothing was changed in {folder}.\n")
    assert os.listdir(folder) == ["kept.py"]
    assert sorted(os.listdir(tmp_path)) == ["packages", "wheels"]


def test_wheels_must_be_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    none = tmp_path / "none"
    assert refusal(capsys, "install", "--wheels", str(none)) == (2, f"--wheels: {none} is not a directory.\n")


def test_wheels_are_rejected_by_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, message = refusal(capsys, "list", "--wheels", str(tmp_path))
    assert code == 2
    assert message == "--wheels belongs to `sandbox_packages install`; `list` installs nothing.\n"


def test_packages_list_shows_installed(folder: Path, settings: object, capsys: pytest.CaptureFixture[str]) -> None:
    settings.SANDBOX_PACKAGES = str(folder)  # type: ignore[attr-defined]
    call_command("sandbox_packages", "list")
    said = capsys.readouterr().out
    assert f"numpy {packages.get_versions()['numpy']}: installed" in said
    assert "pandas" in said and "not installed" in said


def test_numpy_testing_asserts_are_counted(pool: Pool) -> None:
    tests = "import numpy as np\n\ndef check(f):\n    np.testing.assert_allclose(f([1, 2]), 1.5 + 1e-9, atol=1e-6)\n"
    offering = pool.with_packages(["numpy"])
    assert offering.run(FunctionJob(code=PLAIN, entry_point="mean", tests=tests)).status is Status.PASSED
    wrong = offering.run(FunctionJob(code=PLAIN.replace("/", "*"), entry_point="mean", tests=tests))
    assert (wrong.status, wrong.passed, wrong.total) == (Status.ASSERTION, 0, 1)
