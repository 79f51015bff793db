"""Conversations that are too long for the model: only a resume with `retry_too_long` requests them again."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from hub.models import Environment
from runs.missing import is_run_complete
from runs.models import Response, Run
from runs.results.aggregate import aggregate_run
from runs.results.warnings import warnings
from tests.commands import run_command
from tests.endpoint import Answer, endpoint
from tests.members import member
from tests.runs.capitals import CAPITALS, all_passed, answer_capital, config_text, start

pytestmark = pytest.mark.django_db(transaction=True)

TOO_LONG = Answer({"error": {"code": "context_length_exceeded", "message": "8193 tokens"}}, 400)


def answer_all_but_peru(request: dict[str, Any], number: int) -> Answer:
    return TOO_LONG if "Peru" in json.dumps(request) else answer_capital(request)


@pytest.fixture
def finished(folder: Path) -> Run:
    """Return a run with a response whose conversation was too long."""
    with endpoint(answer_all_but_peru) as server:
        start(folder, config_text(server.url, concurrency=1))
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    return Run.objects.get()


@pytest.fixture(autouse=True)
def prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs.management.commands.eval.call_command", lambda name, **_: None)


def test_resume_requests_it_again_only_with_the_option(folder: Path) -> None:
    config = folder / "eval.yaml"
    answers = [answer_all_but_peru]
    with endpoint(lambda request, number: answers[-1](request, number)) as server:
        config.write_text(config_text(server.url, concurrency=1))
        said = run_command("eval", "--config", config, code=1)
        run = Run.objects.get()
        assert "1 response whose conversation is too long" in said
        assert f"eval --resume {run.pk} --retry-too-long" in said
        before = aggregate_run(run)[0].figures
        assert (before.errors, before.statuses["passed"]) == ({"too_long": 1}, len(CAPITALS) - 1)

        said = run_command("eval", "--resume", run.pk, code=1)
        assert "is complete: no response is to be requested" in said
        assert len(server.requests) == len(CAPITALS)

        run_command("eval", "--resume", run.pk, "--retry-too-long", code=1)  # it is still too long
        assert len(server.requests) == len(CAPITALS) + 1
        run.refresh_from_db()
        assert is_run_complete(run) and aggregate_run(run)[0].figures.accuracy == before.accuracy

        answers.append(lambda request, number: answer_capital(request))
        run_command("eval", "--resume", run.pk, "--retry-too-long")
    run.refresh_from_db()
    assert run.status == "completed" and all_passed(run)


def test_retry_that_is_interrupted_is_continued_by_any_resume(finished: Run, client: Client) -> None:
    client.force_login(member("Runner"))
    client.post(f"/runs/{finished.pk}/resume/", {"retry_too_long": "1"})
    Run.objects.update(status=Run.Status.INTERRUPTED)
    assert "1 missing" in client.get(f"/runs/{finished.pk}/").getvalue().decode()


def test_option_belongs_to_resume() -> None:
    said = run_command("eval", "--env", "capitals", "--model", "small", "--retry-too-long", code=2)
    assert "--retry-too-long belongs to --resume" in said


def test_report_counts_them_and_says_how_to_request_them(finished: Run) -> None:
    [warning] = [line for line in warnings(finished, aggregate_run(finished)) if "too long" in line]
    assert "1 response: small on capitals" in warning
    assert "`--retry-too-long`" in warning and "`retry_too_long` over REST" in warning


def test_page_offers_to_request_them_again(client: Client, finished: Run) -> None:
    client.force_login(member("Runner"))
    url = f"/runs/{finished.pk}/"
    page = client.get(url).getvalue().decode()
    assert 'name="retry_too_long"' in page and "missing</small>" not in page
    assert "The run is complete" in client.post(f"{url}resume/", follow=True).getvalue().decode()
    client.post(f"{url}resume/", {"retry_too_long": "1"})
    assert Run.objects.get().status == "queued"
    assert not Response.objects.filter(error_kind="too_long").exists()


def test_rest_requests_them_again_only_if_it_is_told_to(client: Client, finished: Run) -> None:
    client.force_login(member("Runner"))

    def post(body: object) -> Any:
        return client.post(f"/api/v1/runs/{finished.pk}/resume", json.dumps(body), content_type="application/json")

    assert post({}).json()["status"] == post({"retry_too_long": False}).json()["status"] == "completed"
    assert post({"retry_too_long": "maybe"}).status_code == 400
    assert post({"retry_too_long": True}).json()["status"] == "queued"
