"""Tests of addresses without their slash at the end."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

pytestmark = pytest.mark.django_db


def test_post_without_the_last_slash_is_sent_again_as_post(client: Client) -> None:
    client.force_login(User.objects.create_superuser("boss"))
    answer = client.post("/api/v1/webhooks", "{}", content_type="application/json")
    assert (answer.status_code, answer.headers["Location"]) == (308, "/api/v1/webhooks/")
    answer = client.post("/api/v1/webhooks", "{}", content_type="application/json", follow=True)
    assert answer.status_code == 400 and answer.json()["errors"][0]["path"] == "url"
    assert client.get("/runs?q=a").headers["Location"] == "/runs/?q=a"
