"""Large transcripts lie in files of the storage of archives; whoever reads a row gets the same content as before."""

import asyncio
import gzip
import json
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.apps import apps
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.core.management import call_command
from django.db import connection, models, transaction
from django.test import Client
from django.utils import timezone

from hub.common.fields import (
    ContentUnavailable,
    LargeField,
    delete_files,
    digest_of,
    file_names,
    length_of,
    unused_files_deleted,
)
from hub.models import Case
from llmeval_site.tasks import remove_unused_files
from runs.execution import storage as writing
from runs.execution.faults import find_fault
from runs.models import EpisodeCheckpoint, EpisodeSession, ModelCall, Response, Run, Score
from runs.retention import unused_files
from runs.services import delete_run
from tests.factories import stored_response, stored_run, stored_score, stored_version

pytestmark = pytest.mark.django_db

LIMIT = 2000
LARGE = [
    {"role": "user", "content": "Which text is long? é"},
    {"role": "assistant", "content": "long " * 1000, "tool_calls": [{"b": 1, "a": 2}]},
]
Callbacks = Callable[..., AbstractContextManager[list[Callable[[], Any]]]]


@pytest.fixture(autouse=True)
def limit(settings: Any) -> None:
    settings.LARGE_TRANSCRIPT_BYTES = LIMIT


@pytest.fixture
def run() -> Run:
    return stored_run(stored_version(cases=3), ["alpha"])


def large_response(run: Run, case: str = "c0", **fields: Any) -> Response:
    return stored_response(run, Case.objects.get(external_id=case), messages=LARGE, **fields)


def column_of(row: models.Model, column: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT "{column}" FROM "{row._meta.db_table}" WHERE "{row._meta.pk.column}" = %s', [row.pk])  # type: ignore[union-attr]
        return str(cursor.fetchone()[0])


def exists(name: str) -> bool:
    return storages["archives"].exists(name)


# ---- content ---------------------------------------------------------------------------------------------------------


def test_large_transcript_is_read_as_it_was_stored_and_its_row_is_small(run: Run) -> None:
    response = large_response(run)
    call = ModelCall.objects.create(key="k" * 64, purpose="answer", model="m", message=LARGE[1], finish_reason="stop")
    expected = json.loads(json.dumps(LARGE))
    assert Response.objects.get(pk=response.pk).messages == expected
    assert list(Response.objects.get(pk=response.pk).messages[1]["tool_calls"][0]) == ["b", "a"]
    assert ModelCall.objects.values_list("message", flat=True).get(pk=call.pk) == expected[1]
    for row, column in ((response, "messages"), (call, "message")):
        assert len(column_of(row, column)) < 300
        (name,) = file_names(type(row).objects.filter(pk=row.pk))
        assert storages["archives"].size(name) < LIMIT  # compressed


@pytest.mark.parametrize("size", [10, 1_000, 100_000, 2_000_000])
def test_column_never_exceeds_the_limit(run: Run, size: int) -> None:
    response = stored_response(
        run, Case.objects.get(external_id="c0"), messages=[{"role": "assistant", "content": "é" * size}]
    )
    assert len(column_of(response, "messages").encode()) <= LIMIT
    assert len(Response.objects.get(pk=response.pk).messages[0]["content"]) == size


def test_small_and_earlier_values_stay_in_the_row(run: Run, settings: Any) -> None:
    small = stored_response(run, Case.objects.get(external_id="c0"))
    settings.LARGE_TRANSCRIPT_BYTES = 0  # never in files
    earlier = large_response(run, "c1")
    settings.LARGE_TRANSCRIPT_BYTES = LIMIT
    assert file_names(Response.objects.all()) == []
    assert json.loads(column_of(small, "messages"))[1]["content"] == "an answer"
    assert Response.objects.get(pk=earlier.pk).messages == json.loads(json.dumps(LARGE))


def test_value_that_looks_like_a_reference_is_not_mistaken_for_one() -> None:
    message = {"$file": "transcripts/../bundles/x.zip", "sha256": "0", "characters": 5}
    ModelCall.objects.create(key="k" * 64, purpose="answer", model="m", message=message, finish_reason="stop")
    assert ModelCall.objects.get().message == message


def test_pages_rest_and_exports_show_the_content(run: Run, client: Client) -> None:
    response = large_response(run, status="failed")
    client.force_login(User.objects.create_superuser("admin"))
    assert "long long long" in client.get(f"/responses/{response.pk}/").content.decode()
    assert client.get(f"/responses/{response.pk}/raw").json()["messages"] == json.loads(json.dumps(LARGE))
    (row,) = client.get(f"/api/v1/runs/{run.pk}/responses/").json()["results"]
    assert row["messages"][1]["content"] == LARGE[1]["content"]
    for export in ("failures", "rollouts"):
        answer = client.get(f"/runs/{run.pk}/{export}?format=jsonl")
        assert answer.status_code == 200
        assert str(LARGE[1]["content"]) in b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]


LONG = "A very long answer. é " * 200
DETAIL = {"judges": [{"model": "j", "content": "long " * 1000}], "b": 1, "a": 2}


def test_long_answers_and_details_of_scores_are_read_as_they_were_stored(run: Run, client: Client) -> None:
    response = large_response(run, status="failed", text=LONG)
    score = stored_score(response, detail=DETAIL, execution={"stdout": "x" * 5000})
    for row, column in ((response, "text"), (score, "detail"), (score, "execution")):
        assert len(column_of(row, column)) < 300
    assert Response.objects.get().text == LONG
    assert (Score.objects.get().detail, Score.objects.get().execution) == (DETAIL, {"stdout": "x" * 5000})
    assert length_in_row_and_file(Response.objects.all(), "text") == len(LONG)
    client.force_login(User.objects.create_superuser("admin"))
    (row,) = client.get(f"/api/v1/runs/{run.pk}/responses/").json()["results"]
    assert (row["text"], row["scores"][0]["detail"]) == (LONG, DETAIL)
    answer = client.get(f"/runs/{run.pk}/failures?format=jsonl")
    assert json.loads(b"".join(answer.streaming_content))["text"] == LONG  # type: ignore[attr-defined]


def length_in_row_and_file(rows: models.QuerySet[Response], column: str) -> int:
    return int(rows.annotate(length=length_of(Response, column)).values_list("length", flat=True).get())


def test_equal_long_answers_have_equal_digests(run: Run) -> None:
    for case, text in (("c0", LONG), ("c1", LONG), ("c2", f"{LONG}.")):
        large_response(run, case, text=text)
    first, second, third = Response.objects.order_by("case").values_list(digest_of("text"), flat=True)
    assert first == second != third


# ---- missing and damaged files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "missing"),
        (b"no gzip", "damaged"),
        (b"", "damaged"),
        (gzip.compress(b"x" * 1000)[:10] + b"\xff" * 30, "damaged"),  # the header is right
    ],
)
def test_missing_or_damaged_file_is_reported_on_the_page_and_over_rest(
    run: Run, client: Client, content: bytes | None, problem: str
) -> None:
    response = large_response(run)
    (name,) = file_names(Response.objects.all())
    storages["archives"].delete(name)
    if content is not None:
        storages["archives"].save(name, ContentFile(content))
    client.force_login(User.objects.create_superuser("admin"))
    for path in (f"/responses/{response.pk}/", f"/responses/{response.pk}/raw", f"/api/v1/runs/{run.pk}/responses/"):
        answer = client.get(path)
        assert answer.status_code == 503
        assert f"This content is {problem}" in answer.content.decode() and name in answer.content.decode()
    assert client.get(f"/runs/{run.pk}/").status_code == 200  # lists do not read transcripts
    with pytest.raises(ContentUnavailable):
        Response.objects.get(pk=response.pk)


def test_storage_that_does_not_respond_is_an_infrastructure_fault(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise ConnectionRefusedError("no route")

    monkeypatch.setattr(type(storages["archives"]), "save", fail)
    with pytest.raises(ContentUnavailable, match="no route") as raised, transaction.atomic():
        large_response(run)
    assert find_fault(raised.value) is not None
    assert not Response.objects.exists()


@pytest.mark.django_db(transaction=True)
async def test_missing_file_of_a_cached_reply_fails_no_other_look_up() -> None:
    for key in "abc":
        await ModelCall.objects.acreate(
            key=key * 64, purpose="answer", model="m", message=LARGE[1], finish_reason="stop"
        )
    (name,) = await sync_to_async(file_names)(ModelCall.objects.filter(key="b" * 64))
    storages["archives"].delete(name)
    reader = writing.Reader()
    found = await asyncio.gather(*(reader.cached(key * 64) for key in "abcd"), return_exceptions=True)
    await reader.close()
    assert isinstance(found[0], writing.StoredCall)
    assert isinstance(found[1], ContentUnavailable)
    assert name in str(found[1])
    assert isinstance(found[2], writing.StoredCall)
    assert found[3] is None


# ---- deletion --------------------------------------------------------------------------------------------------------


def pruned(capsys: pytest.CaptureFixture[str], callbacks: Callbacks, *options: str) -> dict[str, Any]:
    capsys.readouterr()
    with callbacks(execute=True):
        call_command("prune", *options, "--json")
    (row,) = json.loads(capsys.readouterr().out)["removed"]
    return dict(row)


def test_prune_removes_the_files_of_deleted_runs_also_if_they_are_damaged(
    run: Run, capsys: pytest.CaptureFixture[str], django_capture_on_commit_callbacks: Callbacks
) -> None:
    stored_score(large_response(run), detail=DETAIL)
    (gone,), (scored,) = file_names(Response.objects.all()), file_names(Score.objects.all())
    storages["archives"].save(gone, ContentFile(b"damaged"))
    other = stored_run(stored_version("other", cases=1), ["alpha"])
    stored_response(other, Case.objects.get(version=other.environments.get().version), messages=LARGE)
    delete_run(run=run)
    Run.objects.filter(pk=run.pk).update(deleted_at=timezone.now() - timedelta(days=100))
    (kept,) = file_names(Response.objects.filter(run_environment__run=other))
    removed = pruned(capsys, django_capture_on_commit_callbacks, "--deleted", "--older-than", "90d")
    assert removed["characters"] > 5000  # those in files count
    assert not exists(gone) and not exists(scored) and exists(kept)


def test_prune_removes_the_files_of_cached_calls(
    capsys: pytest.CaptureFixture[str], django_capture_on_commit_callbacks: Callbacks
) -> None:
    for key in ("a", "b"):
        ModelCall.objects.create(key=key * 64, purpose="answer", model="m", message=LARGE[1], finish_reason="stop")
        days = 3 if key == "a" else 1
        ModelCall.objects.filter(key=key * 64).update(created_at=timezone.now() - timedelta(days=days))
    (old,), (new,) = (file_names(ModelCall.objects.filter(key=key * 64)) for key in ("a", "b"))
    removed = pruned(capsys, django_capture_on_commit_callbacks, "--calls", "--max-size", "8kB")
    assert removed["count"] == 1
    assert not exists(old) and exists(new)


class StoppedStorage:
    """Storage of archives that stopped: each method in *methods* raises ConnectionError, and is counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *methods: str) -> None:
        self.calls: list[str] = []
        for method in methods:
            monkeypatch.setattr(storages["archives"], method, self._fail)

    def _fail(self, name: str) -> None:
        self.calls.append(name)
        raise ConnectionError("no route to host")


@pytest.fixture
def old_calls() -> list[str]:
    """Return the names of the files of five cached calls that are three days old."""
    for key in "abcde":
        ModelCall.objects.create(key=key * 64, purpose="answer", model="m", message=LARGE[1], finish_reason="stop")
    ModelCall.objects.update(created_at=timezone.now() - timedelta(days=3))
    return file_names(ModelCall.objects.all())


def prune_calls(capsys: pytest.CaptureFixture[str]) -> str:
    """Prune the calls, and return the message on stderr of the error."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        call_command("prune", "--calls", "--older-than", "1d")
    assert ended.value.code == 3
    return capsys.readouterr().err


def test_prune_keeps_rows_whose_files_cannot_be_deleted_because_the_storage_stopped(
    old_calls: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = StoppedStorage(monkeypatch, "exists", "delete")
    assert "ConnectionError: no route to host. Check LLMEVAL_ARCHIVES" in prune_calls(capsys)
    assert stopped.calls == old_calls[:1]
    assert ModelCall.objects.count() == 5


@pytest.mark.django_db(transaction=True)
def test_prune_ends_at_the_first_file_if_the_storage_stops_meanwhile(
    old_calls: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.retention.BATCH", 2)
    stopped = StoppedStorage(monkeypatch, "delete")
    printed = prune_calls(capsys)
    (tried,) = stopped.calls
    assert tried in old_calls
    assert f"The file {tried} cannot be deleted: ConnectionError" in printed
    assert ModelCall.objects.count() == 3  # only those of the first batch were removed; `--files` finds their files


def test_files_of_a_deleted_row_are_left_if_the_storage_stopped(
    old_calls: list[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Callbacks,
) -> None:
    stopped = StoppedStorage(monkeypatch, "exists", "delete")
    with django_capture_on_commit_callbacks(execute=True), unused_files_deleted(ModelCall.objects.all()):
        ModelCall.objects.all().delete()
    assert len(stopped.calls) == 1
    assert caplog.messages == [
        f"files that are no longer needed are left: The file {old_calls[0]} cannot be deleted: "
        "ConnectionError: no route to host. Check LLMEVAL_ARCHIVES and its storage."
    ]


def test_file_of_a_replaced_response_is_deleted_unless_it_is_used_again(
    run: Run, django_capture_on_commit_callbacks: Callbacks
) -> None:
    first = large_response(run, status="errored")
    (name,) = file_names(Response.objects.all())
    for messages, kept in ((LARGE, True), ([*LARGE, LARGE[1]], False)):
        again = Response(
            run_environment=first.run_environment, run_model=first.run_model, case=first.case, messages=messages
        )
        with django_capture_on_commit_callbacks(execute=True):
            writing._store([writing.FinishedResponse(response=again, scores=[], replaces=True)], True)
        assert exists(name) == kept
        assert len(Response.objects.get().messages) == len(messages)


# ---- files that no row refers to -------------------------------------------------------------------------------------


def make_old(*names: str, days: float = 2) -> None:
    for name in names:
        os.utime(storages["archives"].path(name), (time.time() - days * 86_400,) * 2)


def rolled_back_file(run: Run) -> str:
    """Return the file of a response whose transaction was rolled back."""
    before = set(all_files())
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        large_response(run, "c1")
        raise ZeroDivisionError
    (name,) = set(all_files()) - before
    return name


def all_files() -> list[str]:
    root = Path(storages["archives"].path("transcripts"))
    return [f"transcripts/{path.relative_to(root)}" for path in root.rglob("*") if path.is_file()]


@pytest.fixture
def no_other_files() -> None:
    delete_files(all_files())


@pytest.mark.usefixtures("no_other_files")
def test_prune_removes_old_files_of_writes_that_were_rolled_back(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    large_response(run)
    (kept,) = file_names(Response.objects.all())
    unused, new = rolled_back_file(run), rolled_back_file(stored_run(Case.objects.all()[0].version, ["beta"]))
    make_old(kept, unused)

    def removed(*options: str) -> dict[str, Any]:
        capsys.readouterr()
        call_command("prune", "--files", *options, "--json")
        files, _archives = json.loads(capsys.readouterr().out)["removed"]
        return dict(files)

    size = storages["archives"].size(unused)
    expected = {"kind": "unused files", "count": 1, "characters": size, "kept": ""}
    assert removed("--dry-run") == expected and exists(unused)
    assert removed() == expected and not exists(unused)
    assert exists(kept) and exists(new)  # the transaction of a new file may not have ended
    assert removed()["count"] == 0


@pytest.mark.usefixtures("no_other_files")
def test_file_that_was_written_again_since_it_was_found_is_not_removed(run: Run) -> None:
    unused = rolled_back_file(run)
    make_old(unused)
    removal = unused_files()
    large_response(run, "c1")
    assert (removal.count, file_names(Response.objects.all())) == (1, [unused])
    removal.remove()
    assert Response.objects.get().messages == json.loads(json.dumps(LARGE))


@pytest.mark.usefixtures("no_other_files")
def test_files_of_every_model_are_found_once_their_rows_are_gone(run: Run) -> None:
    response = large_response(run)
    key = {"run_environment": response.run_environment, "run_model": response.run_model, "case": response.case}
    user = User.objects.create_user("trainer")
    ModelCall.objects.create(key="ab" * 32, purpose="answer", model="m", message=LARGE[1], finish_reason="stop")
    stored_score(response, detail=DETAIL)
    EpisodeCheckpoint.objects.create(**key, state={"messages": LARGE})
    EpisodeSession.objects.create(user=user, case=response.case, state={"messages": LARGE}, expires_at=timezone.now())
    make_old(*all_files())
    remove_unused_files()
    tables = [model for model in apps.get_models() if file_names(model._default_manager.all())]
    assert set(tables) == {Response, Score, ModelCall, EpisodeCheckpoint, EpisodeSession} == models_with_files()
    assert len(all_files()) == 5
    for model in tables:
        model._default_manager.all().delete()
    remove_unused_files()
    assert all_files() == []


def models_with_files() -> set[type[models.Model]]:
    fields = [(model, field) for model in apps.get_models() for field in model._meta.concrete_fields]
    return {model for model, field in fields if isinstance(field, LargeField)}
