"""Liveness and readiness."""

import pytest
from django.db.utils import OperationalError
from django.test import Client

from llmeval_site import health


def test_liveness_needs_no_sign_in_and_no_database(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


@pytest.mark.django_db
def test_readiness_names_each_part(client: Client) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert set(answer.json()["parts"]) == set(health.CHECKS)


@pytest.mark.django_db
def test_a_part_that_fails_makes_the_site_unready_and_tells_no_detail(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise OperationalError("password wrong for llmeval@10.0.0.1")

    monkeypatch.setitem(health.CHECKS, "database", broken)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"]["database"] == "unavailable"
    assert b"password" not in answer.content
