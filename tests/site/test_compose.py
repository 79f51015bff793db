"""The services of docker-compose.yml: started plain from an earlier state, upgraded behind a proxy with TLS, used."""

import http.client
import io
import json
import os
import shutil
import socket
import ssl
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings

from tests.services import unavailable

# Images are built and workers are stopped: minutes on a machine without a build cache.
pytestmark = [pytest.mark.docker, pytest.mark.alone, pytest.mark.timeout(1800)]

STARTED_WITHIN_S = 300
DOMAIN = "eval.localhost"
BEHIND_TLS = ("-f", "docker-compose.yml", "-f", "deploy/docker-compose.tls.yml")


class Stack:
    """The services under a project name of their own, so that another stack on this machine is not touched.

    `folder` is the copy of the repository from which compose is called, and `files` are its options.
    """

    def __init__(self, port: int, mlflow_port: int, http_port: int, https_port: int) -> None:
        self.port = port
        self.https_port = https_port
        self.project = f"llmevaltest{os.getpid()}"
        self.folder = Path(settings.BASE_DIR)
        self.files: tuple[str, ...] = ()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("LLMEVAL_", "POSTGRES_"))},
            "LLMEVAL_PORT": str(port),
            "LLMEVAL_MLFLOW_PORT": str(mlflow_port),
            "LLMEVAL_HTTP_PORT": str(http_port),
            "LLMEVAL_HTTPS_PORT": str(https_port),
            "LLMEVAL_ENV_FILE": ".env.example",
        }

    def compose(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(
            ["docker-compose", "-p", self.project, *self.files, *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def manage(self, *words: str) -> str:
        return self.compose("exec", "-T", "web", "python", "manage.py", *words)

    def status(self, path: str, **headers: str) -> int:
        """Return the status of a request to the site itself, beside the proxy."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status

    def request(self, method: str, path: str, token: str = "", body: object = None) -> tuple[int, bytes]:
        """Return status and body of a request through the proxy, whose certificate is checked."""
        authority = self.compose("exec", "-T", "caddy", "cat", "/data/caddy/pki/authorities/local/root.crt")
        headers = {"Host": DOMAIN, "Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Token {token}"
        connection = http.client.HTTPSConnection(DOMAIN, self.https_port, timeout=60)
        connection.sock = ssl.create_default_context(cadata=authority).wrap_socket(
            socket.create_connection(("127.0.0.1", self.https_port)), server_hostname=DOMAIN
        )
        connection.request(method, path, json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        return response.status, response.read()

    def wait_until_healthy(self, service: str) -> None:
        container = self.compose("ps", "-q", service).strip()
        deadline = time.monotonic() + STARTED_WITHIN_S
        state = ""
        while time.monotonic() < deadline:
            words = ["docker", "inspect", "--format", "{{.State.Health.Status}}", container]
            state = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
            if state == "healthy":
                return
            time.sleep(1)
        pytest.fail(f"{service} is {state} after {STARTED_WITHIN_S} s:\n{self.compose('logs', '--tail', '20')}")


@pytest.fixture
def stack() -> Iterator[Stack]:
    if shutil.which("docker-compose") is None:
        unavailable("docker", "docker-compose is not installed")
    with ExitStack() as stack_of_sockets:
        sockets = [stack_of_sockets.enter_context(socket.socket()) for _ in range(4)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in sockets]
    stack = Stack(*ports)
    try:
        yield stack
    finally:
        stack.compose("down", "--volumes", "--timeout", "5", check=False)


def write_state_before_newest_migration(folder: Path) -> None:
    """Write the files of the commit before the newest migration, or of the newest commit if git knows no other."""

    def git(*words: str) -> bytes:
        return subprocess.run(["git", *words], cwd=settings.BASE_DIR, capture_output=True, check=True).stdout

    added = git("log", "--diff-filter=A", "--format=%P", "-1", "--", "*/migrations/0*.py").decode().split()
    with tarfile.open(fileobj=io.BytesIO(git("archive", *(added[:1] or ["HEAD"])))) as archive:
        archive.extractall(folder, filter="data")


def test_stack_starts_plain_and_is_upgraded_and_used_behind_tls(stack: Stack, tmp_path: Path) -> None:
    current = stack.folder
    write_state_before_newest_migration(tmp_path)
    stack.folder = tmp_path
    stack.compose("up", "--build", "--detach")
    stack.wait_until_healthy("web")
    stack.wait_until_healthy("mlflow")
    assert "python manage.py createsuperuser" in stack.compose("logs", "--no-color", "setup")
    assert stack.status("/login/") == 200
    report = stack.manage("eval", "--config", "configs/eval_v1.yaml", "--enqueue", "--limit", "5")
    assert "python-functions" in report
    assert "MLflow: run" in report
    assert "opened for review" in report

    stack.folder, stack.files = current, BEHIND_TLS
    stack.environment |= {"LLMEVAL_ENV_FILE": "tests/site/behind_tls.env", "LLMEVAL_DOMAIN": DOMAIN}
    stack.compose("up", "--build", "--detach", "--scale", "worker=3")
    stack.wait_until_healthy("web")
    assert len(stack.compose("ps", "-q", "worker").split()) == 3
    stack.manage("migrate", "--check")

    assert stack.request("GET", "/login/")[0] == 200
    assert stack.status("/login/", Host=DOMAIN) == 301
    assert stack.status("/login/", **{"Host": "other.example.org", "X-Forwarded-Proto": "https"}) == 400

    stack.compose("exec", "-T", "-e", "DJANGO_SUPERUSER_PASSWORD=a-long-password", "web", "python", "manage.py",
                  "createsuperuser", "--noinput", "--username", "ann", "--email", "ann@example.org")  # fmt: skip
    token = stack.manage("token", "ann", "--scope", "read", "--scope", "review").split()[-1]
    status, body = stack.request("GET", "/api/v1/pairs/next", token)
    assert status == 200, body
    pair = json.loads(body)["pair"]
    assert stack.request("POST", f"/api/v1/pairs/{pair}/decision", token, {"verdict": "tie"})[0] == 200
    status, exported = stack.request("GET", "/api/v1/preferences/export?format=jsonl", token)
    assert status == 200
    with zipfile.ZipFile(io.BytesIO(exported)) as archive:
        rows = [json.loads(line) for line in archive.read("data.jsonl").splitlines()]
    assert sum(row["reviewer"] is not None for row in rows) == 1

    report = stack.manage("eval", "--config", "configs/eval_v1.yaml", "--enqueue", "--limit", "5")
    assert "opened for review" in report
    assert "Wrote /tmp/responses" in stack.manage("export_responses", "1", "--out", "/tmp/responses")
