"""Metrics for Prometheus: figures of the database, and the requests that the site has served.

The database has the state of all workers, so its figures are complete in every process. The counters of
requests are those of all processes of one web server (gunicorn.conf.py).
"""

import logging
import os
from collections.abc import Iterator

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.db.models import Count, Min, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from hub.common import leases
from hub.models import GateRequest
from preferences.models import Preference
from review.models import Pair
from runs.models import EpisodeSession, Response, Run

logger = logging.getLogger(__name__)


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Respond with all metrics as text, or with 404 if LLMEVAL_METRICS_TOKEN is not sent as `Authorization: Bearer`."""
    given = request.headers.get("Authorization", "")
    if not settings.METRICS_TOKEN or not constant_time_compare(given, f"Bearer {settings.METRICS_TOKEN}"):
        raise Http404
    database = CollectorRegistry()
    database.register(DatabaseCollector())
    return HttpResponse(generate_latest(_requests()) + generate_latest(database), content_type=CONTENT_TYPE_LATEST)


def _requests() -> CollectorRegistry:
    """Return the registry of this process, or one of all processes of the web server."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


class DatabaseCollector(Collector):
    """Figures that are read from the database for each request to /metrics, with a fixed number of queries."""

    def collect(self) -> Iterator[Metric]:
        yield from _run_metrics()
        yield from _review_metrics()
        yield _gauge(
            "llmeval_request_slots",
            "Slots for requests to models that all workers hold; 0 if Redis is not the broker or does not answer.",
            _held_slots(),
        )
        yield _gauge(
            "llmeval_environment_checks_waiting",
            "Uploaded environments whose gates have not finished.",
            GateRequest.objects.count(),
        )
        yield _gauge(
            "llmeval_episodes_open",
            "Episodes of trainers that have not ended.",
            EpisodeSession.objects.filter(done=False, expires_at__gt=timezone.now()).count(),
        )


def _run_metrics() -> Iterator[Metric]:
    now = timezone.now()
    by_status = dict(Run.objects.order_by().values_list("status").annotate(Count("pk")))
    runs = GaugeMetricFamily("llmeval_runs", "Runs by status.", labels=["status"])
    for status in Run.Status:
        runs.add_metric([status.value], by_status.get(status, 0))
    yield runs
    oldest = Run.objects.filter(status=Run.Status.QUEUED).aggregate(oldest=Min("created_at"))["oldest"]
    yield _gauge(
        "llmeval_queue_oldest_run_seconds",
        "Seconds since the creation of the oldest queued run; 0 if none waits.",
        (now - oldest).total_seconds() if oldest else 0,
    )
    yield _gauge(
        "llmeval_queue_responses",
        "Missing responses of the queued runs.",
        Run.objects.filter(status=Run.Status.QUEUED).aggregate(total=Sum("remaining"))["total"] or 0,
    )
    yield CounterMetricFamily(
        "llmeval_lease_takeovers",
        "How often a worker continued a run whose process had died.",
        value=Run.objects.aggregate(total=Sum("takeovers"))["total"] or 0,
    )
    yield _gauge(
        "llmeval_runs_without_worker",
        "Running runs whose lease has lapsed: their worker has died, and no other has taken them over yet.",
        Run.objects.filter(leases.lapsed(), status=Run.Status.RUNNING).count(),
    )
    yield _gauge(
        "llmeval_spend_usd",
        "Known cost of all runs in US dollars.",
        Run.objects.aggregate(total=Sum("cost_usd"))["total"] or 0,
    )
    yield CounterMetricFamily("llmeval_responses_stored", "Responses that were ever stored.", value=_last_response())


def _last_response() -> int:
    """Return the last number that the database gave to a response.

    It is exact enough for a rate, needs no count over the largest table, and does not fall when responses are removed.
    """
    table = Response._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_sequence_last_value(pg_get_serial_sequence(%s, 'id'))", [table])
        else:
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
        row = cursor.fetchone()
    return int(row[0] or 0) if row else 0


def _held_slots() -> int:
    if not settings.CELERY_BROKER_URL.startswith(("redis://", "rediss://")):
        return 0
    from redis.exceptions import RedisError

    from runs.limits.redis_shares import count_held_slots  # slow to import, and needed with Redis only

    try:
        return count_held_slots(settings.CELERY_BROKER_URL)
    except (RedisError, OSError) as error:
        logger.warning("llmeval_request_slots is unknown: Redis does not answer (%s)", error)
        return 0


def _review_metrics() -> Iterator[Metric]:
    yield _gauge(
        "llmeval_pairs_waiting",
        "Pairs that wait for a reviewer.",
        Pair.objects.filter(free__gt=0).count(),
    )
    preferences = GaugeMetricFamily("llmeval_preferences", "Preferences by source.", labels=["source"])
    by_source = dict(Preference.objects.order_by().values_list("source").annotate(Count("pk")))
    for source in Preference.Source:
        preferences.add_metric([source.value], by_source.get(source, 0))
    yield preferences


def _gauge(name: str, description: str, value: float) -> Metric:
    return GaugeMetricFamily(name, description, value=value)
