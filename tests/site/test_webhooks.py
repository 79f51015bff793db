"""Webhooks: registration, signatures, repeated attempts, and refused addresses. Receivers are real HTTP servers."""

import base64
import hashlib
import hmac
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from hub.models import Environment
from llmeval_site.accounts.tokens import create_token
from llmeval_site.models import Webhook, WebhookDelivery
from llmeval_site.webhooks.deliveries import (
    DELIVER,
    DISABLE_AFTER,
    FIRST_DELAY,
    MAX_ATTEMPTS,
    create_webhook,
    deliver_due,
    send_again,
    send_test_event,
)
from runs.models import Run
from runs.transitions import change_status
from tests.factories import stored_run, stored_version
from tests.members import member
from tests.processes import send_task, wait_until, worker
from tests.services import empty_redis_url

pytestmark = pytest.mark.django_db
ENDS = ["run.completed", "run.failed"]


@dataclass
class Receiver:
    """Running receiver, the status that it responds with, and the requests that it received."""

    url: str
    status: int = 204
    requests: list[tuple[Message, bytes]] = field(default_factory=list)


@contextmanager
def running_receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.requests.append((self.headers, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(receiver.status)
            if receiver.status == 302:
                self.send_header("Location", receiver.url + "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(f"http://localhost:{server.server_address[1]}/hook")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield receiver
        server.shutdown()


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.WEBHOOK_HTTP = settings.PRIVATE_WEBHOOKS = True
    with running_receiver() as receiver:
        yield receiver


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the tasks that were sent, instead of sending them."""
    sent: list[str] = []
    monkeypatch.setattr("hub.common.worker.task_messages.send", sent.append)
    return sent


@pytest.fixture
def run() -> Run:
    version = stored_version()
    Environment.objects.update(latest=version, visibility=Environment.Visibility.PUBLISHED)
    return stored_run(version, status=Run.Status.RUNNING)


def is_genuine(secret: str, headers: Message, body: bytes) -> bool:
    """The check of docs/rest.md."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return hmac.compare_digest(expected, headers["webhook-signature"])


def make_due() -> None:
    WebhookDelivery.objects.update(next_attempt_at=timezone.now())


def test_end_of_a_run_is_delivered_with_a_valid_signature(receiver: Receiver, run: Run) -> None:
    webhook = create_webhook(user=member(), url=receiver.url, events=ENDS)
    change_status(run, Run.Status.FAILED, message="no endpoint")
    deliver_due()
    [(headers, body)] = receiver.requests
    assert is_genuine(webhook.secret, headers, body)
    assert not is_genuine(webhook.secret, headers, body + b" ") and not is_genuine("whsec_AAAA", headers, body)
    sent = json.loads(body)
    assert (sent["id"], sent["type"]) == (headers["webhook-id"], "run.failed")
    assert headers["Host"] == receiver.url.split("/")[2]
    assert sent["data"] | {"run": run.pk, "status": "failed", "message": "no endpoint"} == sent["data"]
    delivery = WebhookDelivery.objects.get()
    assert (delivery.status, delivery.response_status, delivery.attempts) == ("delivered", 204, 1)
    deliver_due()
    assert len(receiver.requests) == 1


def test_event_that_was_not_chosen_is_not_delivered(receiver: Receiver, run: Run) -> None:
    create_webhook(user=member(), url=receiver.url, events=["run.completed"])
    change_status(run, Run.Status.CANCELLED)
    assert not WebhookDelivery.objects.exists()


def test_run_that_the_user_may_not_see_is_not_delivered(receiver: Receiver, run: Run) -> None:
    owner = member(name="owner")
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE, owner=owner)
    inactive = User.objects.create_user("gone", is_active=False)
    for user in (member(), owner, inactive):
        create_webhook(user=user, url=receiver.url, events=ENDS)
    change_status(run, Run.Status.COMPLETED)
    assert [delivery.webhook.user for delivery in WebhookDelivery.objects.all()] == [owner]


def test_delivery_is_given_up_once_the_user_may_not_see_the_run(receiver: Receiver, run: Run) -> None:
    webhook = create_webhook(user=member(), url=receiver.url, events=ENDS)
    receiver.status = 500
    change_status(run, Run.Status.COMPLETED)
    deliver_due()
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE)
    make_due()
    deliver_due()
    delivery = WebhookDelivery.objects.get()
    assert (delivery.status, delivery.attempts, len(receiver.requests)) == ("failed", 1, 1)
    assert "hidden from you" in delivery.problem
    send_again(delivery)
    send_test_event(webhook)
    deliver_due()
    assert [json.loads(body)["type"] for _, body in receiver.requests] == ["run.completed", "test"]


def test_failed_delivery_is_repeated_with_growing_delays_until_it_is_accepted(receiver: Receiver, run: Run) -> None:
    create_webhook(user=member(), url=receiver.url, events=ENDS)
    change_status(run, Run.Status.COMPLETED)
    receiver.status = 500
    waits: list[timedelta] = []
    for _ in range(3):
        make_due()
        before = timezone.now()
        deliver_due()
        waits.append(WebhookDelivery.objects.get().next_attempt_at - before)
    assert [round(wait / FIRST_DELAY) for wait in waits] == [1, 2, 4]
    deliver_due()  # not due yet
    delivery = WebhookDelivery.objects.get()
    assert (delivery.status, delivery.attempts, delivery.response_status) == ("waiting", 3, 500)
    receiver.status = 200
    make_due()
    deliver_due()
    assert WebhookDelivery.objects.get().status == "delivered"
    assert len(receiver.requests) == 4 and len({headers["webhook-id"] for headers, _ in receiver.requests}) == 1


def test_webhook_is_disabled_after_failures_and_delivers_again_once_enabled(receiver: Receiver, client: Client) -> None:
    user = member()
    client.force_login(user)
    webhook = create_webhook(user=user, url=receiver.url, events=ENDS)
    receiver.status = 404
    for _ in range(DISABLE_AFTER):
        send_test_event(webhook)
        WebhookDelivery.objects.filter(status="waiting").update(attempts=MAX_ATTEMPTS - 1)
        deliver_due()
    webhook.refresh_from_db()
    assert webhook.disabled_at is not None
    page = client.get(f"/account/webhooks/{webhook.pk}/").content.decode()
    assert "was disabled" in page and "The server responded with status 404." in page and "given up" in page
    latest = WebhookDelivery.objects.latest("id")
    client.post(f"/account/webhooks/{webhook.pk}/", {"again": latest.pk})
    assert WebhookDelivery.objects.get(pk=latest.pk).status == "failed"
    receiver.status = 200
    client.post(f"/account/webhooks/{webhook.pk}/", {"enable": ""})
    client.post(f"/account/webhooks/{webhook.pk}/", {"again": latest.pk})
    deliver_due()
    assert WebhookDelivery.objects.get(pk=latest.pk).status == "delivered"
    assert receiver.requests[-1][0]["webhook-id"] == str(latest.event_id)


PRIVATE = [
    "localhost",
    "ci.localhost",
    "localhost.",
    "127.0.0.1",
    "127.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "169.254.169.254",
    "2130706433",
    "0x7f000001",
    "10.0.0.1",
]


@pytest.mark.parametrize("host", PRIVATE)
def test_private_address_is_refused_when_a_webhook_is_created(client: Client, settings: Any, host: str) -> None:
    client.force_login(member())
    body = {"url": f"https://{host}/", "events": ENDS}
    page = client.post("/account/webhooks/", body)
    assert page.status_code == 422 and "LLMEVAL_PRIVATE_WEBHOOKS" in page.content.decode()
    answer = client.post("/api/v1/webhooks/", body, content_type="application/json")
    assert answer.status_code == 400
    [error] = answer.json()["errors"]
    assert error == {
        "path": "url",
        "message": "Requests are not sent to this address: its host is in a private, loopback or link-local network; "
        "an operator can set LLMEVAL_PRIVATE_WEBHOOKS=1.",
    }
    assert not Webhook.objects.exists()
    settings.PRIVATE_WEBHOOKS = True
    assert client.post("/api/v1/webhooks/", body, content_type="application/json").status_code == 201


def test_host_is_not_looked_up_when_a_webhook_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    flags: list[int] = []
    genuine = socket.getaddrinfo

    def recording(*given: Any, **options: Any) -> Any:
        flags.append(options["flags"])
        return genuine(*given, **options)

    monkeypatch.setattr(socket, "getaddrinfo", recording)
    user = member()
    for host in ("intern.example", "93.184.216.34"):
        create_webhook(user=user, url=f"https://{host}/", events=ENDS)
    assert flags == [socket.AI_NUMERICHOST] * 2


def test_private_address_is_refused_without_a_request(receiver: Receiver, settings: Any) -> None:
    webhook = create_webhook(user=member(), url=receiver.url, events=ENDS)
    settings.PRIVATE_WEBHOOKS = False
    for host in PRIVATE:
        Webhook.objects.update(url=receiver.url.replace("localhost", host))
        send_test_event(webhook)
        deliver_due()
        delivery = WebhookDelivery.objects.latest("id")
        assert "LLMEVAL_PRIVATE_WEBHOOKS" in delivery.problem and delivery.status == "waiting", host
    assert receiver.requests == []


def test_redirects_are_not_followed(receiver: Receiver) -> None:
    receiver.status = 302
    send_test_event(create_webhook(user=member(), url=receiver.url, events=ENDS))
    deliver_due()
    assert len(receiver.requests) == 1
    assert WebhookDelivery.objects.get().problem == "The server responded with status 302."


def test_server_that_cannot_be_reached_is_reported(receiver: Receiver) -> None:
    with running_receiver() as stopped:
        pass
    send_test_event(create_webhook(user=member(), url=stopped.url, events=ENDS))
    deliver_due()
    assert "The request failed" in WebhookDelivery.objects.get().problem


BAD = [
    "http://example.org/",
    "https://exa mple.org/",
    "ftp://example.org/",
    "example.org",
    "https://",
    "https://a:b@example.org/",
    "https://[x/",
]


@pytest.mark.parametrize("url", BAD)
def test_invalid_address_is_rejected_on_the_page_and_over_rest(client: Client, url: str) -> None:
    client.force_login(member())
    assert client.post("/account/webhooks/", {"url": url, "events": ENDS}).status_code == 422
    answer = client.post("/api/v1/webhooks/", {"url": url, "events": ENDS}, content_type="application/json")
    assert answer.status_code == 400 and answer.json()["errors"][0]["path"] == "url"
    assert not Webhook.objects.exists()


def test_unknown_event_is_reported_with_the_known_ones(client: Client) -> None:
    client.force_login(member())
    body = {"url": "https://example.org/", "events": ["run.complted"]}
    [error] = client.post("/api/v1/webhooks/", body, content_type="application/json").json()["errors"]
    assert error == {
        "path": "events",
        "message": "run.complted is not known. Choose one of "
        "run.completed, run.failed, run.cancelled, run.stopped, run.interrupted.",
    }


def test_deliveries_have_labels_on_narrow_screens(receiver: Receiver, client: Client) -> None:
    client.force_login(user := member())
    webhook = create_webhook(user=user, url=receiver.url, events=ENDS)
    send_test_event(webhook)
    page = client.get(f"/account/webhooks/{webhook.pk}/").content.decode()
    assert all(f'data-label="{label}"' in page for label in ("attempts", "last attempt", "created"))


def test_secret_is_shown_once_on_the_page_and_over_rest(client: Client) -> None:
    client.force_login(member())
    answer = client.post("/account/webhooks/", {"url": "https://example.org/a", "events": ENDS})
    assert "no-store" in answer.headers["Cache-Control"]
    page = answer.content.decode()
    first = Webhook.objects.get()
    assert first.secret.replace("+", "&#x2B;") in page or first.secret in page
    assert "whsec_" not in client.get("/account/webhooks/").content.decode()
    body = {"url": "https://example.org/b", "events": ["run.failed"]}
    created = client.post("/api/v1/webhooks/", body, content_type="application/json")
    assert created.status_code == 201 and created.json()["secret"].startswith("whsec_")
    listed = client.get("/api/v1/webhooks/")
    assert [item["url"] for item in listed.json()["results"]] == ["https://example.org/b", "https://example.org/a"]
    assert b"whsec_" not in listed.content
    number = created.json()["webhook"]
    assert client.get(created["Location"]).json() == listed.json()["results"][0]
    assert client.get(f"/api/v1/webhooks/{number}/deliveries/").json()["results"] == []
    assert client.delete(f"/api/v1/webhooks/{number}/").status_code == 204
    assert Webhook.objects.get() == first


def test_webhooks_of_others_do_not_exist(client: Client) -> None:
    webhook = create_webhook(user=member(name="owner"), url="https://example.org/", events=ENDS)
    client.force_login(User.objects.create_superuser("root"))
    for url in (f"/account/webhooks/{webhook.pk}/", f"/api/v1/webhooks/{webhook.pk}/deliveries/"):
        assert client.get(url).status_code == 404
    assert client.post(f"/account/webhooks/{webhook.pk}/", {"delete": ""}).status_code == 404
    assert client.delete(f"/api/v1/webhooks/{webhook.pk}/").status_code == 404
    for url in (f"/api/v1/webhooks/{webhook.pk}/", f"/api/v1/webhooks/{webhook.pk}/deliveries/"):
        assert client.get(url).json()["message"] == f"You have no webhook {webhook.pk}."


def test_token_needs_the_scope_run_to_create_a_webhook(client: Client) -> None:
    _, key = create_token(user=member(), scopes=["read"])
    headers = {"Authorization": f"Token {key}"}
    body = {"url": "https://example.org/", "events": ENDS}
    answer = client.post("/api/v1/webhooks/", body, content_type="application/json", headers=headers)
    assert answer.status_code == 403


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
@pytest.mark.redis
def test_worker_delivers_webhooks(receiver: Receiver, messages: list[str]) -> None:
    broker = empty_redis_url()
    webhook = create_webhook(user=member(), url=receiver.url, events=ENDS)
    send_test_event(webhook)
    assert messages == [DELIVER]
    allowed = {"LLMEVAL_WEBHOOK_HTTP": "1", "LLMEVAL_PRIVATE_WEBHOOKS": "1"}
    with worker(broker, **allowed):
        send_task(broker, DELIVER, "maintenance")
        wait_until(lambda: WebhookDelivery.objects.get().status == "delivered")
    [(headers, body)] = receiver.requests
    assert is_genuine(webhook.secret, headers, body) and json.loads(body)["type"] == "test"
