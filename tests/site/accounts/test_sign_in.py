"""Limits on failed sign-ins and invalid tokens."""

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client, RequestFactory

from llmeval_site.accounts.sign_in import client_address

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough one"


def sign_in(client: Client, password: str, name: str = "ann", url: str = "/login/") -> int:
    return client.post(url, {"username": name, "password": password}).status_code


@pytest.fixture
def ann() -> User:
    User.objects.create_user("bob", password=PASSWORD)
    return User.objects.create_user("ann", password=PASSWORD, is_staff=True)


@pytest.mark.parametrize("url", ["/login/", "/admin/login/"])
def test_failed_sign_ins_block_a_name_from_one_address_only(ann: User, url: str) -> None:
    here, elsewhere = Client(REMOTE_ADDR="192.0.2.1"), Client(REMOTE_ADDR="192.0.2.2")
    answers = [sign_in(here, "wrong", url=url) for _ in range(settings.AXES_FAILURE_LIMIT)]
    assert answers[:-1] == [200] * (len(answers) - 1) and answers[-1] == 429
    assert sign_in(here, PASSWORD, url=url) == 429
    assert "15 minutes" in here.post(url, {"username": "ann", "password": PASSWORD}).content.decode()
    assert sign_in(here, PASSWORD, "bob") == 302
    assert sign_in(elsewhere, PASSWORD, url=url) == 302


def test_admin_tells_signed_in_users_without_staff_status_that_it_is_for_staff(ann: User, client: Client) -> None:
    assert 'name="password"' in client.get("/admin/", follow=True).content.decode()
    client.force_login(User.objects.get(username="bob"))
    answer = client.get("/admin/auth/user/", follow=True)
    assert answer.status_code == 403 and "The admin is for staff" in answer.content.decode()
    assert 'name="password"' not in answer.content.decode()
    client.force_login(ann)
    assert client.get("/admin/").status_code == 200


def test_successful_sign_in_resets_the_count_of_failures(ann: User) -> None:
    client = Client()
    for _ in range(3):
        for _ in range(settings.AXES_FAILURE_LIMIT - 1):
            assert sign_in(client, "wrong") == 200
        assert sign_in(client, PASSWORD) == 302
        client.logout()


def test_client_address_behind_a_proxy_is_the_last_forwarded_one(monkeypatch: pytest.MonkeyPatch) -> None:
    request = RequestFactory().get("/", headers={"X-Forwarded-For": "203.0.113.9, 198.51.100.7"})
    assert client_address(request) == "127.0.0.1"  # without a proxy anybody may write that header
    monkeypatch.setattr(settings, "HTTPS", True)
    assert client_address(request) == "198.51.100.7"


def test_invalid_tokens_are_throttled_per_address() -> None:
    client = Client(headers={"Authorization": "Token lle_guess"})
    answers = [client.get("/api/v1/environments/").status_code for _ in range(40)]
    assert answers[:30] == [401] * 30 and set(answers[30:]) == {429}
    other = Client(headers={"Authorization": "Token lle_guess"}, REMOTE_ADDR="192.0.2.9")
    assert other.get("/api/v1/environments/").status_code == 401
