"""Root file systems of native boxes: the files of local images, copied out of the Docker engine once per digest."""

import fcntl
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import docker

from sandbox.connections.transports.local import interpreter
from sandbox.errors import SandboxUnavailable, SandboxUnreachable
from sandbox.workspaces.docker_api import connect, image_id, reported

_API_TIMEOUT_S = 60
_EXTRACT_S = 900
_KNOWN_S = 5.0  # asking the Docker engine takes as long as half of a reset
# Reads the archive in a process whose root is the folder, so that no link of the image leads out of it.
_EXTRACT = """
import encodings.idna, os, sys, tarfile, copy, stringprep
os.chroot(sys.argv[1]); os.chdir("/"); os.umask(0)
def kept(member, path):
    if member.isdev() and not member.isfifo():
        return None
    member.mode = (member.mode or 0) & 0o1777
    return member
with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as archive:
    archive.extractall(".", numeric_owner=True, filter=kept)
for path, text in (("/etc/hosts", "127.0.0.1 localhost workspace\\n"), ("/etc/resolv.conf", "")):
    if os.path.isfile(path) and not os.path.islink(path):
        with open(path, "w") as file:
            file.write(text)
"""


@dataclass(frozen=True, slots=True)
class Root:
    """The files of an image, its digest and its environment."""

    folder: Path
    digest: str
    environment: Mapping[str, str]


class RootCache:
    """Folder with the files of images by digest, and the digest that each name had last."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[str, float]] = {}  # name -> digest, and when it was found

    def get(self, image: str) -> Root:
        """Return the files of *image*. Without a Docker engine, an image that was copied before is used.

        Raises SandboxUnavailable.
        """
        digest = self._digest(image)
        folder = self._folder / digest.replace(":", "-")
        if not (folder / "config.json").exists():
            self._copy(digest, folder)
        found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return Root(folder / "root", digest, found["environment"])

    def _digest(self, image: str) -> str:
        if image.startswith("sha256:") and (self._folder / image.replace(":", "-") / "config.json").exists():
            return image
        digest, found = self._known.get(image, ("", 0.0))
        if digest and time.monotonic() - found < _KNOWN_S:
            return digest
        digest = self._find_digest(image)
        self._known[image] = digest, time.monotonic()
        return digest

    def _find_digest(self, image: str) -> str:
        name = self._folder / f"name-{sha256(image.encode()).hexdigest()}"
        try:
            with reported(), _docker_api() as api:
                digest = image_id(api, image)
        except SandboxUnreachable as error:
            if name.exists():
                return name.read_text(encoding="utf-8")
            raise SandboxUnavailable(
                f"The files of the image {image} are not on this machine, and are copied from a Docker engine: {error}"
            ) from error
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = name.with_name(f".{uuid4().hex}")
        written.write_text(digest, encoding="utf-8")
        written.rename(name)
        return digest

    def _copy(self, digest: str, folder: Path) -> None:
        with (self._folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (folder / "config.json").exists():
                return
            made = self._folder / f".{uuid4().hex}"
            try:
                (made / "root").mkdir(parents=True)
                with reported(), _docker_api() as api:
                    environment = _export(api, digest, made / "root")
                config = json.dumps({"environment": environment})
                (made / "config.json").write_text(config, encoding="utf-8")
                made.rename(folder)
            finally:
                shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _docker_api() -> Iterator[docker.APIClient]:
    api = connect("", _API_TIMEOUT_S)
    try:
        yield api
    finally:
        api.close()


def _export(api: docker.APIClient, digest: str, target: Path) -> dict[str, str]:
    """Extract the files of an image and return its environment."""
    inspect: Callable[[str], dict[str, dict[str, list[str] | None]]] = api.inspect_image  # it has no types
    environment = inspect(digest)["Config"].get("Env") or []
    container = api.create_container(digest, command=["/bin/true"], network_disabled=True)["Id"]
    try:
        command = [interpreter(), "-I", "-c", _EXTRACT, str(target)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, and its exit code and message follow
            for part in api.export(container):
                process.stdin.write(part)
        _, reason = process.communicate(timeout=_EXTRACT_S)
        if process.returncode != 0:
            last = reason.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise SandboxUnavailable(f"The files of the image {digest} cannot be extracted: {' '.join(last)}")
    finally:
        api.remove_container(container, force=True, v=True)
    target.chmod(0o755)
    return dict(item.split("=", 1) for item in environment if "=" in item)
