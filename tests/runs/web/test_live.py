"""A run in progress: what its page shows, what watching it costs, and its stream of events."""

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import cast

import httpx2
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import OperationalError, connection
from django.template.loader import render_to_string
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from hub.models import Case, Environment
from llmeval_site.accounts.tokens import create_token, revoke_token
from runs.models import Response, Run
from runs.results.stored import get_results
from runs.web import live
from runs.web.api import events
from runs.web.progress import count_quarantined
from runs.web.views import runs as runs_views
from tests.factories import accepted_defect, stored_outcomes, stored_response, stored_run, stored_version
from tests.markup import markup
from tests.members import member
from tests.processes import wait_until

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def free_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Free all places for streams: tests of permissions open streams in this process and do not read them."""
    monkeypatch.setattr(events, "_streams", threading.BoundedSemaphore(settings.EVENT_STREAMS))


HTMX = {"HX-Request": "true"}


@pytest.fixture
def run(db: None) -> Run:
    version = stored_version(cases=10)
    Environment.objects.update(latest=version, visibility=Environment.Visibility.PUBLISHED)
    run = stored_run(
        version,
        ["alpha"],
        status=Run.Status.RUNNING,
        finished_at=None,
        config={"name": "live", "attempts": 1, "limits": {"budget_usd": 2.0}},
    )
    stored_outcomes(run, "ppppffe---")
    Response.objects.update(cost_usd=0.1)
    return run


def shown(client: Client, run: Run) -> str:
    cache.clear()
    return markup(client.get(f"/runs/{run.pk}/progress/", headers=HTMX))


def test_progress_shows_accuracy_rate_time_left_budget_errors_and_latest(client: Client, run: Run) -> None:
    client.force_login(member())
    now = timezone.now()
    Run.objects.update(started_at=now - timedelta(minutes=5), ready_at=now - timedelta(minutes=6))
    for i, response in enumerate(Response.objects.order_by("-id")):
        Response.objects.filter(pk=response.pk).update(created_at=now - timedelta(seconds=10 * i))
    Response.objects.filter(status="errored").update(error_kind="timeout", reason="No reply within 60 s.")
    page = shown(client, run)
    assert "66.7 %" in page and "[29.6, 90.7]" in page  # 4 of 6; Wilson's interval
    assert "less than a minute" in page  # 7 responses in a good minute, and 3 are missing
    assert "$0.7000 of $2.00 <small>35.0 %</small>" in page
    errors, _, latest = page.partition("Latest responses")
    assert "timeout" in errors and "No reply within 60 s." in errors
    assert [name for name in ("c6", "c5", "c4", "c3", "c2", "c1", "c0") if f">{name}</a>" in latest] == [
        "c6",
        "c5",
        "c4",
        "c3",
        "c2",
        "c1",
    ]


def test_only_the_progress_which_is_kept_current_says_that_the_run_waits_for_a_worker(client: Client, run: Run) -> None:
    client.force_login(member())
    Response.objects.all().delete()
    Run.objects.update(status=Run.Status.QUEUED, started_at=None)
    hint = "Waiting for a worker; <code>make serve</code> starts one."
    assert hint in shown(client, run)
    page = markup(client.get(f"/runs/{run.pk}/"))
    assert page.count("make serve") == 1 and page.count(hint) == 1
    assert "make serve" not in markup(client.get(f"/runs/{run.pk}/", headers={**HTMX, "HX-Target": "responses"}))
    Run.objects.update(faults=1, message="The sandbox does not answer.")
    page = markup(client.get(f"/runs/{run.pk}/"))
    assert "Waiting: The sandbox does not answer." in page and "make serve" not in page
    Run.objects.update(status=Run.Status.RUNNING, faults=0, message="")
    assert "worker" not in shown(client, run)


def test_quarantined_cases_are_left_out_as_in_the_final_figures(client: Client, run: Run) -> None:
    client.force_login(member())
    for name in ("c4", "c6", "c9"):  # failed, errored, no response
        accepted_defect(Case.objects.get(external_id=name), hours_ago=1)
    page = shown(client, run)
    assert "80.0 %" in page and "2 to quarantined cases, left out" in page and "<strong>7 of 10</strong>" in page
    [cell] = live.event_of(run)["cells"]
    assert (cell["done"], cell["passed"], cell["failed"], cell["errored"], cell["quarantined"]) == (7, 4, 1, 0, 2)
    progress = live.get_shared_progress(run)
    Run.objects.filter(pk=run.pk).update(status=Run.Status.COMPLETED, finished_at=timezone.now())
    run.refresh_from_db()
    [final] = get_results(run)
    assert (final.accuracy.value, final.figures.statuses["errored"]) == (cell["accuracy"], cell["errored"])
    assert live.get_shared_progress(run)["cells"] == progress["cells"]


def test_environments_without_wrong_cases_need_no_query_each(run: Run) -> None:
    for number in range(5):
        version = stored_version(f"other-{number}", cases=2)
        run.environments.create(version=version, position=number + 1, case_count=2)
    with CaptureQueriesContext(connection) as captured:
        assert count_quarantined(run) == {}
    assert len(captured) == 1
    accepted_defect(Case.objects.get(external_id="c4", version__environment__slug="sums"), hours_ago=1)
    with CaptureQueriesContext(connection) as captured:
        assert [counts["failed"] for counts in count_quarantined(run).values()] == [1]
    assert len(captured) == 3


def test_rate_is_that_of_the_last_two_minutes_and_falls_while_nothing_is_stored() -> None:
    now = timezone.now()
    times = [now - timedelta(seconds=age) for age in (0, 10, 20, 30, 40, 50, 60, 3600)]
    start = now - timedelta(hours=1)
    assert live._rate(times, now, start) == 7.0
    assert live._rate(times, now + timedelta(seconds=59), start) == pytest.approx(7 * 60 / 119)
    assert live._rate(times, now + timedelta(hours=1), start) is None


def test_rate_of_the_first_minutes_counts_the_time_since_the_start(run: Run) -> None:
    now = timezone.now()
    burst = [now - timedelta(seconds=0.01 * i) for i in range(8)]
    earlier = [now - timedelta(seconds=age) for age in (40, 50)]  # stored before the run was interrupted and resumed
    assert live._rate(burst, now, now - timedelta(seconds=20)) == 24.0
    assert live._rate(burst + earlier, now, now - timedelta(seconds=20)) == 24.0
    assert live._rate(burst[:1] + earlier, now, now - timedelta(seconds=20)) is None
    fast = [now - timedelta(seconds=i / 100) for i in range(500)]  # all that are looked at: older ones are not counted
    assert live._rate(fast, now, now - timedelta(seconds=100)) == pytest.approx(500 * 60 / 4.99)
    run.started_at, run.ready_at = now - timedelta(hours=2), now - timedelta(seconds=20)
    assert live._last_start(run) == run.ready_at
    run.started_at = now
    assert live._last_start(run) == now


def test_interval_of_several_attempts_counts_cases_only(client: Client, run: Run) -> None:
    client.force_login(member())
    once = shown(client, run)
    run.config["attempts"] = 2
    run.save()
    twice = shown(client, run)
    assert "[29.6, 90.7]" in once and "[30.0, 90.3]" not in twice and "66.7 %" in twice


def test_accuracy_of_a_run_that_has_ended_is_that_of_its_report(run: Run) -> None:
    accepted_defect(Case.objects.get(external_id="c0"), hours_ago=1)
    assert live.event_of(run)["cells"][0]["accuracy"] == pytest.approx(3 / 5)
    run.status, run.finished_at = Run.Status.COMPLETED, timezone.now()
    run.save()
    (cell,), (result,) = live.event_of(run)["cells"], get_results(run)
    assert (cell["accuracy"], cell["passed"]) == (pytest.approx(3 / 5), 3)
    assert cell["interval"] == [result.accuracy.low, result.accuracy.high]


def test_unchanged_page_gets_nothing_and_watchers_share_one_computation(client: Client, run: Run) -> None:
    client.force_login(member())
    page = shown(client, run)
    address = page.partition('hx-get="')[2].partition('"')[0].replace("&amp;", "&")
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(address, headers=HTMX)
    assert answer.status_code == 204 and answer.content == b""
    assert not [query["sql"] for query in queries if "runs_response" in query["sql"]]
    stored_response(run, Case.objects.get(external_id="c7"))
    cache.clear()
    assert client.get(address, headers=HTMX)["HX-Trigger"] == "responses-stored"


def test_programs_share_the_computation_with_those_who_watch(client: Client, run: Run) -> None:
    client.force_login(member())
    shown(client, run)
    with CaptureQueriesContext(connection) as queries:
        progress = client.get(f"/api/v1/runs/{run.pk}/").json()["progress"]
    assert (progress["done"], progress["expected"], progress["cells"][0]["passed"]) == (7, 10, 4)
    assert not [query["sql"] for query in queries if "runs_response" in query["sql"]]
    stored_response(run, Case.objects.get(external_id="c7"))
    Run.objects.update(status=Run.Status.COMPLETED)
    assert client.get(f"/api/v1/runs/{run.pk}/").json()["progress"]["done"] == 8


def test_progress_is_rendered_once_for_all_who_watch(client: Client, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[str] = []

    def render(template: str, context: dict[str, object]) -> str:
        rendered.append(template)
        return render_to_string(template, context)

    monkeypatch.setattr(runs_views, "render_to_string", render)
    client.force_login(member())
    first = shown(client, run)
    client.force_login(member(name="another"))
    assert markup(client.get(f"/runs/{run.pk}/progress/", headers=HTMX)) == first
    assert len(rendered) == 1


@pytest.mark.parametrize(("seconds", "poll_s"), [(None, 2), (299, 2), (300, 5), (3599, 5), (3600, 10), (10**6, 10)])
def test_page_of_a_longer_run_asks_less_often(
    seconds: float | None, poll_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live.Snapshot, "seconds_left", seconds)
    snapshot = live.Snapshot({"done": 0, "expected": 1, "cost_usd": None, "cells": []}, [], None, [], [])
    assert live.LiveRun(snapshot, None, [], [], [], "").poll_s == poll_s


@pytest.mark.parametrize(("status", "seconds"), [("running", 1), ("cancelled", None)])
def test_run_that_has_ended_has_no_time_left(
    status: str, seconds: int | None, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live.Snapshot, "seconds_left", 0.4)
    run.status = status
    assert live.event_of(run)["seconds_left"] == seconds


@pytest.mark.parametrize(("watchers", "poll_s"), [(1, 2), (20, 2), (21, 3), (100, 10), (1000, 15)])
def test_pages_ask_less_often_if_many_watch(
    watchers: int, poll_s: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live.Snapshot, "seconds_left", 1.0)
    snapshot = live.get_snapshot(run)
    assert live.LiveRun(snapshot, None, [], [], [], "", watchers).poll_s == poll_s


def test_users_who_watch_are_counted_until_they_leave(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.clear()
    users = [member(name=f"user-{i}") for i in range(3)]
    assert [live.get_live_run(user, run).watchers for user in [*users, users[0]]] == [1, 2, 3, 3]
    monkeypatch.setattr(live, "_WATCHES_S", -1)
    assert live.get_live_run(users[0], run).watchers == 1


def test_reasons_that_are_withheld_are_not_shown(client: Client, run: Run) -> None:
    Environment.objects.update(held_out=True)
    Response.objects.filter(status="failed").update(reason="The answer is 42.")
    client.force_login(member("Curator", name="curator"))
    assert "The answer is 42." in shown(client, run)
    client.force_login(member(name="reader"))
    page = shown(client, run)
    assert "Held out" in page and "The answer is" not in page.partition("Latest responses")[2]


def test_stages_after_the_last_response_are_shown_with_their_progress(client: Client, run: Run) -> None:
    client.force_login(member())
    run.config |= {"judge": {"model": {}}, "review": {"pairs": "all"}}
    run.evaluated_at = timezone.now()
    run.tracking_state = Run.TrackingState.PENDING
    run.summaries = {"judge": {"error": "no reply"}}
    run.stage_progress = {"key": "review", "done": 3, "total": 8}
    run.save()
    page = shown(client, run)
    states = [line.partition('"badge ')[2].partition('"')[0] for line in page.split("<li>")[1:]]
    assert states == ["failed", "running", "waiting"]
    assert "3 of 8" in page and "Tracking in MLflow" in page


@pytest.mark.django_db(transaction=True)
def test_events_are_sent_until_the_run_has_ended(live_server: LiveServer, run: Run) -> None:
    _, key = create_token(user=member(), scopes=["read"])
    headers = {"Authorization": f"Token {key}", "Accept": "text/event-stream"}
    url = f"{live_server.url}/api/v1/runs/{run.pk}/events"
    received: list[tuple[str, str, dict[str, object]]] = []
    with httpx2.stream("GET", url, headers=headers, timeout=30) as answer:
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/event-stream")
        event = event_id = ""
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            event, event_id = (value if name == "event" else event), (value if name == "id" else event_id)
            if name == "data":
                received.append((event, event_id, json.loads(value)))
                cache.clear()
                Run.objects.filter(pk=run.pk).update(status=Run.Status.COMPLETED, finished_at=timezone.now())
    assert [name for name, _, _ in received] == ["progress", "end"]
    first, last = received[0][2], received[1][2]
    assert (first["done"], first["expected"], first["budget_usd"]) == (7, 10, 2.0)
    assert first["cells"][0]["accuracy"] == pytest.approx(4 / 6)  # type: ignore[index]
    assert (first["status"], last["status"]) == ("running", "completed")


def test_stream_ends_when_its_user_may_no_longer_see_the_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LOOK_EVERY_S", 0.0)
    user = member()
    stream = iter(events.EventStream(lambda: User.objects.get(pk=user.pk), run, ""))
    assert next(stream).startswith(b"retry") and b"event: progress" in next(stream)
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE)
    cache.clear()
    assert list(stream) == []


@pytest.mark.parametrize("revoked", ["token", "account"])
def test_stream_ends_when_its_request_would_be_refused(
    client: Client, run: Run, revoked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "LOOK_EVERY_S", 0.0)
    user = member()
    token, key = create_token(user=user, scopes=["read"])
    answer = client.get(f"/api/v1/runs/{run.pk}/events", headers={"Authorization": f"Token {key}"})
    stream = iter(cast("Iterator[bytes]", answer.streaming_content))  # type: ignore[attr-defined]
    assert next(stream).startswith(b"retry") and b"event: progress" in next(stream)
    if revoked == "token":
        revoke_token(token)
    else:
        User.objects.filter(pk=user.pk).update(is_active=False)
    Run.objects.filter(pk=run.pk).update(status=Run.Status.COMPLETED, finished_at=timezone.now())
    cache.clear()
    assert list(stream) == []


def test_stream_ends_when_the_database_does_not_work(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LOOK_EVERY_S", 0.0)
    user = member()
    stream = iter(events.EventStream(lambda: user, run, ""))
    assert next(stream).startswith(b"retry") and b"event: progress" in next(stream)

    def fail(*_: object) -> Run:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(events, "get_visible_run", fail)
    assert list(stream) == []


def test_stream_does_not_repeat_the_last_event_and_places_are_limited(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "LASTS_S", 0.0)
    user = member()
    streams = [events.EventStream(lambda: user, run, "") for _ in range(3)]
    with pytest.raises(events.TooManyRequests):
        events.EventStream(lambda: user, run, "")
    text = b"".join(streams[0]).decode()
    for stream in streams:
        stream.close()
        stream.close()
    event_id = text.partition("id: ")[2].partition("\n")[0]
    again = events.EventStream(lambda: user, run, event_id)
    assert b"".join(again) == b"retry: 2000\n\n"
    again.close()


@pytest.mark.django_db(transaction=True)
def test_place_is_free_again_after_a_client_has_left(live_server: LiveServer, run: Run) -> None:
    _, key = create_token(user=member(), scopes=["read"])
    url = f"{live_server.url}/api/v1/runs/{run.pk}/events"
    headers = {"Authorization": f"Token {key}"}
    with httpx2.stream("GET", url, headers=headers, timeout=30) as answer:
        next(answer.iter_lines())
        before = events._streams._value
    Run.objects.filter(pk=run.pk).update(status=Run.Status.COMPLETED, finished_at=timezone.now())
    wait_until(lambda: events._streams._value == before + 1)
