"""Tracking with the real MLflow on a local store, and with one that cannot be reached."""

import csv
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from django.core.management import call_command
from django.utils import timezone

from hub.common.fields import delete_files, file_names
from hub.models import Case, EnvironmentVersion
from runs.models import Response, Run
from runs.services import cancel_run, resume_run
from runs.stages import RunSize, StageContext
from runs.tasks import sync_tracking
from runs.tracking import sync
from runs.tracking.client import Tracker, TrackingError
from runs.tracking.config import TrackingConfig
from runs.tracking.job import build_job
from runs.tracking.stage import TrackingStage
from runs.tracking.sync import pending_runs, runs_to_log
from tests.factories import stored_outcomes, stored_response, stored_run, stored_version
from tests.processes import database_environment
from tests.tracking import Reader, Start, tracked

pytestmark = pytest.mark.django_db
NOWHERE = "http://127.0.0.1:9"  # the discard port: refused at once


def played(**fields: Any) -> Run:
    run = stored_run(stored_version(cases=3), ["alpha", "beta"], **fields)
    stored_outcomes(run, "ppf", model="alpha")
    stored_outcomes(run, "pfe", model="beta")
    return run


def artifact(run: dict[str, Any], name: str) -> str:
    return (Path(unquote(urlsplit(run["artifact_uri"]).path)) / name).read_text(encoding="utf-8")


# ---- a store that is there -------------------------------------------------------------------------------------------


def test_run_is_logged_as_a_parent_with_a_child_for_each_cell_and_linked_both_ways(
    tracker: Tracker, in_mlflow: Reader
) -> None:
    run = played(name="linked", seconds=2.5, cost_usd=0.25)
    tracking = tracked(run, tracker, TrackingConfig())
    assert tracking["state"] == "logged", tracking
    run.refresh_from_db()
    assert {**run.tracking, "state": run.tracking_state} == tracking
    found = {item["id"]: item for item in in_mlflow("linked")["runs"]}
    assert set(found) == {tracking["parent"], *tracking["cells"].values()}
    parent = found[tracking["parent"]]
    assert parent["tags"]["llmeval.run_id"] == str(run.pk)
    assert parent["tags"]["llmeval.config_hash"] == run.config_hash
    assert parent["metrics"] == {
        "seconds": 2.5, "cost_usd": 0.25, "responses": 6, "passed": 3, "failed": 2, "errored": 1, "unscored": 0
    }  # fmt: skip
    assert parent["artifacts"] == ["config.yaml", "report.html", "results.csv", "results.json"]
    assert parent["status"] == "FINISHED"
    child = found[tracking["cells"]["sums@1.0.0 / alpha"]]
    assert child["tags"]["mlflow.parentRunId"] == tracking["parent"]
    assert child["tags"]["llmeval.digest"] == run.environments.get().version.digest
    assert child["metrics"]["accuracy"] == pytest.approx(2 / 3)
    assert child["metrics"]["ci95.low"] == pytest.approx(0.2024, abs=1e-3)
    assert child["params"]["model.name"] == "alpha"


def test_unknown_cost_is_not_logged_as_a_metric(tracker: Tracker, in_mlflow: Reader) -> None:
    run = played(name="unmetered", cost_usd=None)
    run.models.update(spec={"name": "alpha", "price": {"input": 1.0, "output": 2.0}})
    Response.objects.filter(run_environment__run=run, status="passed").update(cost_usd=None)
    assert tracked(run, tracker, TrackingConfig())["state"] == "logged"
    for logged in in_mlflow("unmetered")["runs"]:
        assert not [name for name in logged["metrics"] if name in ("cost_usd", "cost_per_correct_usd")]


def test_artifacts_hold_the_report_the_results_and_every_response(tracker: Tracker, in_mlflow: Reader) -> None:
    run = stored_run(stored_version(cases=1), name="artifacts")
    stored_response(
        run, Case.objects.get(), "failed", reason="=HYPERLINK(evil)\x1b[2J", cost_usd=0.5, role_cost_usd=0.25
    )
    tracking = tracked(run, tracker, TrackingConfig())
    child, parent = sorted(in_mlflow("artifacts")["runs"], key=lambda item: "accuracy" not in item["metrics"])
    assert parent["id"] == tracking["parent"]
    assert "<!doctype html>" in artifact(parent, "report.html")
    assert json.loads(artifact(parent, "results.json"))["results"][0]["failed"] == 1
    (row,) = csv.DictReader(artifact(child, "responses.csv").splitlines())
    assert (row["case"], row["status"], row["reason"]) == ("c0", "failed", "'=HYPERLINK(evil)")
    assert (row["cost_usd"], row["role_cost_usd"]) == ("0.5", "0.25")


def test_logging_a_run_again_updates_the_same_mlflow_run(tracker: Tracker, in_mlflow: Reader) -> None:
    run = played(name="again")
    first = tracked(run, tracker, TrackingConfig())
    run.tracking = {}  # as after a crash between MLflow's answer and the database
    stored_score = run.environments.get().responses.filter(status="errored")
    stored_score.update(status="passed", score=1.0)
    run.finished_at = timezone.now()  # as a resumed run ends
    run.save()
    second = tracked(run, tracker, TrackingConfig())
    assert second["state"] == "logged", second
    assert (second["parent"], second["cells"]) == (first["parent"], first["cells"])
    found = {item["id"]: item for item in in_mlflow("again")["runs"]}
    assert len(found) == 3
    assert found[second["parent"]]["metrics"]["errored"] == 0


def test_metrics_without_a_value_any_more_are_cleared_when_a_run_is_logged_again(
    tracker: Tracker, in_mlflow: Reader
) -> None:
    run = played(name="cleared", cost_usd=0.25)
    Response.objects.filter(status="errored").update(error_kind="http")
    Response.objects.filter(status="passed").update(latency_ms=40.0)
    first = tracked(run, tracker, TrackingConfig())
    Response.objects.filter(status="errored").update(status="passed", score=1.0, error_kind="")
    Response.objects.update(latency_ms=None)
    run.cost_usd = None
    run.finished_at = timezone.now()  # as a resumed run ends
    run.save()
    tracked(run, tracker, TrackingConfig())
    found = {item["id"]: item["metrics"] for item in in_mlflow("cleared")["runs"]}
    beta = found[first["cells"]["sums@1.0.0 / beta"]]
    assert (beta["errored"], beta["errors.http"]) == (0, 0)
    assert math.isnan(beta["latency_ms.p50"])
    assert math.isnan(found[first["parent"]]["cost_usd"])


def test_run_that_was_deleted_in_mlflow_is_logged_again_with_its_existing_cells(
    tracker: Tracker, in_mlflow: Reader
) -> None:
    run = played(name="parent deleted")
    first = tracked(run, tracker, TrackingConfig())
    in_mlflow(f"parent deleted\t\t\t{first['parent']}")
    second = tracked(run, tracker, TrackingConfig())
    assert second["parent"] != first["parent"]
    assert second["cells"] == first["cells"]
    found = {item["id"]: item for item in in_mlflow("parent deleted")["runs"]}
    assert set(found) == {second["parent"], *second["cells"].values()}
    assert {found[cell]["tags"]["mlflow.parentRunId"] for cell in second["cells"].values()} == {second["parent"]}


def test_renamed_run_stays_in_the_experiment_in_which_it_was_logged(tracker: Tracker, in_mlflow: Reader) -> None:
    run = played(name="first name")
    first = tracked(run, tracker, TrackingConfig())
    run.name = "second name"
    run.save()
    second = tracked(run, tracker, TrackingConfig())
    assert (second["parent"], second["experiment"]) == (first["parent"], "first name")
    assert len(in_mlflow("first name")["runs"]) == 3


def test_runs_with_equal_ids_in_two_databases_are_logged_separately(tracker: Tracker) -> None:
    run = played(name="shared server")
    first = tracked(run, tracker, TrackingConfig())
    Run.objects.update(created_at="2020-01-01T00:00:00Z")
    run.refresh_from_db()
    assert tracked(run, tracker, TrackingConfig())["parent"] != first["parent"]


def test_failing_responses_are_logged_as_traces_once(tracker: Tracker, in_mlflow: Reader) -> None:
    run = stored_run(stored_version(cases=2), name="traces")
    passed, failed = Case.objects.order_by("position")
    stored_response(run, passed)
    response = stored_response(run, failed, "failed", input_tokens=12, output_tokens=3, latency_ms=40.0)
    config = TrackingConfig(traces="failures")
    for _ in range(2):
        tracking = tracked(run, tracker, config)
        assert tracking["traces"] == 1, tracking
    (trace,) = in_mlflow("traces")["traces"]
    assert trace["tags"]["llmeval.response"] == str(response.pk)
    assert trace["run"] == tracking["cells"]["sums@1.0.0 / alpha"]
    assert trace["inputs"] == {"messages": [{"role": "user", "content": "1 + 1?"}]}
    assert trace["outputs"] == {"messages": [{"role": "assistant", "content": "an answer"}]}
    usage = {key: trace["usage"][key] for key in ("input_tokens", "output_tokens", "total_tokens")}
    assert usage == {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15}


def test_traces_of_replaced_responses_are_deleted(tracker: Tracker, in_mlflow: Reader) -> None:
    run = stored_run(stored_version(cases=3), name="replaced")
    config = TrackingConfig(traces="failures")
    errored = [stored_response(run, case, "errored", messages=[]) for case in Case.objects.order_by("position")]
    assert tracked(run, tracker, config)["traces"] == 3
    in_mlflow(f"replaced\t\t{run.tracking['cells']['sums@1.0.0 / alpha']}")
    for response in errored[:2]:  # as a resumed run does
        response.delete()
    stored_response(run, errored[0].case)
    again = stored_response(run, errored[1].case, "failed")
    assert tracked(run, tracker, config)["traces"] == 2
    found = {trace["tags"].get("llmeval.response") for trace in in_mlflow("replaced")["traces"]}
    assert found == {str(errored[2].pk), str(again.pk), None}


@pytest.mark.exhaustive
def test_two_runs_that_begin_at_once_create_one_store(settings: Any, tmp_path: Path, start: Start) -> None:
    settings.MLFLOW_TRACKING_URI = f"sqlite:///{tmp_path / 'deep' / 'new.sqlite3'}"
    settings.MLFLOW_ARTIFACTS = str(tmp_path / "artifacts")
    run = played()
    for tracker in (start(), start()):
        tracking = tracked(run, tracker, TrackingConfig(experiment="first"))
        assert (tracking["state"], tracking["experiment"]) == ("logged", "first"), tracking
        assert "not reachable" not in tracker.stderr()  # the second process waited for the first
    assert (tmp_path / "deep" / "new.sqlite3").exists()


# ---- a store that is not ---------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_store_that_was_created_in_part_is_created_again(settings: Any, tmp_path: Path, start: Start) -> None:
    path = tmp_path / "store" / "mlflow.sqlite3"
    settings.MLFLOW_TRACKING_URI = f"sqlite:///{path}"
    limited = (
        "import resource; from runs.tracking.mlflow_log import open_store;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY)); open_store()"  # as a full disk
    )
    done = subprocess.run(
        [sys.executable, "-c", limited],
        cwd=settings.BASE_DIR,
        env={**os.environ, "MLFLOW_TRACKING_URI": settings.MLFLOW_TRACKING_URI},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "not reachable yet" in done.stderr
    assert [item.name for item in path.parent.iterdir()] == ["mlflow.sqlite3.lock"]
    run = played(name="after a full disk")
    tracking = tracked(run, start(), TrackingConfig())
    assert tracking["state"] == "logged", tracking


def test_server_that_does_not_answer_is_given_up(settings: Any, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the system accepts connections
        settings.MLFLOW_TRACKING_URI = f"http://127.0.0.1:{silent.getsockname()[1]}"
        tracking = tracked(played(tracking_state="pending"), start(), TrackingConfig())
    assert (tracking["state"], tracking["error"]) == ("pending", "MLflow did not answer in time.")


def test_error_of_a_server_does_not_repeat_its_password(settings: Any, start: Start) -> None:
    class Unavailable(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(503)

    with ThreadingHTTPServer(("127.0.0.1", 0), Unavailable) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings.MLFLOW_TRACKING_URI = f"http://user:hunter22@127.0.0.1:{server.server_port}"
        tracking = tracked(played(tracking_state="pending"), start(), TrackingConfig())
        server.shutdown()
    assert tracking["state"] == "pending" and "503" in tracking["error"]
    assert f"http://127.0.0.1:{server.server_port}/" in tracking["error"] and "hunter22" not in tracking["error"]


@pytest.mark.exhaustive
def test_run_stays_pending_while_mlflow_is_down_and_a_later_sync_logs_it(
    store: str, settings: Any, start: Start, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    settings.MLFLOW_TRACKING_URI = NOWHERE
    run = played(name="late", config={"attempts": 1}, tracking_state="pending")
    tracking = tracked(run, start(), TrackingConfig())
    assert tracking["state"] == "pending"
    assert tracking["error"] == "MLflow could not be reached: Connection refused."
    assert [item.pk for item in pending_runs()] == [run.pk]
    with pytest.raises(SystemExit) as left:
        call_command("sync_tracking")
    assert left.value.code == 3
    settings.MLFLOW_TRACKING_URI = store
    capsys.readouterr()
    call_command("sync_tracking")
    run.refresh_from_db()
    assert run.tracking_state == "logged"
    assert run.tracking["parent"] in capsys.readouterr().out
    assert pending_runs() == []
    call_command("sync_tracking")
    assert capsys.readouterr().out == "No run is pending.\n"
    call_command("sync_tracking", "--json")
    assert json.loads(capsys.readouterr().out) == {"runs": []}
    call_command("sync_tracking", str(run.pk), "--json")
    (logged,) = json.loads(capsys.readouterr().out)["runs"]
    run.refresh_from_db()
    assert logged == {"run": run.pk, "state": "logged", "experiment": "late", "parent": run.tracking["parent"]}


def test_command_logs_no_run_that_has_not_ended(capsys: pytest.CaptureFixture[str]) -> None:
    ended = played()
    active = stored_run(EnvironmentVersion.objects.get(), ["alpha"], status="running")
    with pytest.raises(SystemExit) as left:
        call_command("sync_tracking", str(ended.pk), str(active.pk))
    assert left.value.code == 2
    assert f"as soon as it ends: run {active.pk}. Nothing was logged." in capsys.readouterr().err
    ended.refresh_from_db()
    assert ended.tracking_state != "logged"


def test_run_stays_pending_if_the_tracking_process_dies(store: str, start: Start) -> None:
    tracker = start()
    assert tracker.pid is not None
    os.kill(tracker.pid, signal.SIGKILL)
    tracking = tracked(played(), tracker, TrackingConfig())
    assert tracking["state"] == "pending"


def test_missing_answer_raises_after_the_time_limit(store: str, start: Start, tmp_path: Path) -> None:
    with pytest.raises(TrackingError, match="did not answer within 0 s"):
        start().log({}, 0.0)


def test_rejected_job_leaves_the_run_pending_with_the_error(tracker: Tracker, in_mlflow: Reader) -> None:
    run = played(name="deleted")
    first = tracked(run, tracker, TrackingConfig())
    in_mlflow("deleted")
    tracking = tracked(run, tracker, TrackingConfig())
    assert tracking["state"] == "pending"
    assert "'deleted' was deleted. Restore it (mlflow experiments restore --experiment-id" in tracking["error"]
    assert tracking["parent"] == first["parent"]  # a link that held is kept


def test_runs_that_ended_without_being_logged_are_pending() -> None:
    version = stored_version()
    crashed = stored_run(version, tracking_state="pending", status=Run.Status.INTERRUPTED)
    stored_run(version, tracking_state="pending", status=Run.Status.RUNNING)
    stored_run(version, tracking_state="off")
    stored_run(version, tracking_state="logged")
    assert [run.pk for run in pending_runs()] == [crashed.pk]


def test_pending_runs_are_found_by_the_index() -> None:
    queryset = Run.objects.filter(tracking_state="pending")
    assert "INDEX" in queryset.explain().upper()


# ---- off, and what is handed over ------------------------------------------------------------------------------------


def test_no_process_is_started_if_tracking_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    for config in (None, TrackingConfig(mlflow=False)):
        tracker = Tracker.start(config)
        run = played() if config else stored_run(stored_version("x"))
        assert tracked(run, tracker, TrackingConfig()) == {"state": "off"}
        tracker.close()


@pytest.mark.django_db(transaction=True)
async def test_stage_summary_is_the_tracking_state(store: str) -> None:
    from asgiref.sync import sync_to_async

    run = await sync_to_async(played)(name="stage")
    context = StageContext(run=run, call_model=None, tracker=Tracker.start(TrackingConfig(mlflow=False)))  # type: ignore[arg-type]
    assert await TrackingStage().execute(context, TrackingConfig(mlflow=False)) == {"state": "off"}


def test_addresses_are_shown_without_passwords(settings: Any) -> None:
    settings.MLFLOW_TRACKING_URI = "http://user:secret@mlflow:5000/x"
    estimate = TrackingStage().estimate(RunSize(cases=1, models=1, attempts=1), TrackingConfig())
    assert estimate.line == "Tracking in MLflow at http://mlflow:5000/x."


def test_name_of_a_key_variable_is_not_logged(tmp_path: Path) -> None:
    run = played()
    run.models.update(spec={"name": "alpha", "api_key_env": "OPENAI_API_KEY", "parameters": {"temperature": 0}})
    job = build_job(run, tmp_path, experiment="e", artifact_root=None, traces="none")
    params = job["cells"][0]["params"]
    assert params["model.parameters.temperature"] == "0"
    assert not any("api_key" in name for name in params)


def test_only_the_tracking_process_imports_mlflow() -> None:
    code = (
        "import django, sys; django.setup(); import runs.tracking.stage, runs.execution.runner; "
        "sys.exit(any(name.partition('.')[0] == 'mlflow' for name in sys.modules))"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "llmeval_site.settings"}
    assert subprocess.run([sys.executable, "-c", code], check=False, env=environment).returncode == 0


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="Finding a process by its environment reads /proc.")
@pytest.mark.django_db(transaction=True)
def test_invalid_command_line_starts_no_process(tmp_path: Path) -> None:
    mark = f"LLMEVAL_TEST_MARK={tmp_path}"
    command = [sys.executable, "manage.py", "eval", "--config", str(tmp_path / "missing.yaml")]
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        env={**database_environment(), "LLMEVAL_TEST_MARK": str(tmp_path)},
    )
    assert done.returncode == 2
    left = [process for process in Path("/proc").glob("[0-9]*") if mark.encode() in _environment(process)]
    assert left == []


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:  # it ended in the meantime
        return b""


def test_process_runs_with_telemetry_off(tracker: Tracker) -> None:
    environment = Path(f"/proc/{tracker.pid}/environ")
    if not environment.exists():
        pytest.skip("this system does not show a process's environment")
    assert re.search(rb"\0MLFLOW_DISABLE_TELEMETRY=true\0", b"\0" + environment.read_bytes())


@pytest.mark.exhaustive
def test_run_that_mlflow_rejects_does_not_hold_up_later_ones(tracker: Tracker, in_mlflow: Reader) -> None:
    rejected = played(name="deleted-with-its-experiment", tracking_state="pending")
    tracked(rejected, tracker, TrackingConfig())
    in_mlflow("deleted-with-its-experiment")  # deletes the experiment, because of its name
    Run.objects.update(tracking_state="pending")
    later = stored_run(rejected.environments.get().version, ["alpha"], name="later", tracking_state="pending")
    sync_tracking()
    later.refresh_from_db()
    assert later.tracking_state == "logged"


@pytest.mark.exhaustive
def test_run_that_exceeds_the_time_limit_does_not_hold_up_later_ones(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = played(name="large", tracking_state="pending")
    later = stored_run(large.environments.get().version, ["alpha"], name="after it", tracking_state="pending")
    log = Tracker.log

    def log_in_time(tracker: Tracker, job: Any, seconds: float) -> Any:
        return log(tracker, job, 0.0 if job["parent"]["name"] == "large" else seconds)

    monkeypatch.setattr(Tracker, "log", log_in_time)
    sync_tracking()
    for run in (large, later):
        run.refresh_from_db()
    assert large.tracking_state == "pending" and "did not answer within 0 s" in large.tracking["error"]
    assert later.tracking_state == "logged"


def test_run_whose_transcripts_are_missing_does_not_hold_up_later_ones(store: str, settings: Any) -> None:
    settings.LARGE_TRANSCRIPT_BYTES = 100
    version = stored_version(cases=1)
    damaged, later = (
        stored_run(version, name=name, config={"tracking": {"traces": "all"}}, tracking_state="pending")
        for name in ("damaged", "after the damaged one")
    )
    messages = [{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "2" * 200}]
    stored_response(damaged, Case.objects.get(), messages=messages)
    delete_files(file_names(Response.objects.all()))
    sync_tracking()
    for run in (damaged, later):
        run.refresh_from_db()
    assert damaged.tracking_state == "pending" and "This content is missing" in damaged.tracking["error"]
    assert later.tracking_state == "logged"


def test_resumed_run_is_logged_again_although_it_is_cancelled(tracker: Tracker) -> None:
    run = played(name="resumed", tracking_state="pending")
    opened_before = Run.objects.get(pk=run.pk)
    tracked(run, tracker, TrackingConfig())
    run.refresh_from_db()
    assert run.tracking_state == "logged"
    assert resume_run(run=opened_before)
    run.refresh_from_db()
    assert run not in runs_to_log()  # not before it has ended
    cancel_run(run=run)
    assert run in runs_to_log()


@pytest.mark.parametrize("ends", [False, True])
def test_run_that_is_resumed_while_it_is_logged_is_logged_again(
    tracker: Tracker, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    run = played(name=f"resumed meanwhile {ends}", tracking_state="pending", status=Run.Status.INTERRUPTED)
    log = tracker.log

    def resume_and_log(*arguments: Any) -> Any:
        opened = Run.objects.get(pk=run.pk)
        assert resume_run(run=opened)
        if ends:
            cancel_run(run=opened)
        return log(*arguments)

    monkeypatch.setattr(tracker, "log", resume_and_log)
    tracking = tracked(run, tracker, TrackingConfig())
    assert tracking["state"] == "pending" and "resumed while it was logged" in tracking["error"]
    stored = Run.objects.get(pk=run.pk)
    assert stored.tracking_state == "pending" and stored.tracking == {}
    assert (stored in runs_to_log()) == ends


def test_deleted_and_running_runs_are_not_logged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run = played(name="gone", tracking_state="logged")
    monkeypatch.setattr(sync, "latest_changes", lambda: {run.pk: timezone.now()})
    assert run in runs_to_log()
    Run.objects.update(deleted_at=timezone.now())
    assert runs_to_log() == []
    Run.objects.update(deleted_at=None, status="running", finished_at=None)
    assert runs_to_log() == []
