"""Log lines as JSON, with ids of requests and runs."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django_guid import clear_guid, set_guid

from hub.common.worker.task_messages import send
from llmeval_site.configuration.json_logs import MaskingJSONFormatter
from llmeval_site.configuration.logs import drop_traceback_of_refused_request
from tests.processes import wait_until, worker
from tests.site.server.web_server import environment_of

KEY = "sk-a-key-of-the-test-0123456789"
SCRIPT = """
import logging, django
django.setup()
from django_guid import set_guid
set_guid("c0ffee")
logging.getLogger("runs").warning("the key is %s", "sk-a-key-of-the-test-0123456789", extra={"run_id": 7})
"""


def test_json_lines_have_the_ids_of_request_and_run_and_no_keys(tmp_path: Path) -> None:
    environment = environment_of(tmp_path, {"LLMEVAL_LOG_FORMAT": "json", "OPENAI_API_KEY": KEY})
    environment["DJANGO_SETTINGS_MODULE"] = "llmeval_site.settings"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment,
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    line = json.loads(done.stderr.splitlines()[-1])
    assert (line["level"], line["logger"], line["run_id"], line["request_id"]) == ("WARNING", "runs", 7, "c0ffee")
    assert KEY not in done.stderr
    assert line["message"].startswith("the key is ")


def test_traceback_is_part_of_the_json_object() -> None:
    formatter = MaskingJSONFormatter("{message}", style="{")
    try:
        raise ValueError("wrong")
    except ValueError:
        record = logging.makeLogRecord({"msg": "failed", "exc_info": sys.exc_info()})
    assert "ValueError: wrong" in json.loads(formatter.format(record))["exc_info"]


def test_response_has_the_request_id_of_the_request(client: Client) -> None:
    request_id = "0123456789abcdef0123456789abcdef"
    assert client.get("/healthz", headers={"X-Request-ID": request_id}).headers["X-Request-ID"] == request_id
    assert client.get("/healthz").headers["X-Request-ID"] != request_id


@pytest.mark.parametrize("given", ["<script>", "a b", "x" * 500])
def test_invalid_request_id_is_replaced(client: Client, given: str) -> None:
    assert len(client.get("/healthz", headers={"X-Request-ID": given}).headers["X-Request-ID"]) == 32


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_log_lines_of_a_task_have_the_id_of_the_request_that_sent_it(tmp_path: Path) -> None:
    request_id = "0123456789abcdef0123456789abcdef"
    log = tmp_path / "worker.log"
    variables = {"LLMEVAL_LOG_FORMAT": "json", "LLMEVAL_LOG_LEVEL": "INFO"}
    set_guid(request_id)
    try:
        send("site.prune")
    finally:
        clear_guid()
    with log.open("wb") as stderr, worker(settings.CELERY_BROKER_URL, log=stderr.fileno(), **variables):
        wait_until(lambda: f'"{request_id}"' in log.read_text())
    lines = [json.loads(line) for line in log.read_text().splitlines() if request_id in line]
    assert "site.prune" in lines[0]["message"]


def test_refused_requests_are_logged_without_a_traceback() -> None:
    for status, kept in ((403, False), (500, True)):
        record = logging.makeLogRecord({"msg": "failed", "status_code": status, "exc_info": (ValueError, None, None)})
        assert drop_traceback_of_refused_request(record)
        assert bool(record.exc_info) is kept
