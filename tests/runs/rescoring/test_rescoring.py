"""Scoring stored responses again with another version of the environment."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from hub.services import import_bundle
from runs.config.parsed import ConfigError
from runs.management.commands import rescore
from runs.models import Response, Run
from runs.rescoring import RescoreError, create_rescoring
from runs.retention import deleted_runs
from runs.services import config_of, interrupt_run
from tests.commands import run_command
from tests.factories import stored_response, stored_run
from tests.members import member
from tests.runs import capitals

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(tmp_path: Path, settings: Settings) -> Run:
    """A run of version 1.0.0. In 1.1.0 another answer is right, one case asks something else, and one is gone."""
    settings.VAR_DIR = tmp_path / "var"
    capitals.write_bundle(tmp_path / "bundle")
    version = import_bundle(bundle=tmp_path / "bundle", owner=None)
    run = stored_run(version, ["small"], name="first")
    cases = {case.external_id: case for case in version.cases.all()}
    for name, text in {"france": "Paris", "japan": "Kyoto", "kenya": "Nairobi", "norway": "Oslo"}.items():
        passed = "failed" if name == "japan" else "passed"
        messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}]
        stored_response(run, cases[name], passed, messages=messages, text=text)
    stored_response(run, cases["peru"], "errored", messages=[{"role": "user", "content": "?"}], text="")
    manifest = (tmp_path / "bundle" / "environment.yaml").read_text().replace("1.0.0", "1.1.0")
    (tmp_path / "bundle" / "environment.yaml").write_text(manifest)
    rows = [json.loads(line) for line in (tmp_path / "bundle" / "cases.jsonl").read_text().splitlines()]
    changed = {"japan": {"capital": "Kyoto"}, "kenya": {"country": "the Republic of Kenya"}}
    rows = [{**row, **changed.get(row["id"], {})} for row in rows if row["id"] != "norway"]
    (tmp_path / "bundle" / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    import_bundle(bundle=tmp_path / "bundle", owner=None)
    return run


def test_stored_responses_are_scored_with_the_current_version(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("rescore", str(run.pk), json=True)
    said = json.loads(capsys.readouterr().out)
    again = Run.objects.get(pk=said["run"])
    assert again.rescored_from == run and again.environments.get().version.version == "1.1.0"
    found = Response.objects.filter(run_environment__run=again).values_list("case__external_id", "status", "text")
    assert {case: (status, text) for case, status, text in found} == {
        "france": ("passed", "Paris"),
        "japan": ("passed", "Kyoto"),
    }
    assert said["left_out"] == {
        "the case asks something else now": 1,
        "the case is not in the current version any more": 1,
        "errored, without an answer": 1,
    }
    assert Response.objects.get(run_environment__run=run, case__external_id="japan").status == "failed"


def test_scoring_again_with_the_same_versions_says_so(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    unchanged = "No environment has a newer version, so the rules are the same. Import a changed bundle first."
    call_command("rescore", str(run.pk))
    assert unchanged not in capsys.readouterr().err
    call_command("rescore", "latest")
    assert unchanged in capsys.readouterr().err.splitlines()


def test_run_that_was_scored_again_twice_says_so_once(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(name="first (re-scored)")
    run.refresh_from_db()
    assert create_rescoring(run=run).run.name == "first (re-scored)"


def test_errored_response_to_a_case_that_is_gone_is_counted_once(run: Run) -> None:
    Response.objects.filter(case__external_id="norway").update(status="errored")
    assert create_rescoring(run=run).left_out == {
        "the case asks something else now": 1,
        "errored, without an answer": 2,
    }


def test_answer_whose_scoring_failed_is_scored_again(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    failed = Response.objects.filter(run_environment__run=run, case__external_id__in=("france", "japan"))
    failed.update(status="errored", score=None, error_kind="environment")
    Response.objects.filter(case__external_id__in=("kenya", "norway")).delete()
    call_command("rescore", str(run.pk), json=True)
    said = json.loads(capsys.readouterr().out)
    found = Response.objects.filter(run_environment__run=said["run"]).values_list("case__external_id", "status", "text")
    assert sorted(found) == [("france", "passed", "Paris"), ("japan", "passed", "Kyoto")]
    assert said["left_out"] == {"errored, without an answer": 1}


@pytest.mark.parametrize(
    "changes", [{"error_kind": "timeout"}, {"messages": [{"role": "user", "content": "?"}], "turns": 0}]
)
def test_errored_response_without_a_complete_answer_is_left_out(run: Run, changes: dict[str, Any]) -> None:
    response = Response.objects.get(run_environment__run=run, case__external_id="japan")
    for name, value in {"status": "errored", "error_kind": "environment", **changes}.items():
        setattr(response, name, value)
    response.save()
    assert create_rescoring(run=run).left_out["errored, without an answer"] == 2


def test_recordings_are_removed_with_the_last_run_that_replays_them(run: Run, tmp_path: Path) -> None:
    first = create_rescoring(run=run).run
    copy = stored_run(first.environments.get().version, name="copy", config=first.config)
    (folder,) = (tmp_path / "var" / "rescored").iterdir()
    for gone, left in ((run, True), (first, True), (copy, False)):
        Run.objects.filter(pk=gone.pk).update(status=Run.Status.COMPLETED, deleted_at=timezone.now())
        deleted_runs(before=timezone.now()).remove()
        assert not Run.objects.filter(pk=gone.pk).exists()
        assert folder.exists() is left


def test_message_of_a_run_whose_recording_is_lost_names_no_folder(run: Run, tmp_path: Path) -> None:
    again = create_rescoring(run=run).run
    [recording] = (tmp_path / "var" / "rescored").glob("*/*.jsonl")

    def message() -> str:
        with pytest.raises(ConfigError) as raised:  # a worker stores its text as the message of the run
            config_of(again)
        return str(raised.value)

    recording.write_text("{}\n")
    assert f"{recording.name}:1: " in message() and str(tmp_path) not in message()
    recording.unlink()
    assert f"there is no file '{recording.name}'" in message() and str(tmp_path) not in message()


def test_interrupted_scoring_again_has_the_exit_code_of_an_interruption(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*, run: Run, owner: str, **_: object) -> Run:
        interrupt_run(run=run, owner=owner)
        return run

    monkeypatch.setattr(rescore, "execute_run", interrupted)
    said = run_command("rescore", run.pk, code=130)
    again = Run.objects.exclude(pk=run.pk).get()
    assert "Interrupted. Continue with: " in said and said.endswith(f"eval --resume {again.pk}\n")


def test_responses_without_a_score_have_the_exit_code_that_they_have_in_eval(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(*, run: Run, **_: object) -> Run:
        environment = run.environments.get()
        for i, position in enumerate(environment.case_positions or []):
            case = environment.version.cases.get(position=position)
            stored_response(run, case, "passed" if i else "errored")
        Run.objects.filter(pk=run.pk).update(status=Run.Status.COMPLETED)
        run.refresh_from_db()
        return run

    monkeypatch.setattr(rescore, "execute_run", execute)
    said = run_command("rescore", run.pk, code=1)
    again = Run.objects.exclude(pk=run.pk).get()
    assert "Some responses are errored or unscored. Request them again, with the config that the run has: " in said
    assert said.endswith(f"eval --resume {again.pk}\n")


def test_unscored_responses_are_not_requested_again_if_only_mlflow_is_down(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(*, run: Run, **_: object) -> Run:
        environment = run.environments.get()
        for position in environment.case_positions or []:
            stored_response(run, environment.version.cases.get(position=position), "unscored")
        Run.objects.filter(pk=run.pk).update(status=Run.Status.COMPLETED, tracking_state=Run.TrackingState.PENDING)
        run.refresh_from_db()
        return run

    monkeypatch.setattr(rescore, "execute_run", execute)
    said = run_command("rescore", run.pk, code=1)
    assert said.endswith("Some responses are unscored: a rule could not decide. The report has the reasons.\n")


def test_run_that_goes_on_is_not_scored_again(run: Run) -> None:
    Run.objects.update(status=Run.Status.RUNNING)
    run.refresh_from_db()
    with pytest.raises(RescoreError, match="Wait until it has ended") as raised:
        create_rescoring(run=run)
    assert raised.value.status_code == 409


def test_run_without_answers_is_refused_and_leaves_no_files(run: Run, tmp_path: Path) -> None:
    Response.objects.exclude(status="errored").delete()
    with pytest.raises(RescoreError, match=r"scored again\. 1 response: errored, without an answer\.$"):
        create_rescoring(run=run)
    assert not [path for path in (tmp_path / "var").rglob("*") if path.is_file()]
    Response.objects.all().delete()
    with pytest.raises(RescoreError, match="no response that can be scored again"):
        create_rescoring(run=run)


def test_role_models_are_never_asked(run: Run) -> None:
    spec = {"name": "judge", "provider": "openai", "model": "m"}
    run.models.create(label="judge", role="rubric", position=0, provider="openai", spec=spec, fingerprint="x")
    Run.objects.update(config={**run.config, "roles": {"rubric": [spec]}})
    run.refresh_from_db()
    with pytest.raises(RescoreError, match="role rubric are not stored"):
        create_rescoring(run=run)


def test_button_and_rest_queue_a_linked_run(run: Run, client: Client) -> None:
    user = member("Runner", "Curator")
    client.force_login(user)
    assert "Score again" in client.get(f"/runs/{run.pk}/").content.decode()
    answer = client.post(f"/runs/{run.pk}/rescore/")
    again = Run.objects.latest("id")
    assert answer["Location"] == f"/runs/{again.pk}/" and again.rescored_from == run and again.created_by == user
    assert f"run {run.pk}</a> were scored again" in client.get(f"/runs/{again.pk}/").content.decode()
    rest = client.post(f"/api/v1/runs/{run.pk}/rescore")
    assert rest.status_code == 201 and Run.objects.get(pk=rest.json()["run"]).rescored_from == run
    assert rest["Location"] == f"/api/v1/runs/{rest.json()['run']}/"
    assert client.post(f"/api/v1/runs/{again.pk}/rescore").status_code == 409
