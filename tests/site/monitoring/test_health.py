"""Liveness and readiness: each failed component is reported with a reason, without details for attackers."""

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings, settings
from django.db import connections
from django.test import Client

from llmeval_site import health
from llmeval_site.health import COMPONENTS, BackgroundCheck, Component

NAMES = {"database", "broker", "sandbox", "disk"}


@pytest.fixture(autouse=True)
def fresh_sandbox_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandbox's state is kept for a while; here each test finds it out for itself."""
    sandbox = Component(BackgroundCheck(health.check_sandbox, wait_s=60.0), COMPONENTS["sandbox"].reason)
    monkeypatch.setitem(COMPONENTS, "sandbox", sandbox)


def unready_reasons(client: Client, *, serves: bool = False) -> dict[str, str]:
    """The reasons of a site that is not ready, or that *serves* although a component does not work."""
    answer = client.get("/readyz")
    body = answer.json()
    assert (answer.status_code, body["status"]) == ((200, "degraded") if serves else (503, "unavailable"))
    assert {name for name, state in body["parts"].items() if state != "ok"} == set(body["reasons"])
    reasons: dict[str, str] = body["reasons"]
    return reasons


def test_liveness_needs_no_sign_in_and_no_database(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.django_db
def test_probes_are_answered_by_address_and_without_tls(client: Client, settings: LazySettings, path: str) -> None:
    settings.ALLOWED_HOSTS = ["eval.example.org"]
    settings.SECURE_SSL_REDIRECT = True
    assert client.get(path, headers={"host": "127.0.0.1:8000"}).status_code == 200
    assert client.get("/login/", headers={"host": "127.0.0.1:8000"}, secure=True).status_code == 400
    assert client.get("/login/", headers={"host": "eval.example.org"}).status_code == 301


@pytest.mark.django_db
def test_readiness_reports_every_component(client: Client) -> None:
    answer = client.get("/readyz")
    assert answer.json() == {"status": "ok", "parts": dict.fromkeys(NAMES, "ok"), "reasons": {}}
    assert answer.status_code == 200


@pytest.mark.django_db
def test_readiness_reports_a_broken_database_without_details(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise OSError("password wrong for llmeval@10.0.0.1")

    monkeypatch.setattr(type(connections["default"]), "cursor", refused)  # in all threads
    reasons = unready_reasons(client)
    assert set(reasons) == {"database"}
    assert "manage.py prepare" in reasons["database"] and "10.0.0.1" not in str(reasons)


@pytest.mark.django_db
def test_readiness_does_not_wait_for_a_database_that_does_not_answer(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = threading.Event()
    monkeypatch.setattr(COMPONENTS["database"].check, "wait_s", 0.01)
    monkeypatch.setattr(type(connections["default"]), "cursor", lambda *args: answer.wait(60))
    try:
        assert set(client.get("/readyz").json()["reasons"]) == {"database"}
    finally:
        answer.set()


@pytest.mark.django_db
def test_readiness_reports_an_unreachable_broker(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    # The application first: it reads the settings when its configuration is used for the first time.
    monkeypatch.setattr("llmeval_site.celery.app.conf.broker_url", "redis://127.0.0.1:1/0")
    monkeypatch.setattr(settings, "CELERY_BROKER_URL", "redis://127.0.0.1:1/0")
    assert set(unready_reasons(client, serves=True)) == {"broker"}


@pytest.mark.django_db
def test_readiness_reports_a_missing_queue_folder(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "messages").mkdir()
    monkeypatch.setattr(settings, "QUEUE_DIR", tmp_path, raising=False)
    assert client.get("/readyz").json()["status"] == "ok"
    (tmp_path / "messages").rmdir()
    assert set(unready_reasons(client, serves=True)) == {"broker"}


@pytest.mark.django_db
def test_readiness_reports_an_unreachable_sandbox(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(settings, "SANDBOX_BACKEND", "socket")
    monkeypatch.setattr(settings, "SANDBOX_SOCKET", str(tmp_path / "nobody.sock"))
    reasons = unready_reasons(client, serves=True)
    assert set(reasons) == {"sandbox"}
    assert "sandbox_check" in reasons["sandbox"] and str(tmp_path) not in reasons["sandbox"]


@pytest.mark.django_db
def test_readiness_reports_a_full_disk(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "MIN_FREE_BYTES", shutil.disk_usage(settings.VAR_DIR).total + 1)
    assert set(unready_reasons(client)) == {"disk"}


def test_background_check_runs_once_and_its_result_is_reused() -> None:
    made: list[int] = []
    check = BackgroundCheck(lambda: made.append(1), keep_s=3600.0, wait_s=60.0)
    for _ in range(3):
        check()
    assert made == [1]
    check.keep_s = -1.0
    check()
    assert made == [1, 1]


def test_background_check_that_hangs_times_out() -> None:
    go_on = threading.Event()
    check = BackgroundCheck(lambda: go_on.wait(60) and None, wait_s=0.01)
    for _ in range(2):
        with pytest.raises(TimeoutError, match="no result"):
            check()
    check.wait_s = 60.0
    go_on.set()
    check()
