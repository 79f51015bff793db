"""The web server as `manage.py serve` starts it."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import override_settings

from hub.management.invocation import command
from llmeval_site.celery import app
from llmeval_site.management.commands import serve
from tests.processes import wait_until
from tests.site.server.web_server import environment_of, free_port, web_server


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """The port of a web server with an empty database of its own."""
    with web_server(tmp_path, environment_of(tmp_path)) as port:
        yield port


@pytest.fixture
def handlers() -> Iterator[None]:
    """Restore the handlers of the signals that `serve` receives. SIGHUP is not ignored, as it is under `nohup`."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.exhaustive
def test_connection_stays_open_for_a_client_that_pauses_between_requests(port: int) -> None:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    client.request("GET", "/healthz")
    first = client.getresponse()
    first.read()
    connection = client.sock
    time.sleep(2.5)  # with its defaults, gunicorn closes idle connections after two seconds
    client.auto_open = 0  # a closed connection is an error and not opened again
    client.request("GET", "/healthz")
    assert (first.status, client.getresponse().status) == (200, 200)
    assert client.sock is connection


@pytest.mark.exhaustive
def test_refused_request_with_a_body_does_not_block_its_connection(port: int) -> None:
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        answers = [client.put("/api/v1/score", json={"a": 1}).status_code for _ in range(40)]
    assert set(answers) == {401}


def test_each_process_listens_with_a_socket_of_its_own() -> None:
    port = free_port()
    with _gunicorn(f"127.0.0.1:{port}"):
        sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        listening = [fields[9] for fields in sockets if fields[1] == f"0100007F:{port:04X}" and fields[3] == "0A"]
        assert len(set(listening)) == 2  # inodes


def test_processes_share_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with _gunicorn(f"unix:{path}"), httpx2.Client(transport=httpx2.HTTPTransport(uds=str(path))) as client:
        assert client.get("http://site/").text == "one line"


@pytest.mark.exhaustive
def test_web_server_stops_although_clients_keep_connections_open() -> None:
    port = free_port()
    with _gunicorn(f"127.0.0.1:{port}") as process:
        clients = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(4)]
        for client in clients:
            client.request("GET", "/")
            assert client.getresponse().read() == b"one line"
        silent = socket.create_connection(("127.0.0.1", port))  # has not sent a request yet
        process.terminate()
        assert process.wait(timeout=25) == 0  # idle connections would be waited for until `graceful_timeout`, 30 s
        silent.close()


def test_second_web_server_at_the_same_port_stops_with_a_message() -> None:
    port = free_port()
    with _gunicorn(f"127.0.0.1:{port}"):
        second = subprocess.run(_command(f"127.0.0.1:{port}"), capture_output=True, text=True, cwd=settings.BASE_DIR)
    assert second.returncode == 1
    assert second.stderr == f"The web server cannot listen at 127.0.0.1:{port}: Address already in use.\n"


def test_command_says_why_the_site_cannot_listen(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit, match="3"):
            call_command("serve", port=port)
    assert re.fullmatch(rf"Port {port} is in use. Use another: .*serve --port {port + 1}\n", capsys.readouterr().err)
    with pytest.raises(SystemExit, match="2"):
        call_command("serve", host="nowhere.invalid", port=port)
    assert capsys.readouterr().err.startswith(f"The site cannot listen at nowhere.invalid:{port}: ")


@pytest.mark.django_db
@pytest.mark.usefixtures("handlers")
def test_command_that_stops_unexpectedly_says_how_to_start_it_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "_commands", lambda *_: [[sys.executable, "-c", "raise SystemExit(1)"]])
    port = free_port()
    with pytest.raises(SystemExit, match="1"):
        call_command("serve", host="0.0.0.0", port=port)
    last = capsys.readouterr().err.splitlines()[-1]
    assert "see its messages above" in last
    assert last.endswith(f"start it again: {command('serve', '--host', '0.0.0.0', '--port', port)}")


# A process that does not stop on SIGTERM, and neither does the one it starts, like a web server whose process still
# executes a step. Each creates a file with its id as the name.
_STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.fork()
open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
time.sleep(600)
"""


@pytest.mark.django_db
@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("numbers", [[signal.SIGTERM], [signal.SIGHUP], [signal.SIGINT, signal.SIGINT]])
def test_command_ends_the_processes_of_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: list[signal.Signals]
) -> None:
    monkeypatch.setattr(serve, "_commands", lambda *_: [[sys.executable, "-c", _STUBBORN, str(tmp_path)]])
    monkeypatch.setattr(serve, "_GRACE_S", 600 if len(numbers) == 2 else 0.1)

    def send() -> None:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        for number in numbers:
            os.kill(os.getpid(), number)
            time.sleep(1)  # the first one is noticed after 0.2 seconds

    sender = threading.Thread(target=send)
    sender.start()
    call_command("serve", port=free_port())
    sender.join()
    wait_until(lambda: not any(_runs(int(path.name)) for path in tmp_path.iterdir()))


def _runs(pid: int) -> bool:
    """Return whether a process runs. One that has ended may still wait for its parent to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_file_of_the_exchange_exists_before_the_workers_start(tmp_path: Path) -> None:
    options = {"control_folder": str(tmp_path)}
    with override_settings(CELERY_BROKER_TRANSPORT_OPTIONS=options):
        serve._create_exchange()
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text()) == []
    with app.connection_for_write("filesystem://", transport_options=options) as connection:
        for name in ("runs", "gates"):
            app.control.mailbox.Node(name, channel=connection.default_channel).listen()
        assert list(tmp_path.iterdir()) == [file]
        bound = connection.default_channel.get_table(app.control.mailbox.exchange.name)
    with override_settings(CELERY_BROKER_TRANSPORT_OPTIONS=options):
        serve._create_exchange()
    assert len(bound) == len(json.loads(file.read_text())) == 2


@pytest.mark.exhaustive
def test_command_in_another_folder_starts_the_workers(tmp_path: Path) -> None:
    environment = {**environment_of(tmp_path), "LLMEVAL_VAR": "data"}  # relative to the folder of the command
    for name in ("CELERY_BROKER_URL", "REDIS_URL"):
        environment.pop(name, None)
    words = [sys.executable, str(settings.BASE_DIR / "manage.py"), "serve", "--port", str(free_port())]
    process = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        # The second worker writes this file once it runs.
        wait_until(lambda: any(tmp_path.glob("data/beat-schedule*")) or process.poll() is not None)
    finally:
        process.terminate()
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output.decode()


@pytest.mark.exhaustive
@pytest.mark.parametrize("seconds", [0.3, 2])
def test_interrupt_while_the_workers_start_stops_them_without_an_error(tmp_path: Path, seconds: float) -> None:
    environment = environment_of(tmp_path)
    for name in ("CELERY_BROKER_URL", "REDIS_URL"):
        environment.pop(name, None)
    words = [sys.executable, "manage.py", "serve", "--port", str(free_port())]
    process = subprocess.Popen(
        words,
        cwd=settings.BASE_DIR,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output.splitlines()[-1]) == (0, "Stopped.")
    assert "Aborted" not in errors and "KeyboardInterrupt" not in errors, errors
    # Each process that it started, directly or not, has the data folder in its environment.
    assert not _processes_with(f"LLMEVAL_VAR={tmp_path}")


def _processes_with(variable: str) -> list[str]:
    """Return the ids of the processes that have *variable* in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has ended, or belongs to another user
            if variable.encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
    return found


@contextmanager
def _gunicorn(address: str) -> Iterator[subprocess.Popen[str]]:
    """Run the web server with the product's settings and an application of one line."""
    process = subprocess.Popen(_command(address), cwd=settings.BASE_DIR, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        assert [process.stderr.readline() for _ in range(2)] == ["loaded\n"] * 2  # a process listens before it loads
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


def _command(address: str) -> list[str]:
    command = [sys.executable, "-m", "gunicorn", "tests.site.server.small_site", "--bind", address]
    return [*command, "--config", "gunicorn.conf.py", "--log-level", "warning"]
