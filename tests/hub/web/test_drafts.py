"""Drafts of uploads: their problems are corrected on the page, nothing is lost, and nobody else can see them."""

import io
import re
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from hub.common.problems import Problem
from hub.manifest.problems import BundleError, problem_to_json
from hub.models import Environment, EnvironmentVersion, UploadDraft
from hub.web import drafts
from llmeval_site.models import AuditEntry
from llmeval_site.retention import expired_drafts, removals_by_settings
from sandbox.client import shared_pools
from sandbox.errors import SandboxUnavailable
from tests.hub.archives import packed
from tests.hub.bundle_files import lines, write_bundle
from tests.hub.web.test_upload import send, zipped
from tests.members import member
from tests.site.teams.world import stored_team

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]

GOOD_ROWS = lines([{"country": name, "capital": city} for name, city in (("France", "Paris"), ("Spain", "Madrid"))])
WRONG = lines([{"case": name, "content": "Lyon", "why": "no capital"} for name in ("France", "Spain")])


@pytest.fixture
def address(client: Client, curator: User, tmp_path: Path) -> str:
    """The page of a draft whose cases.jsonl has a broken line and whose wrong answers are missing."""
    folder = write_bundle(tmp_path / "bundle", files={"cases.jsonl": '{"country": "France"\n'})
    (folder / "wrong.jsonl").unlink()
    answer = send(client, zipped(folder))
    assert answer.status_code == 302
    return answer["Location"]


def text(response: HttpResponse) -> str:
    return response.content.decode()


def seen(client: Client, address: str, path: str) -> str:
    """Return the digest of a file as the form of the page has it."""
    found = re.search(r'name="seen" value="([0-9a-f]*)"', text(client.get(address, {"file": path})))
    assert found is not None
    return found[1]


def edit(client: Client, address: str, path: str, content: str, **more: object) -> HttpResponse:
    data = {"path": path, "text": content, "seen": seen(client, address, path), **more}
    return client.post(address, data)


def stored_text(path: str) -> str:
    with zipfile.ZipFile(io.BytesIO(UploadDraft.objects.get().archive)) as archive:
        return archive.read(path).decode()


def test_upload_with_problems_becomes_a_draft_that_lists_them(client: Client, address: str) -> None:
    page = text(client.get(address))
    assert "cases.jsonl, line 1" in page
    assert "has no file &#x27;wrong.jsonl&#x27;" in page
    assert "Add the file, or remove the key." in page
    assert UploadDraft.objects.get().name == "bundle.zip"
    assert not EnvironmentVersion.objects.exists()


def test_page_shows_the_file_of_the_first_problem_and_the_line(client: Client, address: str) -> None:
    page = text(client.get(address, {"file": "cases.jsonl", "line": "1"}))
    assert "<pre>{&quot;country&quot;: &quot;France&quot;</pre>" in page
    assert 'data-line="1"' in page
    assert 'data-line="' not in text(client.get(address, {"file": "cases.jsonl", "line": "x"}))


def test_corrected_draft_is_stored_as_a_version_and_deleted(client: Client, address: str, curator: User) -> None:
    answer = edit(client, address, "cases.jsonl", GOOD_ROWS.replace("\n", "\r\n"))
    assert answer.status_code == 302
    page = text(client.get(answer["Location"]))
    assert "Checked again: 1 problem left." in page and "cases.jsonl, line" not in page
    assert stored_text("cases.jsonl") == GOOD_ROWS
    answer = edit(client, address, "wrong.jsonl", WRONG)
    assert answer["Location"] == "/hub/capitals/1.0.0/"
    assert "is stored with 2 cases." in text(client.get(answer["Location"]))
    environment = Environment.objects.get()
    assert (environment.owner, environment.visibility) == (curator, Environment.Visibility.PRIVATE)
    assert not UploadDraft.objects.exists()
    assert EnvironmentVersion.objects.get().gate_request.tries == 0


def test_draft_of_a_team_that_its_owner_has_left_is_kept_and_not_stored(
    client: Client, address: str, curator: User
) -> None:
    UploadDraft.objects.update(team=stored_team("vision", curator))
    edit(client, address, "wrong.jsonl", WRONG)
    curator.groups.remove(Group.objects.get(name="Group vision"))
    answer = edit(client, address, "cases.jsonl", GOOD_ROWS)
    assert answer.status_code == 302
    page = text(client.get(answer["Location"]))
    assert "the bundle cannot be stored: You are in no team &#x27;vision&#x27;" in page
    assert stored_text("cases.jsonl") == GOOD_ROWS and not Environment.objects.exists()


def test_opening_another_file_keeps_the_text_of_this_one(client: Client, address: str) -> None:
    answer = edit(client, address, "cases.jsonl", "half done", open="7:environment.yaml")
    assert answer["Location"].endswith("?file=environment.yaml&line=7#edit")
    assert stored_text("cases.jsonl") == "half done"
    assert "cases.jsonl, line 1" in text(client.get(answer["Location"]))  # not checked again yet


def test_unchanged_and_unwritten_files_are_not_stored(client: Client, address: str) -> None:
    before = UploadDraft.objects.get()
    edit(client, address, "cases.jsonl", '{"country": "France"\n', open=":new.txt")
    edit(client, address, "new.txt", "", open=":cases.jsonl")
    after = UploadDraft.objects.get()
    assert (bytes(after.archive), after.changed_at) == (bytes(before.archive), before.changed_at)


def test_text_is_kept_on_the_page_if_another_tab_changed_the_file(client: Client, address: str) -> None:
    old = seen(client, address, "cases.jsonl")
    edit(client, address, "cases.jsonl", "from the other tab")
    answer = client.post(address, {"path": "cases.jsonl", "text": "from this tab", "seen": old})
    assert answer.status_code == 422
    assert "was changed in the meantime" in text(answer) and "\nfrom this tab</textarea>" in text(answer)
    assert stored_text("cases.jsonl") == "from the other tab"
    new = re.search(r'name="seen" value="(\w+)"', text(answer))
    assert new is not None
    client.post(address, {"path": "cases.jsonl", "text": "from this tab", "seen": new[1]})
    assert stored_text("cases.jsonl") == "from this tab"


def test_uploaded_file_replaces_the_open_one_or_is_added(client: Client, address: str) -> None:
    file = SimpleUploadedFile("cases.jsonl", GOOD_ROWS.encode())
    edit(client, address, "cases.jsonl", "ignored", upload=file)
    assert stored_text("cases.jsonl") == GOOD_ROWS
    answer = edit(
        client,
        address,
        "README.md",
        "# Kept",
        upload=SimpleUploadedFile("w.jsonl", WRONG.encode()),
        other="wrong.jsonl",
    )
    assert answer["Location"] == "/hub/capitals/1.0.0/"
    assert EnvironmentVersion.objects.get().readme == "# Kept"


def test_name_without_a_file_is_opened(client: Client, address: str) -> None:
    answer = edit(client, address, "environment.yaml", "", other="data/new.jsonl", open="")
    assert answer["Location"].endswith("?file=data%2Fnew.jsonl#edit")
    assert "This file is not in the bundle." in text(client.get(answer["Location"]))


@pytest.mark.parametrize("path", ["../evil.txt", "/etc/passwd", "a\\b", "cases.jsonl/x", "CASES.jsonl"])
def test_unsafe_names_are_refused_and_the_text_is_kept(client: Client, address: str, path: str) -> None:
    answer = client.post(address, {"path": path, "text": "my text", "seen": ""})
    assert answer.status_code == 422
    assert "was not stored" in text(answer) and "\nmy text</textarea>" in text(answer)
    assert client.post(address, {"path": path, "text": "my text"}, headers={"HX-Request": "true"}).status_code == 200
    assert not AuditEntry.objects.filter(action="hub:draft").exists()


def test_null_characters_and_missing_paths_get_an_error(client: Client, address: str) -> None:
    for data in ({"path": "cases.jsonl", "text": "a\0b"}, {"text": "a"}):
        answer = client.post(address, data)
        assert answer.status_code == 422 and 'role="alert"' in text(answer)


def test_binary_and_long_files_can_be_replaced_but_not_edited(
    client: Client, curator: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "MAX_EDITED", 100)
    folder = write_bundle(tmp_path / "b", category="no", files={"image.png": b"\x89PNG\xff", "long.txt": "x" * 101})
    address = send(client, zipped(folder))["Location"]
    for path, why in (("image.png", "not UTF-8"), ("long.txt", "longer than 100 bytes")):
        page = text(client.get(address, {"file": path}))
        assert why in page and "<textarea" not in page
    client.post(address, {"path": "image.png", "seen": "", "upload": SimpleUploadedFile("image.png", b"text")})
    assert stored_text("image.png") == "text"


def test_only_its_owner_can_see_change_and_discard_a_draft(client: Client, address: str) -> None:
    stranger = Client()
    stranger.force_login(User.objects.create_superuser("boss"))
    assert stranger.get(address).status_code == 404
    assert stranger.post(address, {"path": "cases.jsonl", "text": "x"}).status_code == 404
    assert stranger.get(f"{address}bundle").status_code == 404
    assert stranger.post(f"{address}discard/").status_code == 404
    assert "bundle.zip" not in text(stranger.get("/hub/upload/"))
    assert "bundle.zip" in text(client.get("/hub/upload/"))
    assert client.post(f"{address}discard/").status_code == 302
    assert not UploadDraft.objects.exists()


def test_owner_without_the_permission_cannot_use_a_draft(client: Client, address: str, curator: User) -> None:
    curator.groups.clear()
    assert client.get(address).status_code == 403


def test_draft_can_be_downloaded(client: Client, address: str) -> None:
    answer = client.get(f"{address}bundle")
    assert b"".join(answer) == bytes(UploadDraft.objects.get().archive)
    assert 'filename="bundle.zip"' in answer["Content-Disposition"]


def test_expired_draft_is_gone_and_removed(client: Client, address: str) -> None:
    assert expired_drafts().count == 0
    assert "expired drafts" in {removal().kind for removal in removals_by_settings()}
    assert expired_drafts().count == 0
    assert "expired drafts" in {removal().kind for removal in removals_by_settings()}
    UploadDraft.objects.update(changed_at=timezone.now() - UploadDraft.KEPT - timedelta(minutes=1))
    assert client.get(address).status_code == 404
    assert "bundle.zip" not in text(client.get("/hub/upload/"))
    expired_drafts().remove()
    assert not UploadDraft.objects.exists()


def test_number_and_size_of_drafts_are_limited(
    client: Client, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = zipped(write_bundle(tmp_path / "broken", category="nonsense"))
    monkeypatch.setattr(drafts, "MAX_DRAFTS", 1)
    answer = send(client, broken)
    assert answer.status_code == 422
    assert "You have 1 draft," in text(answer) and "category" in text(answer)
    monkeypatch.setattr(drafts, "MAX_DRAFTS", 2)
    monkeypatch.setattr(drafts, "MAX_UNPACKED", 400)
    assert "cannot be edited here" in text(send(client, broken))
    assert "cannot be edited here" in text(edit(client, address, "cases.jsonl", "x" * 500))
    assert UploadDraft.objects.count() == 1


def test_large_upload_is_checked_but_not_kept(
    client: Client, curator: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub.web.views.uploads.MAX_PACKED", 10)
    answer = send(client, zipped(write_bundle(tmp_path / "broken", category="nonsense")))
    assert answer.status_code == 422
    assert "cannot be edited here" in text(answer) and "category" in text(answer)
    assert send(client, zipped(write_bundle(tmp_path / "good")))["Location"] == "/hub/capitals/1.0.0/"


def test_archive_that_cannot_be_opened_becomes_no_draft(client: Client, curator: User) -> None:
    answer = send(client, packed({"notes.txt": b"no manifest"}))
    assert answer.status_code == 422 and "there is no environment.yaml" in text(answer)
    assert not UploadDraft.objects.exists()


def test_names_and_content_of_a_draft_are_text_on_the_page(client: Client, curator: User, tmp_path: Path) -> None:
    evil = "</textarea><script>alert(1)</script>"
    folder = write_bundle(tmp_path / "b", category=evil, files={"README.md": evil})
    (folder / "<img src=x>.txt").write_text("x")
    page = text(client.get(send(client, zipped(folder))["Location"], {"file": "README.md"}))
    assert "<script>alert" not in page and "<img src=x>" not in page
    assert "&lt;/textarea&gt;&lt;script&gt;" in page


def test_code_of_a_draft_is_not_executed(
    client: Client, curator: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_pool(options: object = None) -> None:
        raise AssertionError("a sandbox was opened")

    monkeypatch.setattr(shared_pools, "get_shared_pool", no_pool)
    mark = tmp_path / "executed"
    code = f"open({str(mark)!r}, 'w').write('x')\n\n\ndef reset(case, seed):\n    return {{}}\n"
    folder = write_bundle(tmp_path / "b", category="no", harness={"type": "custom"}, files={"harness.py": code})
    address = send(client, zipped(folder))["Location"]
    edit(client, address, "harness.py", code + "\n")
    client.get(address, {"file": "harness.py"})
    assert stored_text("harness.py") == code + "\n"
    assert not mark.exists()


def test_unavailable_check_keeps_the_text(client: Client, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(**_: object) -> None:
        raise SandboxUnavailable("No process for templates.")

    monkeypatch.setattr(drafts, "receive_bundle", unavailable)
    answer = edit(client, address, "cases.jsonl", GOOD_ROWS)
    assert "cannot be checked now: No process for templates." in text(client.get(answer["Location"]))
    assert stored_text("cases.jsonl") == GOOD_ROWS


def test_draft_can_be_discarded_during_its_check(client: Client, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def discarded(**_: object) -> None:
        UploadDraft.objects.all().delete()
        raise BundleError([Problem("This is wrong.")])

    monkeypatch.setattr(drafts, "receive_bundle", discarded)
    answer = edit(client, address, "cases.jsonl", GOOD_ROWS)
    assert answer.status_code == 302
    assert client.get(answer["Location"]).status_code == 404
    assert not UploadDraft.objects.exists()


def test_problems_of_an_earlier_check_do_not_replace_those_of_edited_files(
    client: Client, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = [problem_to_json(Problem("Later."))]

    def edited_and_checked(**_: object) -> None:
        UploadDraft.objects.update(changed_at=timezone.now(), problems=later)
        raise BundleError([Problem("Earlier.")])

    monkeypatch.setattr(drafts, "receive_bundle", edited_and_checked)
    edit(client, address, "cases.jsonl", GOOD_ROWS)
    assert UploadDraft.objects.get().problems == later


def test_slug_of_another_owner_can_be_corrected(client: Client, curator: User, tmp_path: Path) -> None:
    send(client, zipped(write_bundle(tmp_path / "one")))
    address = send(client, zipped(write_bundle(tmp_path / "two", title="Other")))["Location"]
    page = text(client.get(address))
    assert "Raise `version`" in page
    manifest = stored_text("environment.yaml").replace("version: 1.0.0", "version: 1.0.1")
    assert edit(client, address, "environment.yaml", manifest)["Location"] == "/hub/capitals/1.0.1/"


def test_page_of_a_draft_has_a_fixed_number_of_queries(
    client: Client, address: str, django_assert_max_num_queries: object
) -> None:
    for index in range(20):
        edit(client, address, f"file{index}.txt", "x", open=":cases.jsonl")
    with django_assert_max_num_queries(6):  # type: ignore[operator]
        client.get(address)


def test_member_of_no_group_cannot_upload(client: Client, address: str) -> None:
    client.force_login(member(name="nobody"))
    assert client.get(address).status_code == 403
