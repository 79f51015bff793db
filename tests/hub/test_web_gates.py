"""From an upload to everybody's catalogue: a worker runs the gates, a curator publishes."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hub.dispatch import GATES
from hub.models import Environment, EnvironmentVersion
from hub.tasks import gates
from tests.hub.bundles import write_bundle
from tests.hub.test_web_upload import send, zipped
from tests.members import member

pytestmark = pytest.mark.django_db


@pytest.fixture
def curator(client: Client) -> User:
    user = member("Curator", staff=True)
    client.force_login(user)
    return user


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is told to the workers."""
    messages: list[Any] = []
    monkeypatch.setattr("hub.dispatch.current_app.send_task", lambda name, args, **_: messages.append((name, *args)))
    return messages


def publish(client: Client) -> str:
    environment = Environment.objects.get()
    data = {"action": "publish", "_selected_action": [environment.pk], "index": 0}
    return client.post("/admin/hub/environment/", data, follow=True).content.decode()


def test_an_uploaded_bundle_is_put_before_the_gates_and_can_then_be_published(
    client: Client, curator: User, sent: list[Any], tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        answer = send(client, zipped(write_bundle(tmp_path / "capitals")))
    version = EnvironmentVersion.objects.get()
    assert sent == [(GATES, version.pk)]
    assert "A worker runs the gates" in client.get(answer["Location"]).content.decode()
    assert "gates have not been run" in publish(client)
    gates(version.pk)
    part = client.get(answer["Location"], headers={"HX-Target": "certificate"}).content.decode()
    assert "Every gold answer" in part or "gold" in part
    assert "hx-trigger" not in part
    publish(client)
    assert Environment.objects.get().visibility == Environment.Visibility.PUBLISHED


def test_a_bundle_whose_gates_fail_shows_why_and_stays_private(
    client: Client, curator: User, sent: list[Any], tmp_path: Path
) -> None:
    send(client, zipped(write_bundle(tmp_path / "capitals", gold={"content": "Lyon"})))
    gates(EnvironmentVersion.objects.get().pk)
    page = client.get("/hub/capitals/").content.decode()
    assert "badge failed" in page and "What failed" in page
    assert "failed gold" in publish(client)
    assert Environment.objects.get().visibility == Environment.Visibility.PRIVATE


def test_the_gates_can_be_asked_for_again_and_a_certificate_is_never_made_twice(
    client: Client, curator: User, sent: list[Any], tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    send(client, zipped(write_bundle(tmp_path / "capitals")))
    assert "Run the gates" in client.get("/hub/capitals/").content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/hub/capitals/1.0.0/gates/")
    assert len(sent) == 1
    EnvironmentVersion.objects.update(certificate={"digest": "", "gates": []})
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/hub/capitals/1.0.0/gates/")
    gates(EnvironmentVersion.objects.get().pk)
    assert len(sent) == 1
    assert EnvironmentVersion.objects.get().certificate == {"digest": "", "gates": []}
