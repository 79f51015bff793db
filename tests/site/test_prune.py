"""`manage.py prune`: what it removes, and what it never touches."""

import json
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.core.management import call_command
from django.utils import timezone

from llmeval_site import tasks
from llmeval_site.configuration.variables import EnvironmentVariables
from llmeval_site.models import AuditEntry
from llmeval_site.tasks import prune as prune_task
from preferences.models import Preference
from runs import retention
from runs.models import ModelCall, Response, Run
from runs.retention import Removal
from runs.rollouts.snapshots import remove_snapshot_folders
from runs.services import delete_run, restore_run
from tests.factories import stored_outcomes, stored_response, stored_run, stored_score, stored_version

pytestmark = pytest.mark.django_db


def prune(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, dict[str, object]]:
    capsys.readouterr()
    call_command("prune", *options, "--json")
    return {row["kind"]: row for row in json.loads(capsys.readouterr().out)["removed"]}


def deleted_run(*, days_ago: int = 100) -> Run:
    version = stored_version(f"sums-{Run.objects.count()}")
    run = stored_run(version)
    stored_outcomes(run, "ppff")
    stored_score(Response.objects.filter(run_environment__run=run)[0])
    delete_run(run=run)
    Run.objects.filter(pk=run.pk).update(deleted_at=timezone.now() - timedelta(days=days_ago))
    return run


def stored_call(key: str, *, days_ago: float, text: str = "x" * 1000) -> ModelCall:
    call = ModelCall.objects.create(key=key, purpose="test", model="m", message={"content": text}, finish_reason="stop")
    ModelCall.objects.filter(pk=key).update(created_at=timezone.now() - timedelta(days=days_ago))
    return call


def test_only_runs_that_were_deleted_long_enough_ago_are_removed(capsys, monkeypatch) -> None:
    monkeypatch.setattr(retention, "BATCH", 3)  # several batches
    old, recent = deleted_run(), deleted_run(days_ago=5)
    restored = deleted_run()
    restore_run(run=restored)
    removed = prune(capsys, "--deleted", "--older-than", "90d")
    assert removed["deleted runs"]["count"] == 1
    assert removed["deleted runs"]["characters"] > 100
    assert set(Run.objects.values_list("pk", flat=True)) == {recent.pk, restored.pk}
    assert not Response.objects.filter(run_environment__run=old.pk).exists()
    assert Response.objects.count() == 8


def test_a_dry_run_removes_nothing(capsys) -> None:
    deleted_run()
    stored_call("a", days_ago=100)
    removed = prune(capsys, "--deleted", "--calls", "--older-than", "90d", "--dry-run")
    assert [row["count"] for row in removed.values()] == [1, 1]
    assert (Run.objects.count(), Response.objects.count(), ModelCall.objects.count()) == (1, 4, 1)


def test_a_run_with_preferences_is_kept_whole_and_counted(capsys) -> None:
    run = deleted_run()
    case = run.environments.get().version.cases.order_by("position").first()
    first = run.environments.get().responses.get(case=case)
    second = stored_response(run, case, "failed", attempt=2)
    Preference.objects.create(
        first=first, second=second, verdict="first", source="execution", run=run, version=case.version, case=case
    )
    removed = prune(capsys, "--deleted", "--older-than", "90d")["deleted runs"]
    assert (removed["count"], removed["kept"]) == (0, "1 kept: preferences refer to their responses")
    assert Response.objects.filter(run_environment__run=run).count() == 5


def test_a_removal_that_was_interrupted_is_completed_by_the_next(capsys, monkeypatch) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    run = deleted_run()
    before = timezone.now() - timedelta(days=90)
    assert retention._remove_part_of_run(run.pk, before)
    assert (Run.objects.count(), Response.objects.count()) == (1, 2)
    prune(capsys, "--deleted", "--older-than", "90d")
    assert (Run.objects.count(), Response.objects.count()) == (0, 0)


def test_a_run_restored_during_the_removal_is_not_removed() -> None:
    run = deleted_run()
    removal = retention.deleted_runs(before=timezone.now() - timedelta(days=90))
    restore_run(run=run)
    removal.remove()
    assert (Run.objects.count(), Response.objects.count()) == (1, 4)


def test_cached_calls_are_removed_by_age_and_by_size(capsys) -> None:
    for i in range(5):
        stored_call(str(i), days_ago=i * 40)
    assert prune(capsys, "--calls", "--older-than", "90d")["cached model calls"]["count"] == 2
    assert prune(capsys, "--calls", "--max-size", "3kB")["cached model calls"]["count"] == 1
    assert set(ModelCall.objects.values_list("key", flat=True)) == {"0", "1"}
    assert prune(capsys, "--calls", "--max-size", "1GB")["cached model calls"]["count"] == 0


def test_calls_that_a_run_in_progress_may_need_are_kept(capsys) -> None:
    run = stored_run(stored_version(), status="running", finished_at=None)
    Run.objects.filter(pk=run.pk).update(created_at=timezone.now() - timedelta(days=10))
    stored_call("new", days_ago=5)
    stored_call("old", days_ago=20)
    prune(capsys, "--calls", "--older-than", "1d")
    assert ModelCall.objects.get().key == "new"


def test_the_table_has_counts_and_sizes_with_units(capsys) -> None:
    stored_call("a", days_ago=100, text="x" * 2_500_000)
    call_command("prune", "--calls", "--rollouts", "--gates", "--older-than", "90d")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["cached", "model", "calls", "1", "2.5", "MB", "of", "text"]
    assert lines[1].split() == ["expired", "rollouts", "0", "0", "B", "of", "text"]
    assert lines[-1] == "Removed."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Select what to remove"),
        (["--deleted"], "--older-than 90d"),
        (["--calls"], "--older-than 90d"),
        (["--rollouts", "--max-size", "1GB"], "add --calls"),
        (["--audit"], "--older-than 90d"),
        (["--by-settings", "--calls"], "without other selections"),
    ],
)
def test_wrong_options_are_refused(capsys, options, message) -> None:
    with pytest.raises(SystemExit) as caught:
        call_command("prune", *options)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def stored_audit_entry(*, days_ago: float) -> None:
    entry = AuditEntry.objects.create(username="ann", action="runs:cancel", method="POST", path="/runs/1/", status=302)
    AuditEntry.objects.filter(pk=entry.pk).update(created_at=timezone.now() - timedelta(days=days_ago))


def test_audit_entries_are_removed_by_age(capsys) -> None:
    stored_audit_entry(days_ago=400)
    stored_audit_entry(days_ago=10)
    assert prune(capsys, "--audit", "--older-than", "365d")["audit entries"]["count"] == 1
    assert AuditEntry.objects.count() == 1


def test_periodic_task_removes_only_what_the_settings_select(capsys, settings) -> None:
    deleted_run()
    stored_call("a", days_ago=100)
    stored_audit_entry(days_ago=100)
    prune_task()
    assert (Run.objects.count(), ModelCall.objects.count(), AuditEntry.objects.count()) == (1, 1, 1)
    settings.KEEP_CALLS_DAYS = settings.KEEP_DELETED_RUNS_DAYS = 90
    settings.KEEP_AUDIT_DAYS = 120
    assert prune(capsys, "--by-settings", "--dry-run")["cached model calls"]["count"] == 1
    prune_task()
    assert (Run.objects.count(), ModelCall.objects.count(), AuditEntry.objects.count()) == (0, 0, 1)


def test_a_negative_number_of_days_is_refused() -> None:
    variables = EnvironmentVariables({"LLMEVAL_KEEP_CALLS_DAYS": "-1"})
    with pytest.raises(ImproperlyConfigured, match="LLMEVAL_KEEP_CALLS_DAYS=-1 must be at least 0"):
        variables.number("LLMEVAL_KEEP_CALLS_DAYS", 0, minimum=0)


def test_failed_removal_does_not_prevent_later_ones(settings, monkeypatch) -> None:
    settings.KEEP_AUDIT_DAYS = 365

    def fail() -> Removal:
        raise OSError("the storage cannot be reached")

    monkeypatch.setattr("llmeval_site.retention.workspace_snapshots", fail)
    entry = AuditEntry.objects.create(username="a", action="POST", path="/", status=200)
    AuditEntry.objects.filter(pk=entry.pk).update(created_at=timezone.now() - timedelta(days=10_000))
    with pytest.raises(OSError, match="cannot be reached"):
        prune_task()
    assert not AuditEntry.objects.exists()


def test_failed_step_of_closing_workspaces_does_not_prevent_later_ones(monkeypatch) -> None:
    done = []

    def fail() -> None:
        raise OSError("the storage cannot be reached")

    monkeypatch.setattr(tasks, "has_workspaces", lambda: True)
    monkeypatch.setattr(tasks, "close_expired_rollouts", fail)
    monkeypatch.setattr(tasks, "save_idle_rollouts", fail)
    monkeypatch.setattr(tasks, "remove_unneeded_snapshots", lambda: done.append("snapshots"))
    monkeypatch.setattr(tasks, "get_workspaces", lambda: SimpleNamespace(sweep=lambda: done.append("boxes")))
    with pytest.raises(OSError, match="cannot be reached"):
        tasks.close_workspaces()
    assert done == ["snapshots", "boxes"]


@pytest.mark.parametrize("method", ["listdir", "delete"])
def test_storage_of_snapshots_that_stopped_is_reported(
    method: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def fail(name: str) -> None:
        calls.append(name)
        raise ConnectionError("no route to host")

    folders = [f"rollouts/0c9b6a5e-6a52-4bb0-9d2e-{number:012}" for number in range(2)]
    for folder in folders:
        storages["snapshots"].save(f"{folder}/b", ContentFile(b"left"))
    with monkeypatch.context() as patch:
        patch.setattr(storages["snapshots"], method, fail)
        with pytest.raises(SystemExit) as ended:
            call_command("prune", "--rollouts")
    remove_snapshot_folders(folders)
    what = "Snapshots of workspaces cannot be listed" if method == "listdir" else "The snapshots in rollouts/0c9b6a5e-"
    assert (ended.value.code, len(calls)) == (3, 1)
    message = capsys.readouterr().err
    assert message.startswith(what)
    assert "ConnectionError: no route to host. Check LLMEVAL_SNAPSHOTS and its storage." in message
