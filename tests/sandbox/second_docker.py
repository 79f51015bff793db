"""A second Docker engine on this machine, as on another host: with its own id, images and containers."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import docker
import requests
from docker.errors import DockerException

from tests.processes import wait_until
from tests.sandbox import containers
from tests.services import unavailable


class SecondDocker:
    """The engine. It has the sandbox's image, and can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self.address = f"unix://{folder}/docker.sock"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        folder = self._folder
        # In a network of its own, because an engine without a bridge removes that of the first one. Engines before
        # Docker 23 make their id from a key in /etc/docker.
        (folder / "key").mkdir(exist_ok=True)
        program = f'mkdir -p /etc/docker && mount --bind {folder}/key /etc/docker && exec dockerd "$@"'
        command = ["unshare", "--net", "--mount", "sh", "-c", program, "dockerd"]
        command += ["--host", self.address, "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"]
        command += ["--pidfile", f"{folder}/pid", "--bridge", "none", "--iptables=false", "--ip6tables=false"]
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(self._answers)

    def stop(self) -> None:
        """Stop the engine and its containers."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(60)
            self._process = None

    def client(self) -> docker.DockerClient:
        return docker.DockerClient(base_url=self.address)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()[-2000:]
        try:
            with closing(self.client()) as client:
                return bool(client.ping())
        except (DockerException, requests.RequestException):
            return False


@contextmanager
def second_docker(folder: Path) -> Iterator[SecondDocker]:
    """Run a second engine with the image of the tests. Its files are in *folder*, which must have a short path."""
    if shutil.which("dockerd") is None or os.geteuid() != 0:
        unavailable("docker", "a second engine needs dockerd on this machine, and root")
    first, second = containers.daemon(), SecondDocker(folder)
    second.start()
    try:
        with closing(second.client()) as client:
            client.images.load(b"".join(first.images.get(containers.image()).save(named=containers.image())))
        yield second
    finally:
        second.stop()
        first.close()
        shutil.rmtree(folder, ignore_errors=True)
