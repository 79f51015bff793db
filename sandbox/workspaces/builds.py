"""Images of workspaces that are built from a folder of a bundle, once for each content of the folder."""

import contextlib
import fcntl
import hashlib
import io
import json
import math
import os
import re
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import docker
from docker.errors import APIError, ImageNotFound
from urllib3.exceptions import HTTPError  # the package requests does not wrap it while a reply is read

from sandbox.connections.transports.docker import FAILURES, Keywords
from sandbox.errors import SandboxUnavailable, SandboxUnreachable
from sandbox.workspaces.base import SEED, VERIFY, BuildFailed
from sandbox.workspaces.docker_api import connect

REPOSITORY = "llmeval-workspace"
BUILD_LABEL = "llmeval.workspace.build"
MAX_IMAGE_MB = 8192

_FORMAT = 4  # part of the digest; raise it if the last layer changes
_MEMORY_MB = 2048  # of each step
_LOG_CHARACTERS = 3000
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # with which Docker marks what a step writes to stderr
_FAILED_S = 300.0  # seconds in which a failed build is not repeated
_FAILURES = (*FAILURES, HTTPError)

# Runs as the last step: checks Python, and keeps what the image has in the work folder, which a box's tmpfs hides.
_LAST_STEP = """
import os, shutil, stat, sys
assert sys.version_info >= (3, 9), "the image needs python3, 3.9 or later"
workdir, seed, verify = sys.argv[1:]
copies = {}  # of files with several names: their copies have several names too
def copy(source, target):
    status = os.lstat(source)
    first = copies.setdefault((status.st_dev, status.st_ino), target)
    if first == target:
        shutil.copy2(source, target)
    else:
        os.link(first, target)
if os.path.isdir(workdir) and not os.path.islink(workdir):
    shutil.copytree(workdir, seed, symlinks=True, copy_function=copy)
os.makedirs(workdir, exist_ok=True)
os.makedirs(seed, exist_ok=True)
for folder, names, files in os.walk(seed):
    os.chmod(folder, 0o755)
    for name in files:
        path = os.path.join(folder, name)
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode):
            os.chmod(path, 0o644 | (0o111 if mode & 0o100 else 0))
os.makedirs(verify, exist_ok=True)
# Scripts that expect their files and rewards here find them in scoring boxes; in others these links lead nowhere.
# Reference answers may need files in /solution; in other boxes nothing is there.
os.makedirs("/logs", exist_ok=True)
links = {"/tests": verify + "/tests", "/logs/verifier": verify + "/logs", "/solution": "/tmp/solution"}
for link, target in links.items():
    if not os.path.lexists(link):
        os.symlink(target, link)
"""
_LAST = """FROM {image}
USER 0:0
COPY last_step.py /.llmeval-last-step.py
RUN ["python3", "-I", "/.llmeval-last-step.py", {workdir}, {seed}, {verify}]
"""

_lock = threading.Lock()
_locks: dict[str, threading.Lock] = {}
_failed: dict[str, tuple[float, str]] = {}


def image_name(context: Mapping[str, bytes], workdir: str) -> str:
    """Return the name of the image that *context* is built to. It depends on the arguments only."""
    parts = [str(_FORMAT), workdir, *(f"{path}\0{_sha(context[path])}" for path in sorted(context))]
    return f"{REPOSITORY}:{_sha(chr(10).join(parts).encode())[:32]}"


@dataclass(slots=True)
class _BuildProgress:
    """What a Docker engine has reported of a build: the id of its image, the current step, and the step's output."""

    image: str = ""
    step: str = ""
    log: list[str] = field(default_factory=list)

    def add(self, part: Keywords) -> None:
        """Read one message of the engine. Raises BuildFailed or SandboxUnavailable if it reports an error."""
        text = _COLOURS.sub("", str(part.get("stream") or ""))
        if text.startswith("Step "):
            self.step = text.strip()
            self.log.clear()  # the reason of a failure is in the output of its own step
        else:
            self.log.append(text)
        self.image = (part.get("aux") or {}).get("ID", self.image)
        if error := part.get("error"):
            raise self._failure(str(error).strip())

    def _failure(self, error: str) -> Exception:
        if " : FROM " in self.step:
            base = self.step.partition(" : FROM ")[2].split()[0]
            return SandboxUnavailable(
                f"The base image {base} of this environment is not on this Docker engine and cannot be pulled: "
                f"{error}. Get it with `docker pull {base}`."
            )
        return BuildFailed(f"{error} ({self.step})\n{self.end_of_log}")

    @property
    def end_of_log(self) -> str:
        """The last characters of the output of the current step."""
        return "".join(self.log)[-_LOG_CHARACTERS:].strip()


class ImageBuilder:
    """Builds images on one Docker engine. `connect` returns a client of it that this thread may use."""

    def __init__(self, connect: Callable[[], docker.APIClient], address: str = "") -> None:
        """address: of the engine; "" for the one that the environment variables name."""
        self._connect = connect
        self._address = address

    def build(self, context: Mapping[str, bytes], workdir: str, seconds: float, *, allowed: bool) -> str:
        """Return the name of the image of *context*, which is built if the engine does not have it.

        Raises BuildFailed, SandboxUnavailable.
        """
        name = image_name(context, workdir)
        with _lock:
            lock = _locks.setdefault(name, threading.Lock())
        with lock:
            if self._exists(name):
                return name
            if not allowed:
                raise SandboxUnavailable(
                    f"The image {name} of this environment is not built yet, and this process may not build images. "
                    "Build it on this machine with `manage.py validate_bundle` or `manage.py eval`, or let workers "
                    "and web processes build images of uploaded environments with LLMEVAL_WORKSPACE_BUILDS=1."
                )
            failed_at, reason = _failed.get(name, (0.0, ""))
            if reason and time.monotonic() - failed_at < _FAILED_S:
                raise BuildFailed(reason)
            with _file_lock(name):
                if not self._exists(name):  # another process may have built it
                    self._build(name, context, workdir, seconds)
        return name

    def _build(self, name: str, context: Mapping[str, bytes], workdir: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        try:
            first = self._run(archive(context), deadline, name)
            values = (json.dumps(value) for value in (workdir, SEED, VERIFY))
            last = _LAST.format(image=first, **dict(zip(("workdir", "seed", "verify"), values, strict=True)))
            files = {"Dockerfile": last.encode(), "last_step.py": _LAST_STEP.encode()}
            built = self._run(archive(files), deadline, name)
            self._tag(built, name)
        except BuildFailed as error:
            _failed[name] = time.monotonic(), str(error)
            raise

    def _tag(self, image: str, name: str) -> None:
        with _reported():
            api = self._connect()
            size = int(_inspect(api, image)["Size"]) // (1024 * 1024)
            if size > MAX_IMAGE_MB:
                api.remove_image(image)
                raise BuildFailed(f"the image has {size:,} MB; at most {MAX_IMAGE_MB:,} are allowed")
            repository, _, tag = name.partition(":")
            api.tag(image, repository, tag)

    def _run(self, content: io.BytesIO, deadline: float, name: str) -> str:
        """Build one Dockerfile and return the id of its image. Raises BuildFailed, SandboxUnavailable.

        deadline: on the monotonic clock, in seconds. name: of the image for which it is built, as a label.
        """
        left = max(deadline - time.monotonic(), 1.0)
        progress = _BuildProgress()
        # A client of its own, so that dropping it ends the connection, and with it a build that takes too long.
        client = connect(self._address, left)
        try:
            parts = client.build(
                fileobj=content,
                custom_context=True,
                rm=True,
                forcerm=True,
                decode=True,
                timeout=math.ceil(left),
                labels={BUILD_LABEL: name},
                container_limits={"memory": _MEMORY_MB << 20, "memswap": _MEMORY_MB << 20},
            )
            for part in parts:
                progress.add(part)
                if time.monotonic() > deadline:
                    raise TimeoutError
        except (TimeoutError, *_FAILURES) as error:
            if time.monotonic() >= deadline - 0.1:
                raise BuildFailed(
                    f"the build did not end within its time (limits.build_s); it was at {progress.step or 'its start'}"
                    f"\n{progress.end_of_log}"
                ) from None
            if isinstance(error, APIError):  # such as a Dockerfile that cannot be parsed
                raise BuildFailed(str(error.explanation or error)) from None
            raise SandboxUnreachable(f"The Docker engine ended a build: {error}") from error
        finally:
            client.close()
        if not progress.image:
            raise BuildFailed(f"the build made no image\n{progress.end_of_log}")
        return progress.image

    def _exists(self, name: str) -> bool:
        with _reported():
            try:
                _inspect(self._connect(), name)
            except ImageNotFound:
                return False
        return True


def archive(files: Mapping[str, bytes]) -> io.BytesIO:
    """Return *files* as a tar. Files that begin with `#!` are executable, as bundles do not store modes."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for path in sorted(files):
            entry = tarfile.TarInfo(path)
            entry.size = len(files[path])
            entry.mode = 0o755 if files[path].startswith(b"#!") else 0o644
            tar.addfile(entry, io.BytesIO(files[path]))
    content.seek(0)
    return content


def _inspect(api: docker.APIClient, image: str) -> Keywords:
    inspect: Callable[[str], Keywords] = api.inspect_image  # it has no types
    return inspect(image)


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@contextlib.contextmanager
def _file_lock(name: str) -> Iterator[None]:
    """Let one process of this user at a time build an image."""
    folder = Path(tempfile.gettempdir(), f"llmeval-builds-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.lstat().st_uid != os.getuid():
        raise SandboxUnavailable(f"{folder} belongs to another user; remove it.")
    handle = os.open(folder / f"{name.partition(':')[2]}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except ImageNotFound:
        raise
    except _FAILURES as error:
        raise SandboxUnreachable(f"Images are built by a Docker engine, which cannot be reached: {error}") from error
