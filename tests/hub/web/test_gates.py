"""Gates of uploaded bundles: a worker runs them, and a curator publishes the environment."""

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from hub.gates import queue
from hub.gates.certificates import failed_gates
from hub.gates.queue import GATES, LEASE, TRIES, next_gate_request
from hub.models import Environment, EnvironmentVersion, GateRequest
from hub.scorers.base import ScoringFailed
from hub.scorers.exact_match import ExactMatch
from hub.services import why_not_publishable
from hub.tasks import run_waiting_gates
from sandbox.errors import SandboxUnavailable
from tests.factories import stored_version
from tests.hub.bundle_files import write_bundle
from tests.hub.web.test_upload import send, zipped
from tests.processes import wait_until

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Messages sent to the workers."""
    messages: list[Any] = []
    monkeypatch.setattr("hub.common.worker.task_messages.send", messages.append)
    return messages


def publish(client: Client) -> str:
    environment = Environment.objects.get()
    data = {"action": "publish", "_selected_action": [environment.pk], "index": 0}
    return client.post("/admin/hub/environment/", data, follow=True).content.decode()


def test_uploaded_bundle_runs_gates_and_can_be_published(
    client: Client, curator: User, sent: list[Any], tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        answer = send(client, zipped(write_bundle(tmp_path / "capitals")))
    assert sent == [GATES]
    assert "gates running" in client.get(answer["Location"]).content.decode()
    assert "A worker runs the gates" in page_of(client)
    assert "a worker is running its gates" in publish(client)
    run_waiting_gates()
    address = f"{answer['Location']}certificate/"
    part = client.get(address, headers={"HX-Target": "certificate"}).content.decode()
    assert "Every gold answer" in part or "gold" in part
    assert "hx-trigger" not in part
    publish(client)
    assert Environment.objects.get().visibility == Environment.Visibility.PUBLISHED


def test_bundle_with_failed_gates_stays_private_and_shows_reasons(
    client: Client, curator: User, sent: list[Any], tmp_path: Path
) -> None:
    send(client, zipped(write_bundle(tmp_path / "capitals", gold={"content": "Lyon"})))
    run_waiting_gates()
    page = page_of(client)
    assert "badge failed" in page and "Failures" in page
    assert "failed gold" in publish(client)
    assert Environment.objects.get().visibility == Environment.Visibility.PRIVATE


def test_gates_can_be_requested_again_without_certificate_only(
    client: Client, curator: User, sent: list[Any], tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    send(client, zipped(write_bundle(tmp_path / "capitals")))
    GateRequest.objects.all().delete()
    assert "Run the gates" in page_of(client)
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/hub/capitals/1.0.0/gates/")
    assert len(sent) == 1
    EnvironmentVersion.objects.update(certificate={"digest": "", "gates": []})
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/hub/capitals/1.0.0/gates/")
    run_waiting_gates()
    assert len(sent) == 1 and not GateRequest.objects.exists()
    assert EnvironmentVersion.objects.get().certificate == {"digest": "", "gates": []}


# ---- messages that are lost, workers that die ------------------------------------------------------------------------


@pytest.fixture
def uploaded(client: Client, curator: User, tmp_path: Path) -> EnvironmentVersion:
    """A version whose message to the workers never arrived: the test's transaction commits nothing."""
    send(client, zipped(write_bundle(tmp_path / "capitals")))
    return EnvironmentVersion.objects.get()


def lapse() -> None:
    """As if a minute had passed."""
    GateRequest.objects.update(lease_until=timezone.now() - LEASE)


def page_of(client: Client) -> str:
    return client.get("/hub/capitals/1.0.0/certificate/").content.decode()


def test_worker_finds_gate_requests_whose_message_was_lost(uploaded: EnvironmentVersion) -> None:
    assert GATES in {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    run_waiting_gates()  # as the sweep calls it
    uploaded.refresh_from_db()
    assert uploaded.certificate is not None
    assert not GateRequest.objects.exists()


def test_gate_lease_is_exclusive_and_expires(uploaded: EnvironmentVersion) -> None:
    first = next_gate_request(owner="elsewhere:1:a")
    assert first is not None
    assert next_gate_request(owner="elsewhere:1:b") is None
    lapse()
    second = next_gate_request(owner="elsewhere:1:b")
    assert second == first and second is not None and second.tries == 2


@pytest.mark.django_db(transaction=True)
def test_running_gates_renew_their_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "RENEW_EVERY_S", 0.02)
    lapsed = timezone.now() - LEASE
    owner = "elsewhere:1:a"
    request = GateRequest.objects.create(version=stored_version(), lease_owner=owner, lease_until=lapsed)
    with queue.renewed_lease(request, owner):
        wait_until(lambda: GateRequest.objects.filter(lease_until__gt=timezone.now()).exists())


def test_gates_that_crash_repeatedly_are_given_up_with_the_reason(
    client: Client, uploaded: EnvironmentVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: Any, **__: Any) -> None:
        raise RuntimeError("the cases do not fit")

    with monkeypatch.context() as patch:
        patch.setattr("hub.tasks.run_gates", breaks)
        for _ in range(TRIES):
            run_waiting_gates()
            lapse()
        assert next_gate_request(owner="elsewhere:1:a") is None
    assert "failed to finish in 3 attempts: RuntimeError: the cases do not fit" in page_of(client)
    client.post("/hub/capitals/1.0.0/gates/")
    run_waiting_gates()
    assert "gates passed" in client.get("/hub/?state=private").content.decode()


def test_gates_whose_worker_is_killed_are_given_up_with_the_probable_reason(
    client: Client, uploaded: EnvironmentVersion
) -> None:
    for number in range(1, TRIES + 1):
        assert next_gate_request(owner=f"elsewhere:{number}:a") is not None
        assert "A worker runs the gates" in page_of(client)  # also during the last try
        assert "a worker is running its gates" in why_not_publishable(uploaded.environment)
        lapse()
    assert "failed to finish in 3 attempts: each time the worker was killed" in page_of(client)
    assert "the worker was killed" in why_not_publishable(uploaded.environment)


def test_gates_wait_for_an_unavailable_sandbox(
    client: Client, uploaded: EnvironmentVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise SandboxUnavailable("Docker is not running.")

    with monkeypatch.context() as patch:
        patch.setattr("hub.tasks.run_gates", away)
        for _ in range(TRIES + 1):
            run_waiting_gates()
            lapse()
    assert "will be repeated: Docker is not running." in page_of(client)
    run_waiting_gates()
    uploaded.refresh_from_db()
    assert uploaded.certificate is not None


def test_gates_are_repeated_if_the_sandbox_fails_during_scoring(
    client: Client, uploaded: EnvironmentVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ScoringFailed("sandbox", "The sandbox failed: the engine was ended.")

    with monkeypatch.context() as patch:
        patch.setattr(ExactMatch, "score", fail)
        run_waiting_gates()
    uploaded.refresh_from_db()
    assert uploaded.certificate is None
    assert "will be repeated: The sandbox failed: the engine was ended." in page_of(client)
    lapse()
    run_waiting_gates()
    uploaded.refresh_from_db()
    assert uploaded.certificate is not None and not failed_gates(uploaded.certificate)


def test_gates_are_given_up_if_the_sandbox_fails_each_time(
    client: Client, uploaded: EnvironmentVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ScoringFailed("sandbox", "The sandbox failed: the engine was ended.")

    monkeypatch.setattr(ExactMatch, "score", fail)
    for _ in range(TRIES):
        run_waiting_gates()
        lapse()
    assert next_gate_request(owner="another") is None
    assert "The sandbox failed: the engine was ended." in page_of(client)
