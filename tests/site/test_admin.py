"""The admin of tokens and webhooks: it reveals no secrets."""

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from llmeval_site.accounts.tokens import create_token
from llmeval_site.models import Webhook
from llmeval_site.webhooks.deliveries import create_webhook
from tests.members import member

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client: Client) -> Client:
    user = member(staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_apitoken", "view_webhook"]))
    client.force_login(user)
    return client


def test_secrets_are_not_found_letter_by_letter(staff: Client) -> None:
    webhook = create_webhook(user=member(name="other"), url="https://example.org/", events=[Webhook.Event.FAILED])
    token, _ = create_token(user=webhook.user, scopes=["read"])
    for page, field, secret in (("webhook", "secret", webhook.secret), ("apitoken", "digest", token.digest)):
        address = f"/admin/llmeval_site/{page}/"
        assert staff.get(address).status_code == 200
        assert secret not in staff.get(f"{address}{webhook.pk if page == 'webhook' else token.pk}/change/").text
        for lookup in (field, f"{field}__startswith", f"{field}__gt"):
            assert staff.get(address, {lookup: secret[:7]}).status_code == 400, lookup
