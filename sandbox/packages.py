"""The packages that an environment may name for its code, and their installation for the local backend."""

import importlib.machinery
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

# The image of `make sandbox-image PACKAGES=1` installs the same file.
REQUIREMENTS = Path(__file__).resolve().parent / "image" / "packages.txt"


class InstallationFailed(Exception):
    """The packages could not be installed; the message is the reason."""


@cache
def get_versions() -> Mapping[str, str]:
    """Return the version of each package that an environment may name."""
    pins = (line.partition("==") for line in REQUIREMENTS.read_text(encoding="utf-8").split())
    return {name: version for name, _, version in pins}


def find_installed(folder: Path) -> list[str]:
    """Return the names of these packages that can be imported from *folder*."""
    return [name for name in get_versions() if importlib.machinery.PathFinder.find_spec(name, [str(folder)])]


def install_packages(folder: Path, pip_options: Sequence[str] = ()) -> None:
    """Install all packages into *folder*, in the place of its former content. Raises InstallationFailed or OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    try:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["--only-binary", ":all:", "--target", str(fresh), "-r", str(REQUIREMENTS), *pip_options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise InstallationFailed(f"pip failed: {done.stderr.strip()[-2000:]}")
        fresh.chmod(0o755)  # runs have another user
        if folder.exists():
            shutil.rmtree(folder)
        fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
