"""Metrics for Prometheus."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from datetime import timedelta
from pathlib import Path

import pytest
import redis
from django.conf import settings
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoAssertNumQueries, Settings

from runs.limits.redis_shares import count_held_slots
from runs.models import Run
from runs.queue import take_next_lease
from tests.factories import stored_outcomes, stored_run, stored_version
from tests.services import unavailable
from tests.site.server.web_server import environment_of, web_server

TOKEN = "a-token-of-the-test"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def samples(text: str) -> dict[tuple[str, str], float]:
    """Return the values by name and by the value of the first label."""
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def _metrics_of_the_dashboard() -> set[str]:
    text = (settings.BASE_DIR / "deploy" / "grafana" / "llm-eval.json").read_text(encoding="utf-8")
    expressions = [target["expr"] for panel in json.loads(text)["panels"] for target in panel["targets"]]
    return {name for expression in expressions for name in re.findall(r"(?:llmeval|django)_\w+", expression)}


@pytest.mark.django_db
def test_metrics_count_runs_by_status_and_show_lapsed_leases(client: Client, settings: Settings) -> None:
    settings.METRICS_TOKEN = TOKEN
    now = timezone.now()
    for status, lease_until in ((Run.Status.QUEUED, None), (Run.Status.RUNNING, now - timedelta(seconds=5))):
        Run.objects.create(name="a", config={}, config_hash="0", status=status, lease_until=lease_until, cost_usd=0.5)
    Run.objects.filter(status=Run.Status.QUEUED).update(created_at=now - timedelta(minutes=10))
    response = client.get("/metrics", headers=BEARER)
    values = samples(response.content.decode())
    assert response.headers["Content-Type"].startswith("text/plain")
    assert values["llmeval_runs", "queued"] == values["llmeval_runs", "running"] == 1
    assert values["llmeval_runs", "failed"] == 0
    assert values["llmeval_runs_without_worker", ""] == 1
    assert 600 <= values["llmeval_queue_oldest_run_seconds", ""] < 660
    assert values["llmeval_spend_usd", ""] == 1
    assert values["llmeval_request_slots", ""] == 0


@pytest.mark.django_db
def test_counter_of_responses_does_not_fall_when_responses_are_removed(client: Client, settings: Settings) -> None:
    settings.METRICS_TOKEN = TOKEN
    run = stored_run(stored_version())
    stored_outcomes(run, "ppff")
    name = ("llmeval_responses_stored_total", "")
    before = samples(client.get("/metrics", headers=BEARER).content.decode())[name]
    assert before >= 4
    run.delete()
    assert samples(client.get("/metrics", headers=BEARER).content.decode())[name] == before


@pytest.mark.django_db
def test_metrics_show_responses_in_the_queue_and_takeovers(client: Client, settings: Settings) -> None:
    settings.METRICS_TOKEN = TOKEN
    version = stored_version()
    stored_run(version, status=Run.Status.QUEUED, remaining=7, lease_owner="", lease_until=None)
    lapsed = timezone.now() - timedelta(minutes=2)
    died = stored_run(version, status=Run.Status.RUNNING, lease_owner="host:1:dead", lease_until=lapsed, remaining=1)
    taken = take_next_lease(owner="host:2:alive")
    assert taken == died
    again = take_next_lease(owner="host:3:alive")
    assert again is not None and again.takeovers == 0
    values = samples(client.get("/metrics", headers=BEARER).content.decode())
    assert values["llmeval_queue_responses", ""] == 7
    assert values["llmeval_lease_takeovers_total", ""] == 1


@pytest.mark.redis
@pytest.mark.django_db
def test_metrics_show_the_slots_that_workers_hold_in_redis(client: Client, settings: Settings) -> None:
    settings.METRICS_TOKEN = TOKEN
    settings.CELERY_BROKER_URL = os.environ.get("LLMEVAL_TEST_REDIS", "redis://127.0.0.1:6379/4")
    try:
        connection = redis.Redis.from_url(settings.CELERY_BROKER_URL)
        before = count_held_slots(settings.CELERY_BROKER_URL)
    except redis.RedisError as error:
        unavailable("redis", str(error))
    holders = {"a": {"slots": 5, "until": time.time() + 60}, "dead": {"slots": 9, "until": time.time() - 60}}
    connection.set("llmeval:limits:of-the-test", json.dumps({"holders": holders}), ex=60)
    try:
        values = samples(client.get("/metrics", headers=BEARER).content.decode())
    finally:
        connection.delete("llmeval:limits:of-the-test")
    assert values["llmeval_request_slots", ""] == before + 5


@pytest.mark.django_db
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}])
def test_metrics_are_hidden_without_the_token(client: Client, settings: Settings, headers: dict[str, str]) -> None:
    settings.METRICS_TOKEN = TOKEN
    assert client.get("/metrics", headers=headers).status_code == 404


@pytest.mark.django_db
def test_metrics_do_not_exist_if_no_token_is_set(client: Client) -> None:
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404


@pytest.mark.django_db
def test_metrics_take_a_fixed_number_of_queries(
    client: Client, settings: Settings, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    settings.METRICS_TOKEN = TOKEN
    for status in Run.Status:
        Run.objects.create(name="a", config={}, config_hash="0", status=status)
    with django_assert_num_queries(11):
        client.get("/metrics", headers=BEARER)


@pytest.mark.exhaustive
def test_counters_of_requests_add_up_over_the_processes_of_the_web_server(tmp_path: Path) -> None:
    environment = environment_of(tmp_path, {"LLMEVAL_METRICS_TOKEN": TOKEN})
    migrate = [sys.executable, str(settings.BASE_DIR / "manage.py"), "migrate", "-v", "0"]
    subprocess.run(migrate, env=environment, cwd=tmp_path, check=True)
    with web_server(tmp_path, environment) as port:
        for _ in range(20):  # each on a connection of its own, so that both processes serve some
            urllib.request.urlopen(f"http://127.0.0.1:{port}/login/").close()
        request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=BEARER)
        with urllib.request.urlopen(request) as response:
            values = samples(response.read().decode())
    assert values["django_http_responses_total_by_status_total", "200"] >= 20
    assert _metrics_of_the_dashboard() <= {name for name, _ in values}
    assert values["llmeval_runs", "running"] == 0
