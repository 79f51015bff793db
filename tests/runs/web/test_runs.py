"""Pages of runs: list, progress and results of a run, responses, comparison, models, past results."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hub.common.errors import UserError
from hub.models import Case, Environment
from hub.services import import_bundle
from runs.leases import take_lease
from runs.models import ModelEndpoint, Response, Run
from runs.results import history
from runs.services import resume_run
from runs.web import queries as browsing
from tests.factories import accepted_defect, stored_outcomes, stored_response, stored_run, stored_score, stored_version
from tests.markup import markup
from tests.members import member

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(client: Client) -> User:
    user = member("Runner")
    client.force_login(user)
    return user


def public_version(slug: str = "sums", **fields: Any) -> Any:
    version = stored_version(slug, **fields)
    Environment.objects.filter(slug=slug).update(latest=version, visibility=Environment.Visibility.PUBLISHED)
    return version


@pytest.fixture
def run(user: User) -> Run:
    run = stored_run(public_version(cases=10), ["alpha", "beta"], name="first")
    stored_outcomes(run, "ppppppppff", model="alpha")
    stored_outcomes(run, "pppppffeu-", model="beta")
    return run


def page(client: Client, url: str, **headers: str) -> str:
    answer = client.get(url, headers=headers)
    assert answer.status_code == 200
    return answer.getvalue().decode()


def test_run_list_filters_by_name_status_environment_and_model(client: Client, run: Run) -> None:
    other = stored_run(public_version("desk"), ["gamma"], name="second", status=Run.Status.FAILED)
    numbers = {"first": f'href="/runs/{run.pk}/"', "second": f'href="/runs/{other.pk}/"'}
    for query, expected in {
        "": {"first", "second"},
        "?q=SEC": {"second"},
        "?status=completed": {"first"},
        "?environment=desk": {"second"},
        "?model=beta": {"first"},
        "?model=beta&environment=desk": set(),
    }.items():
        shown = page(client, f"/runs/{query}")
        assert {name for name, link in numbers.items() if link in shown} == expected, query


def test_run_list_with_an_invalid_filter_does_not_claim_that_there_are_no_runs(client: Client, run: Run) -> None:
    answer = client.get("/runs/?page=2")
    assert answer.status_code == 400
    shown = answer.content.decode()
    assert "page is not a parameter of this list" in shown
    assert "There are no runs yet" not in shown


def test_cost_is_shown_only_if_price_is_known(client: Client, run: Run) -> None:
    response = Response.objects.filter(run_model__label="alpha")[0]
    urls = ("/runs/", f"/runs/{run.pk}/", f"/responses/{response.pk}/", "/models/alpha/")
    for url in urls:
        assert "$0" not in page(client, url), url
    run.models.filter(label="alpha").update(spec={"price": {"input": 1.0, "output": 2.0}})
    for url in urls:
        assert "$0" in page(client, url), url


def test_cost_with_unknown_part_is_shown_as_unknown(client: Client, run: Run) -> None:
    run.models.filter(label="alpha").update(spec={"price": {"input": 1.0, "output": 2.0}})
    responses = Response.objects.filter(run_model__label="alpha").order_by("id")
    responses.update(cost_usd=0.5)
    responses.filter(pk=responses[0].pk).update(cost_usd=None, role_cost_usd=None)
    Run.objects.filter(pk=run.pk).update(cost_usd=None)
    for url in ("/runs/", "/models/alpha/"):
        assert "$" not in page(client, url), url
    shown = page(client, f"/runs/{run.pk}/")
    assert "$" not in shown and "1 response of alpha on sums@1.0.0 came without token counts" in shown
    shown = markup(page(client, f"/responses/{responses[0].pk}/"))
    assert "the endpoint reported no token counts" in shown and "an unknown cost for role models" in shown
    assert "$0.5000" in page(client, f"/responses/{responses[1].pk}/")
    answer = client.get(f"/api/v1/runs/{run.pk}/").json()
    assert (answer["cost_usd"], answer["progress"]["cost_usd"]) == (None, None)


def test_empty_run_list_explains_how_to_start_a_run(client: Client, user: User) -> None:
    assert "make eval" in page(client, "/runs/")


def test_ended_run_shows_figures_intervals_and_warnings(client: Client, run: Run) -> None:
    shown = page(client, f"/runs/{run.pk}/")
    assert "80.0 %" in shown and "[47.9, 95.4]" in shown
    assert "beta on sums@1.0.0 is incomplete: 7 of 10 responses are scored" in shown
    assert "status=failed&amp;model=beta&amp;environment=sums#responses" in shown
    assert "hx-trigger" not in shown.partition("<main")[2].partition('id="responses-title"')[0]


def test_quarantined_case_is_left_out_with_a_note(client: Client, run: Run) -> None:
    accepted_defect(Case.objects.get(external_id="c9"), hours_ago=1)
    shown = page(client, f"/runs/{run.pk}/")
    assert "Left out of sums@1.0.0, because a curator found it wrong: 1 case." in shown
    assert "88.9 %" in shown


def test_counts_and_reasons_of_results_link_to_as_many_responses(client: Client, run: Run) -> None:
    accepted_defect(Case.objects.get(external_id="c9"), hours_ago=1)
    shown = markup(page(client, f"/runs/{run.pk}/?status=failed&reason=It+is+wrong."))
    counts = re.findall(r'<a href="(\?[^"]*)#responses">([\d,]+)</a></td>', shown)
    reasons = re.findall(r'<a href="(\?reason=[^"]*)#responses">.*?data-label="responses">(\d+)<', shown)
    assert len(counts) == 6 and reasons
    for query, count in counts + reasons:
        listed = page(client, f"/runs/{run.pk}/{query.replace('&amp;', '&')}", HX_Target="responses")
        assert listed.count("data-open") == int(count), query
    filtered = page(client, f"/runs/{run.pk}/{counts[1][0].replace('&amp;', '&')}")
    assert '<option value="counted" selected>without quarantined cases</option>' in filtered
    answer = client.get(f"/api/v1/runs/{run.pk}/responses/", {"flag": "counted"})
    assert "c9" not in {item["case"] for item in answer.json()["results"]}


def test_responses_are_filtered_by_status_model_flag_and_text(client: Client, run: Run) -> None:
    Response.objects.filter(case__external_id="c0", run_model__label="alpha").update(truncated=True)
    Response.objects.filter(case__external_id="c1", run_model__label="alpha").update(stop="turns", reason="too long")

    def cases(query: str) -> list[str]:
        shown = page(client, f"/runs/{run.pk}/?{query}", HX_Target="responses")
        return [f"c{i}" for i in range(10) for _ in range(shown.count(f">c{i}</a>"))]

    assert cases("status=failed&model=alpha") == ["c8", "c9"]
    assert cases("status=errored") == ["c7"]
    assert cases("flag=truncated") == ["c0"]
    assert cases("flag=limit") == ["c1"]
    assert cases("q=TOO+LONG") == ["c1"]
    assert cases("q=c3") == ["c3", "c3"]
    assert cases("environment=other") == []


def test_stored_results_are_recomputed_after_resume(client: Client, run: Run) -> None:
    page(client, f"/runs/{run.pk}/")
    with CaptureQueriesContext(connection) as queries:
        page(client, f"/runs/{run.pk}/")
    assert not any("execution_status" in query["sql"] and "responses" not in query["sql"] for query in queries[:4])
    Response.objects.filter(status="failed").update(status="passed")
    assert "80.0 %" in page(client, f"/runs/{run.pk}/")
    run.finished_at = timezone.now()
    run.save()
    assert "100.0 %" in page(client, f"/runs/{run.pk}/")


# ---- progress of a run -----------------------------------------------------------------------------------------------


@pytest.fixture
def going(run: Run) -> Run:
    Run.objects.filter(pk=run.pk).update(status=Run.Status.RUNNING, finished_at=None)
    run.refresh_from_db()
    return run


def test_progress_shows_counts_until_run_ends(client: Client, going: Run) -> None:
    shown = page(client, f"/runs/{going.pk}/")
    assert "<strong>19 of 20</strong>" in shown and 'hx-trigger="every 2s"' in shown
    part = page(client, f"/runs/{going.pk}/progress/", HX_Request="true")
    assert part.strip().startswith('<section id="progress"') and "Accuracy so far" in part
    Run.objects.filter(pk=going.pk).update(status=Run.Status.COMPLETED, finished_at=timezone.now())
    assert client.get(f"/runs/{going.pk}/progress/", headers={"HX-Request": "true"})["HX-Refresh"] == "true"
    assert client.get(f"/runs/{going.pk}/progress/")["Location"] == f"/runs/{going.pk}/"


def test_progress_updates_status_and_response_list(client: Client, going: Run) -> None:
    shown = markup(page(client, f"/runs/{going.pk}/?status=failed"))
    assert f'hx-get="/runs/{going.pk}/progress/?done=19&amp;seen=' in shown
    assert f'hx-get="/runs/{going.pk}/?status=failed" hx-trigger="responses-stored from:body"' in shown
    htmx = {"HX-Request": "true"}
    answer = client.get(f"/runs/{going.pk}/progress/?done=19", headers=htmx)
    assert "HX-Trigger" not in answer
    assert '<span id="outcome" hx-swap-oob="true"><span class="badge running">running</span></span>' in (
        answer.content.decode()
    )
    assert client.get(f"/runs/{going.pk}/progress/?done=0", headers=htmx)["HX-Trigger"] == "responses-stored"


def test_progress_updates_when_the_run_was_started(client: Client, going: Run) -> None:
    Run.objects.filter(pk=going.pk).update(status=Run.Status.QUEUED, started_at=None)
    shown = page(client, f"/runs/{going.pk}/")
    assert shown.count('id="began"') == 1 and '<span id="began">created ' in shown
    Run.objects.filter(pk=going.pk).update(status=Run.Status.RUNNING, started_at=timezone.now())
    part = markup(page(client, f"/runs/{going.pk}/progress/", HX_Request="true"))
    assert '<span id="began" hx-swap-oob="true">started ' in part


def test_results_are_shown_before_later_stages_end(client: Client, going: Run) -> None:
    assert "/report" not in page(client, f"/runs/{going.pk}/")
    Run.objects.filter(pk=going.pk).update(evaluated_at=timezone.now())
    htmx = {"HX-Request": "true"}
    assert client.get(f"/runs/{going.pk}/progress/?done=19", headers=htmx)["HX-Refresh"] == "true"
    shown = page(client, f"/runs/{going.pk}/")
    assert "80.0 %" in shown and "All responses are stored" in shown and ">finishing</span>" in shown
    again = client.get(f"/runs/{going.pk}/progress/", headers=htmx)
    assert "HX-Refresh" not in again and "All responses are stored" in again.content.decode()
    Run.objects.filter(pk=going.pk).update(status=Run.Status.COMPLETED, finished_at=timezone.now())
    assert client.get(f"/runs/{going.pk}/progress/", headers=htmx)["HX-Refresh"] == "true"


@pytest.mark.parametrize(
    ("outcomes", "kind", "label"),
    [
        ("pppppppppp", "completed", "completed"),
        ("ppppppppfe", "incomplete", "completed with errors"),
        ("eeeeeeeeee", "errored", "all errored"),
    ],
)
def test_outcome_names_errors_of_completed_run(
    client: Client, user: User, outcomes: str, kind: str, label: str
) -> None:
    run = stored_run(public_version(cases=10), ["alpha"], name="first")
    stored_outcomes(run, outcomes)
    badge = f'<span class="badge {kind}">{label}</span>'
    assert badge in page(client, f"/runs/{run.pk}/")
    assert badge in page(client, "/runs/")
    assert (badge in page(client, "/")) == ("e" in outcomes)
    assert f"Run {run.pk}, {label}." in page(client, f"/runs/{run.pk}/report")
    assert client.get(f"/api/v1/runs/{run.pk}/").json()["status"] == "completed"


def test_cancel_ends_queued_run_and_requests_cancellation_of_running_run(client: Client, going: Run) -> None:
    take_lease(run=going, owner="worker")
    client.post(f"/runs/{going.pk}/cancel/")
    going.refresh_from_db()
    assert (going.status, going.cancel_requested) == (Run.Status.RUNNING, True)
    assert "Stopping within seconds" in page(client, f"/runs/{going.pk}/")
    Run.objects.filter(pk=going.pk).update(status=Run.Status.QUEUED, cancel_requested=False, lease_until=None)
    client.post(f"/runs/{going.pk}/cancel/")
    going.refresh_from_db()
    assert going.status == Run.Status.CANCELLED
    answer = client.post(f"/runs/{going.pk}/cancel/", follow=True)
    assert "had already ended" in answer.content.decode()


def test_resume_queues_ended_run_once(
    client: Client, run: Run, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    sent: list[int] = []
    monkeypatch.setattr("runs.execution.dispatch._send", sent.append)
    Run.objects.filter(pk=run.pk).update(status=Run.Status.INTERRUPTED)
    with django_capture_on_commit_callbacks(execute=True):
        client.post(f"/runs/{run.pk}/resume/")
        answer = client.post(f"/runs/{run.pk}/resume/", follow=True)
    run.refresh_from_db()
    assert (run.status, sent) == (Run.Status.QUEUED, [run.pk])
    assert "already in progress" in answer.content.decode()


def test_run_is_resumed_only_if_no_model_that_it_would_call_is_disabled(client: Client, user: User) -> None:
    run = stored_run(stored_version(cases=1), ["small", "large"], status="interrupted", created_by=user)
    Environment.objects.update(visibility="published")
    stored_response(run, Case.objects.get(), model="small")
    for name in ("small", "large"):
        ModelEndpoint.objects.create(name=name, model="m")
    ModelEndpoint.objects.filter(name="large").update(enabled=False)
    for resume in (lambda: resume_run(run=run, user=user), lambda: resume_run(run=run)):
        with pytest.raises(UserError, match=f"Run {run.pk} cannot be resumed: the model 'large' is disabled; staff"):
            resume()
    assert "&#x27;large&#x27; is disabled" in client.post(f"/runs/{run.pk}/resume/", follow=True).content.decode()
    assert "'large' is disabled" in client.post(f"/api/v1/runs/{run.pk}/resume").json()["message"]
    assert Run.objects.get(pk=run.pk).status == "interrupted"
    Run.objects.filter(pk=run.pk).update(status="running")
    assert client.post(f"/api/v1/runs/{run.pk}/resume").status_code == 409
    Run.objects.filter(pk=run.pk).update(status="interrupted")
    ModelEndpoint.objects.filter(name="large").update(enabled=True)
    ModelEndpoint.objects.filter(name="small").update(enabled=False)  # it has responded to all cases
    assert resume_run(run=run, user=user)


def test_run_is_not_resumed_with_a_disabled_judge(user: User) -> None:
    run = stored_run(stored_version(cases=1), ["small"], status="interrupted")
    run.models.create(label="judge", role="judge", position=0, provider="openai", spec={}, fingerprint="0")
    ModelEndpoint.objects.create(name="judge", model="m", enabled=False)
    with pytest.raises(UserError, match="the model 'judge' is disabled"):
        resume_run(run=run, user=user)


def test_resume_is_offered_only_for_incomplete_runs(client: Client, run: Run) -> None:
    assert "2 missing" in page(client, f"/runs/{run.pk}/")  # one errored, one missing
    whole = stored_run(run.environments.get().version, ["alpha"])
    stored_outcomes(whole, "ppppppppfu")
    assert "Resume" not in page(client, f"/runs/{whole.pk}/")
    answer = client.post(f"/runs/{whole.pk}/resume/", follow=True)
    assert "The run is complete" in answer.content.decode()
    assert Run.objects.get(pk=whole.pk).finished_at == whole.finished_at
    Run.objects.filter(pk=whole.pk).update(status=Run.Status.INTERRUPTED)  # in a later stage, such as judging
    assert "Resume" in page(client, f"/runs/{whole.pk}/")


# ---- responses -------------------------------------------------------------------------------------------------------


def test_response_page_shows_transcript_calls_scores_and_execution(client: Client, run: Run) -> None:
    call = {"id": "call-7", "type": "function", "function": {"name": "refund", "arguments": '{"order": "A-1"}'}}
    response = Response.objects.filter(status="failed", run_model__label="alpha")[0]
    response.messages = [
        {"role": "user", "content": [{"type": "text", "text": "Please refund."}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call-7", "content": "done"},
        {"role": "assistant", "content": ""},
    ]
    response.reason, response.execution_status, response.execution_ms = "Wrong amount.", "timeout", 5000.0
    response.save()
    stored_score(response, "world", 0.0, reason="Refunded 5, not 4.", execution={"status": "timeout"})
    shown = page(client, f"/responses/{response.pk}/")
    for part in (
        "Please refund.",
        "refund",
        "call-7",
        "A-1",
        "Refunded 5, not 4.",
        "timeout, 5,000 ms",
        "Wrong amount.",
    ):
        assert part in shown
    assert "(empty message)" in shown
    assert client.get(f"/responses/{response.pk}/raw").json()["messages"] == response.messages


def test_markup_of_models_is_escaped(client: Client, run: Run) -> None:
    evil = "</pre></code><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[2J\u202e{{ 7 }}{% now %}"
    call = {"id": evil, "function": {"name": evil, "arguments": evil}}
    messages = [{"role": "x' onload='y", "content": evil}, {"role": "assistant", "content": evil, "tool_calls": [call]}]
    response = Response.objects.filter(status="failed")[0]
    Response.objects.filter(pk=response.pk).update(messages=messages, text=evil, reason=evil)
    stored_score(response, "r", 0.0, reason=evil, detail={"x": evil}, execution={"stderr": evil})
    for url in (f"/responses/{response.pk}/", f"/runs/{run.pk}/", f"/runs/{run.pk}/cases/{response.case_id}/"):
        shown = page(client, url)
        for unsafe in ("<script>alert", "<img src=x", "\x1b", "\u202e", "onload='y"):
            assert unsafe not in shown, (url, unsafe)
    raw = client.get(f"/responses/{response.pk}/raw")
    assert raw["Content-Type"] == "application/json" and raw["X-Content-Type-Options"] == "nosniff"


def test_long_text_is_collapsed_and_its_size_shown(client: Client, run: Run) -> None:
    response = Response.objects.all()[0]
    Response.objects.filter(pk=response.pk).update(messages=[{"role": "assistant", "content": "word " * 10_000}])
    assert "Show all 50,000 characters" in page(client, f"/responses/{response.pk}/")


def test_previous_and_next_have_same_model_and_status(client: Client, run: Run) -> None:
    first, second = Response.objects.filter(status="failed", run_model__label="alpha").order_by("id")
    shown = page(client, f"/responses/{first.pk}/")
    assert f'href="/responses/{second.pk}/"' in shown and "Previous failed" not in shown
    assert "Next failed" not in page(client, f"/responses/{second.pk}/")


def test_case_page_shows_all_responses_side_by_side(client: Client, run: Run) -> None:
    case = Case.objects.get(external_id="c8")
    shown = page(client, f"/runs/{run.pk}/cases/{case.pk}/")
    assert "alpha" in shown and "beta" in shown
    assert client.get(f"/runs/{run.pk}/cases/999999/").status_code == 302


# ---- files -----------------------------------------------------------------------------------------------------------


def test_report_and_failing_cases_are_downloads(client: Client, run: Run) -> None:
    report = client.get(f"/runs/{run.pk}/report")
    assert report["Content-Disposition"] == f'attachment; filename="run-{run.pk}.html"'
    assert "80.0 %" in report.getvalue().decode()
    markdown = client.get(f"/runs/{run.pk}/report?format=markdown")
    assert markdown["Content-Disposition"] == f'attachment; filename="run-{run.pk}.md"'
    assert markdown.getvalue().startswith(b"# ")
    assert client.get(f"/runs/{run.pk}/report?format=junit").getvalue().startswith(b"<?xml")
    assert client.get(f"/runs/{run.pk}/report?format=pdf").status_code == 404
    failures = client.get(f"/runs/{run.pk}/failures?format=jsonl&model=alpha")
    assert b"".join(failures.streaming_content).count(b"\n") == 2  # type: ignore[attr-defined]
    for query, expected in {"format=nonsense": "nonsense", "format=jsonl&model=nobody": "no model"}.items():
        answer = client.get(f"/runs/{run.pk}/failures?{query}", follow=True)
        assert expected in answer.content.decode()


def exported_cases(client: Client, url: str) -> list[str]:
    answer = client.get(url)
    return [json.loads(line)["case"] for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[attr-defined]


def test_export_of_failing_cases_uses_filters_of_response_list(client: Client, run: Run) -> None:
    shown = page(client, f"/runs/{run.pk}/?model=beta&q=c5")
    assert f"/runs/{run.pk}/failures?format=jsonl&amp;q=c5&amp;model=beta" in shown
    part = page(client, f"/runs/{run.pk}/?model=beta&q=c5", HX_Target="responses")
    assert 'id="failures" hx-swap-oob="true"' in part and "format=jsonl&amp;q=c5&amp;model=beta" in part
    assert exported_cases(client, f"/runs/{run.pk}/failures?format=jsonl&q=c5&model=beta") == ["c5"]
    assert exported_cases(client, f"/runs/{run.pk}/failures?format=jsonl&status=failed&q=c6") == ["c6"]
    answer = client.get(f"/runs/{run.pk}/failures?format=jsonl&status=passed", follow=True)
    assert "Only failed responses can be exported" in answer.content.decode()


def test_left_out_cases_are_reported_after_download(client: Client, user: User, tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"
    version = import_bundle(bundle=settings.BASE_DIR / "hub" / "catalog" / "order-desk")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    run = stored_run(version)
    first = version.cases.order_by("position")[0]
    stored_response(run, first, "failed")
    refused = client.get(f"/runs/{run.pk}/failures?format=sft", follow=True)
    assert "Left out 1: the gold answer takes several turns" in refused.content.decode()


def test_bundle_export_of_several_environments_is_rejected_with_advice_for_page(client: Client, user: User) -> None:
    versions = [public_version("one", cases=1), public_version("two", cases=1)]
    several = stored_run(versions)
    for version in versions:
        stored_outcomes(several, "f", version=version)
    answer = client.get(f"/runs/{several.pk}/failures?format=bundle", follow=True)
    shown = answer.content.decode()
    assert "Choose one of them. Select it in the filters of the responses." in shown and "--environment" not in shown


# ---- comparison, models, past results --------------------------------------------------------------------------------


def test_comparison_shows_difference_interval_p_value_and_changed_cases(client: Client, run: Run) -> None:
    shown = page(client, f"/compare/?a={run.pk}&b={run.pk}&model_a=alpha&model_b=beta")
    assert "+28.6" in shown
    assert "environment=sums&amp;case=c5" in shown
    assert client.get("/compare/?a=999").status_code == 404
    assert client.get("/compare/?a=x").status_code == 400


def chosen(client: Client, url: str) -> dict[str, str]:
    """Return the runs that are selected in the form of a comparison."""
    form = page(client, url).partition("<form class=")[2]
    return {
        name: "".join(
            re.findall(r'value="(\d+)" selected', form.partition(f'name="{name}"')[2].partition("</select>")[0])
        )
        for name in "ab"
    }


def test_comparison_preselects_comparable_runs(client: Client, run: Run) -> None:
    version = run.environments.get().version
    assert chosen(client, "/compare/") == {"a": str(run.pk), "b": str(run.pk)}  # two models of it
    alone = stored_run(version, ["gamma"], name="alone")
    stored_run(public_version("desk"), ["gamma"], name="elsewhere")
    assert chosen(client, f"/compare/?a={alone.pk}") == {"a": str(alone.pk), "b": str(run.pk)}
    assert "gamma" in page(client, f"/compare/?a={alone.pk}").partition("No model has the same label in both runs")[2]
    newest = stored_run(version, ["gamma"])
    assert "read the cases that differ" in page(client, f"/compare/?a={newest.pk}")  # without another click
    assert chosen(client, "/compare/") == {"a": str(newest.pk), "b": str(alone.pk)}
    for status in (Run.Status.QUEUED, Run.Status.RUNNING, Run.Status.FAILED):
        stored_run(version, ["gamma"], status=status)
    assert chosen(client, "/compare/") == {"a": str(newest.pk), "b": str(alone.pk)}


def test_run_without_comparable_run_shows_note(client: Client, user: User) -> None:
    assert "make eval" in page(client, "/compare/")
    run = stored_run(public_version())
    for url in ("/compare/", f"/compare/?a={run.pk}"):
        assert f"Run {run.pk} cannot be compared yet" in page(client, url)


def test_comparison_with_an_invalid_gate_keeps_the_chosen_runs(client: Client, run: Run) -> None:
    for _ in range(51):  # more than the menus list
        stored_run(run.environments.get().version, status=Run.Status.FAILED)
    stored_run(public_version("desk"), ["gamma"])
    answer = client.get(f"/compare/?a={run.pk}&b={run.pk}&gate=nonsense")
    text = answer.content.decode()
    assert answer.status_code == 400
    assert text.count(f'<option value="{run.pk}" selected>') == 2
    assert "cannot be compared yet" not in text


def test_model_list_shows_registered_and_used_models(client: Client, run: Run) -> None:
    ModelEndpoint.objects.create(
        name="alpha", model="gpt-5-mini", base_url="http://secret.internal/v1", api_key_env="K"
    )
    shown = page(client, "/models/")
    assert ">alpha</a>" in shown and ">beta</a>" in shown
    shown += page(client, "/models/alpha/")
    assert "sums@1.0.0" in shown and "80.0 %" in shown
    assert "secret.internal" not in shown and "gpt-5-mini" not in shown
    ModelEndpoint.objects.create(name="a/name/with/slashes", provider="demo", model="m")
    assert "No completed run" in page(client, "/models/a/name/with/slashes/")


def test_leaderboard_shows_the_latest_result_of_each_model(client: Client, run: Run) -> None:
    version = run.environments.get().version
    newer = stored_run(version, ["alpha"], name="newer")
    stored_outcomes(newer, "pppppppppp")
    unfinished = stored_run(version, ["alpha"], status=Run.Status.FAILED)
    stored_outcomes(unfinished, "ffffffffff")
    user = User.objects.get()
    history.store_environment_results(user, version.environment)
    found = [(item.run.name, item.cell.model) for item in history.leaderboard(user, version)]
    assert found == [("newer", "alpha"), ("first", "beta")]
    part = page(client, "/hub/sums/1.0.0/results/", HX_Target="past")
    assert part.strip().startswith('<div id="past">') and "100.0 %" in part
    assert "<html" in page(client, "/hub/sums/1.0.0/results/")


def test_response_list_neither_loads_texts_nor_joins_tables(client: Client, run: Run) -> None:
    stored_response(run, Case.objects.get(external_id="c9"), "failed", model="beta", text="x")
    with CaptureQueriesContext(connection) as queries:
        page(client, f"/runs/{run.pk}/", HX_Target="responses")
    listing = [query["sql"] for query in queries if "case_name" in query["sql"]]
    assert listing and not any(unwanted in sql for sql in listing for unwanted in ('"messages"', '"text"', "JOIN"))
    assert len(queries) < 12


def test_runs_and_responses_sort_by_each_sortable_column(client: Client, run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(cost_usd=0.5)
    stored_run(public_version("desk"), ["gamma"], name="Another")
    for column in browsing.RUN_COLUMNS:
        assert {"first", "Another"} == set(re.findall(r">(first|Another)</a>", page(client, f"/runs/?sort={column}")))
    assert re.findall(r">(first|Another)</a>", page(client, "/runs/?sort=run")) == ["Another", "first"]
    assert re.findall(r">(first|Another)</a>", page(client, "/runs/?sort=-cost")) == ["first", "Another"]
    Response.objects.filter(case__external_id="c9", run_model__label="alpha").update(latency_ms=7.0)
    for column in browsing.RESPONSE_COLUMNS:
        shown = page(client, f"/runs/{run.pk}/?sort={column}")
        assert len(re.findall(r'data-open class="mono"', shown)) == 19, column
    slowest = page(client, f"/runs/{run.pk}/?sort=-ms&model=alpha")
    assert re.findall(r">(c\d)</a>", slowest)[:3] == ["c9", "c0", "c1"]


def test_hidden_run_whose_responses_were_scored_again_is_not_named(client: Client) -> None:
    hidden, shown = stored_version("hidden"), stored_version("shown")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    source = stored_run(hidden)
    run = stored_run(shown, rescored_from=source)
    client.force_login(member())
    assert f"/runs/{source.pk}/" in client.get(f"/runs/{run.pk}/").content.decode()
    Environment.objects.filter(slug="hidden").update(visibility=Environment.Visibility.PRIVATE)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert f"/runs/{source.pk}/" not in page and "hidden from you were scored again" in page
