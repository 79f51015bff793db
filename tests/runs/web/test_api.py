"""REST API of runs: create, progress, cancel, resume, responses, report, failing cases, comparison."""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import OperationalError, connection, transaction
from django.test import Client
from django.utils import timezone
from rest_framework.request import Request

from hub.models import Environment
from hub.services import import_bundle
from runs.models import ModelEndpoint, Response, Run, RunModel
from runs.reports import results_json
from runs.web.api import runs
from tests.factories import stored_outcomes, stored_response, stored_run, stored_score, stored_version
from tests.hub.bundle_files import write_bundle
from tests.members import member

pytestmark = pytest.mark.django_db
URL = "/api/v1/runs/"


@pytest.fixture
def runner(client: Client) -> User:
    user = member("Runner")
    client.force_login(user)
    return user


@pytest.fixture
def run(runner: User) -> Run:
    version = stored_version(cases=4)
    Environment.objects.update(latest=version, visibility=Environment.Visibility.PUBLISHED)
    run = stored_run(version, ["alpha", "beta"])
    stored_outcomes(run, "pppf", model="alpha")
    stored_outcomes(run, "pffe", model="beta")
    return run


@pytest.fixture
def capitals(runner: User, tmp_path: Path) -> None:
    version = import_bundle(bundle=write_bundle(tmp_path / "capitals"))
    Environment.objects.filter(pk=version.environment_id).update(visibility=Environment.Visibility.PUBLISHED)
    ModelEndpoint.objects.create(name="small", model="m", base_url="http://127.0.0.1:9/v1", api_key_env="")


CONFIG = {"name": "by rest", "environments": ["capitals"], "models": ["small"]}


@pytest.mark.parametrize("kind", ["application/json", "application/yaml"])
def test_post_config_as_json_or_yaml_starts_run(client: Client, runner: User, capitals: None, kind: str) -> None:
    text = json.dumps(CONFIG) if kind.endswith("json") else "name: by rest\nenvironments: [capitals]\nmodels: [small]\n"
    answer = client.post(URL, text, content_type=kind)
    assert answer.status_code == 201
    body = answer.json()
    assert (body["name"], body["status"], body["created_by"]) == ("by rest", "queued", "runner")
    assert client.get(answer["Location"]).json()["run"] == body["run"]
    assert body["progress"]["expected"] == 3
    assert client.get(f"{URL}{body['run']}/").json()["config"]["models"][0]["name"] == "small"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/octet-stream"])
def test_config_of_another_content_type_is_refused(client: Client, runner: User, capitals: None, kind: str) -> None:
    answer = client.post(URL, json.dumps(CONFIG), content_type=kind)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_type")
    assert answer.json()["message"].endswith("another Content-Type, application/json or application/yaml.")
    assert not Run.objects.exists()


@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_actions_ignore_a_body(client: Client, runner: User, run: Run, kind: str) -> None:
    assert client.post(f"{URL}{run.pk}/cancel", b"{", content_type=kind).status_code == 200


def test_invalid_config_lists_all_errors_and_stores_nothing(client: Client, runner: User, capitals: None) -> None:
    text = "name: x\nenvironments: [nothing]\nmodels:\n  - nobody\nattempts: 0\n"
    answer = client.post(URL, text, content_type="application/yaml")
    assert answer.status_code == 400
    found = {(error["path"], error["line"]) for error in answer.json()["errors"]}
    assert found == {("environments[0]", 2), ("models[0]", 4), ("attempts", 5)}
    assert Run.objects.count() == 0


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff\xfe", b"{", b"- a\n- b"])
def test_invalid_body_is_rejected_with_standard_error_body(client: Client, runner: User, body: bytes) -> None:
    answer = client.post(URL, body, content_type="application/json")
    assert answer.status_code == 400
    assert set(answer.json()) >= {"message", "code", "errors", "type", "title", "status", "detail"}


def test_runs_are_listed_and_filtered(client: Client, run: Run) -> None:
    other = stored_run(run.environments.get().version, ["gamma"], name="second", status=Run.Status.FAILED)
    assert [item["run"] for item in client.get(URL).json()["results"]] == [other.pk, run.pk]
    ModelEndpoint.objects.create(name="unused", model="m")
    for query, expected in {
        "status=failed": [other.pk],
        "model=beta": [run.pk],
        "model=unused": [],
        "environment=sums": [other.pk, run.pk],
        "tag=nothing": [],
    }.items():
        assert [item["run"] for item in client.get(f"{URL}?{query}").json()["results"]] == expected


def test_responses_are_complete_filtered_and_paginated(client: Client, run: Run) -> None:
    failed = Response.objects.filter(status="failed", run_model__label="beta").order_by("id")
    stored_score(failed[0], "answer", 0.0, reason="Not 2.")
    body = client.get(f"{URL}{run.pk}/responses/?status=failed&model=beta&page_size=1").json()
    [item] = body["results"]
    assert (item["id"], item["case"], item["environment"], item["model"]) == (failed[0].pk, "c1", "sums@1.0.0", "beta")
    assert item["messages"] == failed[0].messages
    assert item["scores"][0]["reason"] == "Not 2."
    assert [item["case"] for item in client.get(body["next"]).json()["results"]] == ["c2"]


@pytest.mark.parametrize("name", ["model", "environment"])
def test_filter_for_responses_that_the_run_cannot_have_is_an_error(client: Client, run: Run, name: str) -> None:
    answer = client.get(f"{URL}{run.pk}/responses/?{name}=beto")
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert error["path"] == name
    assert "beto" in error["message"]


def test_invalid_cursor_is_an_error_with_its_path(client: Client, run: Run) -> None:
    answer = client.get(f"{URL}?cursor=garbage")
    assert answer.status_code == 400
    assert [error["path"] for error in answer.json()["errors"]] == ["cursor"]


def test_report_equals_output_of_command(client: Client, run: Run) -> None:
    assert client.get(f"{URL}{run.pk}/report").json() == json.loads(json.dumps(results_json(run)))
    for format, kind in {"html": "text/html", "markdown": "text/markdown", "junit": "application/xml"}.items():
        file = client.get(f"{URL}{run.pk}/report?format={format}")
        assert file["Content-Type"].startswith(kind) and len(b"".join(file.streaming_content)) > 500
    wrong = client.get(f"{URL}{run.pk}/report?format=pdf")
    assert wrong.status_code == 400 and "format" in str(wrong.json())


def test_failing_cases_are_exported_and_errors_reported(client: Client, run: Run) -> None:
    answer = client.get(f"{URL}{run.pk}/failures?format=jsonl&model=beta")
    rows = b"".join(answer.streaming_content).splitlines()  # type: ignore[attr-defined]
    assert len(rows) == 2
    wrong = client.get(f"{URL}{run.pk}/failures?format=nonsense")
    assert wrong.status_code == 400 and "nonsense" in wrong.json()["errors"][0]["message"]


def test_failing_cases_accept_response_filters(client: Client, run: Run) -> None:
    answer = client.get(f"{URL}{run.pk}/failures?format=jsonl&q=c2&status=failed")
    rows = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[attr-defined]
    assert [(row["case"], row["model"]) for row in rows] == [("c2", "beta")]
    assert client.get(f"{URL}{run.pk}/failures?format=jsonl&flag=truncated").status_code == 400
    wrong = client.get(f"{URL}{run.pk}/failures?format=jsonl&status=passed").json()
    assert [error["path"] for error in wrong["errors"]] == ["status"]


def test_error_names_query_parameter_not_command_option(client: Client, run: Run) -> None:
    other = stored_version("other", 1)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    several = stored_run([run.environments.get().version, other])
    stored_outcomes(several, "fppp", version=run.environments.get().version)
    stored_outcomes(several, "f", version=other)
    body = client.get(f"{URL}{several.pk}/failures?format=bundle").json()
    assert "--" not in body["message"]
    assert [error["path"] for error in body["errors"]] == ["environment"]


def test_left_out_cases_are_reported_in_header(client: Client, runner: User, tmp_path: Path) -> None:
    gold = '{"case": "France", "content": "Paris"}'
    folder = write_bundle(tmp_path / "capitals", gold="gold.jsonl", files={"gold.jsonl": gold})
    version = import_bundle(bundle=folder)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    run = stored_run(version)
    stored_outcomes(run, "f" * version.case_count)
    answer = client.get(f"{URL}{run.pk}/failures?format=sft")
    assert json.loads(answer["X-Left-Out"]) == {"no gold answer": version.case_count - 1}


def test_held_out_cases_are_not_exported(client: Client, run: Run) -> None:
    Environment.objects.update(held_out=True)
    assert client.get(f"{URL}{run.pk}/failures?format=sft").status_code == 403
    client.force_login(member("Curator"))
    answer = client.get(f"{URL}{run.pk}/failures?format=sft")
    assert answer.status_code == 400
    assert "held" in answer.json()["message"]


def test_cancel_and_resume(client: Client, run: Run) -> None:
    assert client.post(f"{URL}{run.pk}/cancel").json()["status"] == "completed"
    assert client.post(f"{URL}{run.pk}/resume").json()["status"] == "queued"
    assert client.post(f"{URL}{run.pk}/resume").status_code == 409
    assert client.post(f"{URL}{run.pk}/cancel").json()["status"] == "cancelled"
    assert client.get(f"{URL}{run.pk}/cancel").status_code == 405


def test_run_that_is_being_cancelled_can_be_resumed_shortly(client: Client, run: Run) -> None:
    lease = {"lease_owner": "worker:1", "lease_until": timezone.now() + timedelta(minutes=1)}
    Run.objects.filter(pk=run.pk).update(status=Run.Status.RUNNING, finished_at=None, **lease)
    going = client.post(f"{URL}{run.pk}/resume")
    assert (going.status_code, going.json()["message"]) == (409, "The run is already in progress.")
    assert "Retry-After" not in going
    assert client.post(f"{URL}{run.pk}/cancel").json()["status"] == "running"
    stopping = client.post(f"{URL}{run.pk}/resume")
    assert (stopping.status_code, stopping["Retry-After"]) == (409, "5")
    assert "is being cancelled" in stopping.json()["message"] and "few seconds" in stopping.json()["message"]
    assert "is being cancelled" in client.post(f"/runs/{run.pk}/resume/", follow=True).content.decode()


def test_complete_run_is_not_resumed(client: Client, run: Run) -> None:
    whole = stored_run(run.environments.get().version, ["alpha"])
    stored_outcomes(whole, "p" * whole.environments.get().case_count)
    assert client.post(f"{URL}{whole.pk}/resume").json()["status"] == "completed"
    assert Run.objects.get(pk=whole.pk).finished_at == whole.finished_at


def test_two_models_are_compared(client: Client, run: Run) -> None:
    body = client.get(f"/api/v1/compare/?a={run.pk}&model_a=alpha&model_b=beta").json()
    [environment] = body["models"][0]["environments"]
    assert (environment["cases"], environment["better_a"]) == (3, ["c1", "c2"])
    assert client.get("/api/v1/compare/").json()["errors"][0]["path"] == "a"
    assert client.get(f"/api/v1/compare/?a={run.pk}&b=999").status_code == 404
    alone = stored_run(run.environments.get().version, ["gamma"])
    answer = client.get(f"/api/v1/compare/?a={alone.pk}")
    assert answer.status_code == 400 and answer.json()["errors"][0]["path"] == "b"


def test_comparison_is_the_document_of_the_command(client: Client, run: Run) -> None:
    third = stored_run(run.environments.get().version, ["alpha"])
    stored_outcomes(third, "pppf")
    gate = "accuracy >= -0.9; cost <= 2x"
    query: dict[str, str | int] = {"a": run.pk, "b": third.pk, "also": third.pk, "margin": 60, "gate": gate}
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("compare", str(run.pk), str(third.pk), "--margin", "0.6", "--gate", gate, "--json", stdout=out)
    body = client.get("/api/v1/compare/", query).json()
    assert body == json.loads(out.getvalue())
    assert body["gate"]["decision"] == "INCONCLUSIVE" and len(body["verdicts"]) == 1
    answer = client.get("/api/v1/compare/", query | {"gate": "accuracy > 0"})
    assert answer.status_code == 400 and answer.json()["errors"][0]["path"] == "gate"


def test_all_problems_of_a_comparison_are_reported_at_once(client: Client, run: Run) -> None:
    wrong = {"a": run.pk, "margin": -3, "gate": "zz", "also": "x", "limit": 1}
    answer = client.get("/api/v1/compare/", wrong)
    assert answer.status_code == 400
    messages = {error["path"]: error["message"] for error in answer.json()["errors"]}
    assert messages.keys() == {"margin", "gate", "also", "limit"}
    assert messages["also"] == "Enter the numbers of at most ten runs, separated by commas, such as 12,14."


def test_registered_models_are_listed_without_urls(client: Client, runner: User, capitals: None) -> None:
    ModelEndpoint.objects.create(name="off", model="m", enabled=False)
    [item] = client.get("/api/v1/models/").json()["results"]
    assert item["name"] == "small"
    assert set(item) == {
        "name",
        "team",
        "provider",
        "model",
        "family",
        "price_input",
        "price_cached_input",
        "price_output",
    }


def test_endpoint_details_of_runs_and_models_are_shown_to_staff_only(client: Client, runner: User) -> None:
    described = {"name": "small", "provider": "openai", "model": "gpt-hidden", "base_url": "http://10.9.8.7/v1"}
    described["api_key_env"] = "VLLM_API_KEY"
    judge = {"model": {**described, "name": "judge"}}
    version = stored_version()
    Environment.objects.update(latest=version, visibility=Environment.Visibility.PUBLISHED)
    config = {"name": "x", "attempts": 1, "models": [described], "roles": {"rubric": [described]}, "judge": judge}
    run = stored_run(version, config=config)
    ModelEndpoint.objects.create(**described)
    urls = [f"/runs/{run.pk}/", f"{URL}{run.pk}/", "/models/", "/models/small/", "/runs/new/", "/api/v1/models/"]
    hidden = ("gpt-hidden", "10.9.8.7", "VLLM_API_KEY")
    for url in urls:
        page = client.get(url).content.decode()
        assert "small" in page and not [text for text in hidden if text in page], url
    runner.is_staff = True
    runner.save()
    for url in urls:
        assert "gpt-hidden" in client.get(url).content.decode(), url
    assert all(text in client.get(f"{URL}{run.pk}/").content.decode() for text in hidden)


def test_folders_of_recordings_and_bundles_are_shown_to_staff_only(client: Client, runner: User) -> None:
    replayed = {"name": "small", "provider": "replay", "responses": "/srv/data/0.jsonl", "recorded_from": "run 3"}
    version = stored_version()
    Environment.objects.update(latest=version, visibility=Environment.Visibility.PUBLISHED)
    config = {"name": "x", "attempts": 1, "environments": [{"path": "/srv/data/sums"}], "models": [replayed]}
    run = stored_run(version, ["small"], config=config)
    RunModel.objects.filter(run=run).update(spec=replayed)
    response = stored_response(run, version.cases.all()[0])
    urls = [f"/runs/{run.pk}/", f"{URL}{run.pk}/", f"{URL}{run.pk}/report?format=html", f"/responses/{response.pk}/"]
    for url in urls:
        page = client.get(url).getvalue().decode()
        assert "/srv/data" not in page and "0.jsonl" in page and "run 3" in page, url
    assert client.get(urls[1]).json()["config"]["environments"] == [{"path": "sums"}]
    runner.is_staff = True
    runner.save()
    assert not [url for url in urls if "/srv/data/0.jsonl" not in client.get(url).getvalue().decode()]


def test_served_models_are_named_to_staff_only(client: Client, runner: User, run: Run) -> None:
    for i, response in enumerate(Response.objects.filter(run_model__label="alpha")):
        Response.objects.filter(pk=response.pk).update(served_model=f"hidden-{i % 2}")
    urls = [
        f"{URL}{run.pk}/{path}" for path in ("responses/", "report", "report?format=html", "report?format=markdown")
    ]
    urls.append(f"/runs/{run.pk}/")
    assert not [url for url in urls if "hidden-" in client.get(url).getvalue().decode()]
    [warning] = [text for text in client.get(urls[1]).json()["warnings"] if "several models" in text]
    assert warning.endswith("the figures mix them.")
    runner.is_staff = True
    runner.save()
    assert not [url for url in urls if "hidden-" not in client.get(url).getvalue().decode()]


def test_unknown_run_returns_404(client: Client, runner: User) -> None:
    for url in (f"{URL}9/", f"{URL}9/responses/", f"{URL}9/report", f"{URL}9/failures?format=sft"):
        body: dict[str, Any] = client.get(url).json()
        assert "There is no run 9" in body["message"]


def test_unchanged_run_and_environment_get_304(admin_client: Client) -> None:
    run = stored_run(stored_version("etags"))
    for url in (f"{URL}{run.pk}/", "/api/v1/environments/etags/"):
        etag = admin_client.get(url).headers["ETag"]
        assert admin_client.head(url).headers["ETag"] == etag
        again = admin_client.get(url, headers={"If-None-Match": etag})
        assert (again.status_code, again.content) == (304, b"")
    Run.objects.filter(pk=run.pk).update(name="renamed")
    etag = admin_client.get(f"{URL}{run.pk}/").headers["ETag"]
    Run.objects.filter(pk=run.pk).update(name="renamed again")
    assert admin_client.get(f"{URL}{run.pk}/", headers={"If-None-Match": etag}).status_code == 200


def test_run_that_changed_since_it_was_read_is_not_changed(admin_client: Client) -> None:
    run = stored_run(stored_version("etags"))
    url = f"{URL}{run.pk}/"
    old = admin_client.get(url).headers["ETag"]

    def rename(name: str, etag: str) -> int:
        body, headers = {"name": name}, {"If-Match": etag}
        return admin_client.patch(url, body, content_type="application/json", headers=headers).status_code

    assert rename("first", old) == 200
    assert rename("second", old) == 412
    refused = admin_client.delete(url, headers={"If-Match": old, "Accept": "application/problem+json"})
    assert (refused.status_code, refused.json()["code"]) == (412, "changed")
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert admin_client.get(url, headers={"If-Match": old}).json()["status"] == 412
    assert admin_client.put(url, headers={"If-Match": old}).status_code == 405
    run.refresh_from_db()
    assert (run.name, run.deleted_at) == ("first", None)
    assert rename("third", "*") == rename("fourth", f'"x", W/{admin_client.get(url).headers["ETag"]}') == 200
    assert admin_client.patch("/api/v1/environments/etags/", {"team": "shared"}, content_type="application/json",
                              headers={"If-Match": old}).status_code == 412  # fmt: skip


def lock_at_once(run: Run) -> None:
    """Lock the row of *run* in a connection of this thread. Raises OperationalError if another one has the lock."""
    try:
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                cursor.execute("PRAGMA busy_timeout = 0")
        with transaction.atomic():
            Run.objects.select_for_update(of=("self",), no_key=True, nowait=True).get(pk=run.pk)
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_nobody_changes_a_run_between_the_comparison_of_its_etag_and_the_change(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stored_run(stored_version())
    problems: list[BaseException | None] = []

    def read(request: Request) -> dict[str, object]:
        with ThreadPoolExecutor(1) as pool:
            problems.append(pool.submit(lock_at_once, run).exception())
        return dict(request.data)

    monkeypatch.setattr(runs.Description, "read", read)
    etag = admin_client.get(f"{URL}{run.pk}/").headers["ETag"]
    headers = {"If-Match": etag}
    for name, status in (("first", 200), ("second", 412)):
        answer = admin_client.patch(f"{URL}{run.pk}/", {"name": name}, "application/json", headers=headers)
        assert answer.status_code == status
    assert [type(problem) for problem in problems] == [OperationalError]
    lock_at_once(run)


def test_run_is_not_renamed_if_it_cannot_be_moved(admin_client: Client) -> None:
    run = stored_run(stored_version(), status="running")
    body = {"name": "moved", "tags": ["moved"], "team": "shared"}
    assert admin_client.patch(f"{URL}{run.pk}/", body, content_type="application/json").status_code == 409
    run.refresh_from_db()
    assert (run.name, run.tags.count()) == ("test run", 0)
