"""The services of docker-compose.yml: started with one command, used, restarted behind TLS, and stopped."""

import http.client
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest
from django.conf import settings

from tests.services import unavailable

# Images are built and workers are stopped: minutes on a machine without a build cache.
pytestmark = [pytest.mark.docker, pytest.mark.alone, pytest.mark.timeout(1500)]

STARTED_WITHIN_S = 300


class Stack:
    """The services under a project name of their own, so that another stack on this machine is not touched."""

    def __init__(self, port: int, mlflow_port: int) -> None:
        self.port = port
        self.project = f"llmevaltest{os.getpid()}"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("LLMEVAL_", "POSTGRES_"))},
            "LLMEVAL_PORT": str(port),
            "LLMEVAL_MLFLOW_PORT": str(mlflow_port),
            "LLMEVAL_ENV_FILE": ".env.example",
        }

    def compose(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(
            ["docker-compose", "-p", self.project, *words],
            cwd=settings.BASE_DIR,
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
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status

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
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        ports = first.getsockname()[1], second.getsockname()[1]
    stack = Stack(*ports)
    try:
        yield stack
    finally:
        stack.compose("down", "--volumes", "--timeout", "5", check=False)


def test_compose_stack_behind_tls_evaluates_reviews_exports_and_restarts(stack: Stack) -> None:
    stack.compose("up", "--build", "--detach")
    stack.wait_until_healthy("web")
    stack.wait_until_healthy("mlflow")
    assert "python manage.py createsuperuser" in stack.compose("logs", "--no-color", "setup")
    assert stack.status("/login/") == 200

    report = stack.manage("eval", "--config", "configs/eval_v1.yaml", "--enqueue", "--limit", "5")
    assert "python-functions" in report
    assert "MLflow: run" in report
    assert "opened for review" in report

    stack.environment |= {"LLMEVAL_ENV_FILE": "tests/site/behind_tls.env"}
    stack.compose("up", "--detach", "--scale", "worker=3")
    stack.wait_until_healthy("web")
    behind_proxy = {"Host": "eval.example.org", "X-Forwarded-Proto": "https"}
    assert stack.status("/login/", **behind_proxy) == 200
    assert stack.status("/login/", Host="eval.example.org") == 301
    assert stack.status("/login/", **behind_proxy | {"Host": "other.example.org"}) == 400
    assert len(stack.compose("ps", "-q", "worker").split()) == 3
    assert "Wrote /tmp/responses" in stack.manage("export_responses", "1", "--out", "/tmp/responses")
