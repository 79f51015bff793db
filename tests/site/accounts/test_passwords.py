"""Passwords reset and chosen through links in mails."""

import re

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client

pytestmark = pytest.mark.django_db
NEW = "a-new-long-passphrase"


def link_of(message: mail.EmailMessage) -> str:
    found = re.search(r"http://testserver(/\S+)", str(message.body))
    assert found is not None
    return found[1]


def choose_password(client: Client, link: str) -> str:
    form = client.get(link, follow=True)
    url = form.redirect_chain[-1][0] if form.redirect_chain else link
    return client.post(url, {"new_password1": NEW, "new_password2": NEW}, follow=True).content.decode()


def test_forgotten_password_is_replaced_by_a_link_that_works_once(client: Client) -> None:
    User.objects.create_user("ann", "ann@example.org", "the-old-passphrase")
    sent = client.post("/password/reset/", {"email": "Ann@example.org"}, follow=True)
    assert "is on its way" in sent.content.decode()
    (message,) = mail.outbox
    assert (message.to, "ann" in str(message.body)) == (["ann@example.org"], True)
    assert "The password is stored" in choose_password(client, link_of(message))
    assert User.objects.get(username="ann").check_password(NEW)
    assert "no longer valid" in choose_password(client, link_of(message))


def test_unknown_address_gets_the_same_page_and_no_mail(client: Client) -> None:
    sent = client.post("/password/reset/", {"email": "nobody@example.org"}, follow=True)
    assert "is on its way" in sent.content.decode()
    assert mail.outbox == []


def test_administrator_invites_users_without_a_password(client: Client, admin_client: Client) -> None:
    bob = User.objects.create_user("bob", "bob@example.org")
    eve = User.objects.create_user("eve")
    data = {"action": "invite", "_selected_action": [bob.pk, eve.pk]}
    page = admin_client.post("/admin/auth/user/", data, follow=True)
    assert {str(message) for message in page.context["messages"]} == {
        "A link was mailed to bob at bob@example.org.",
        "eve is inactive or has no mail address.",
    }
    (message,) = mail.outbox
    assert "The password is stored" in choose_password(client, link_of(message))
    bob.refresh_from_db()
    assert bob.check_password(NEW)


def test_a_user_without_a_password_cannot_reset_it_uninvited(client: Client) -> None:
    User.objects.create_user("bob", "bob@example.org")
    client.post("/password/reset/", {"email": "bob@example.org"})
    assert mail.outbox == []


def test_an_address_gets_three_mails_an_hour_and_the_page_does_not_tell(client: Client) -> None:
    User.objects.create_user("ann", "ann@example.org", "the-old-passphrase")
    for email in ["ann@example.org", "ANN@example.org", " ann@example.org", "ann@example.org"]:
        sent = client.post("/password/reset/", {"email": email}, follow=True)
        assert "is on its way" in sent.content.decode()
    assert len(mail.outbox) == 3


def test_a_client_may_request_ten_links_an_hour(client: Client) -> None:
    User.objects.create_user("ann", "ann@example.org", "the-old-passphrase")
    statuses = [client.post("/password/reset/", {"email": f"{n}@example.org"}).status_code for n in range(11)]
    assert statuses == [302] * 10 + [429]
    refused = client.post("/password/reset/", {"email": "ann@example.org"})
    assert "try again in an hour" in refused.content.decode()
    assert mail.outbox == []
    other = client.post("/password/reset/", {"email": "ann@example.org"}, REMOTE_ADDR="192.0.2.7")
    assert (other.status_code, len(mail.outbox)) == (302, 1)
