"""Tests of the upload page: valid bundles can be used at once, and all problems of others are listed."""

import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client

from hub.models import Environment, EnvironmentVersion, archive_storage
from tests.hub.archives import device, link, named, packed
from tests.hub.bundle_files import write_bundle
from tests.members import member

pytestmark = pytest.mark.django_db


def zipped(folder: Path) -> bytes:
    return packed({str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()})


def send(client: Client, content: bytes) -> HttpResponse:
    file = SimpleUploadedFile("bundle.zip", content, content_type="application/zip")
    return client.post("/hub/upload/", {"bundle": file})


def test_valid_upload_redirects_to_its_page_and_belongs_to_the_user(
    client: Client, curator: User, tmp_path: Path
) -> None:
    answer = send(client, zipped(write_bundle(tmp_path / "capitals")))
    assert (answer.status_code, answer["Location"]) == (302, "/hub/capitals/1.0.0/")
    assert "capitals@1.0.0 is stored with 3 cases." in client.get("/hub/capitals/1.0.0/").content.decode()
    environment = Environment.objects.get()
    assert (environment.owner, environment.visibility) == (curator, Environment.Visibility.PRIVATE)


def test_repeated_upload_is_reported_as_stored(client: Client, curator: User, tmp_path: Path) -> None:
    content = zipped(write_bundle(tmp_path / "capitals"))
    send(client, content)
    answer = send(client, content)
    assert "was stored already" in client.get(answer["Location"]).content.decode()
    assert EnvironmentVersion.objects.count() == 1


def test_every_problem_is_shown_with_file_line_and_remedy(client: Client, curator: User, tmp_path: Path) -> None:
    folder = write_bundle(tmp_path / "capitals", category="nonsense", gold="no-such-file.jsonl")
    (folder / "cases.jsonl").write_text(json.dumps({"country": "France", "capital": "Paris"}) + "\n{broken\n")
    page = client.get(send(client, zipped(folder))["Location"]).content.decode()
    for part in ("problems", "category", "cases.jsonl, line 2", "no-such-file.jsonl"):
        assert part in page
    assert Environment.objects.count() == 0


@pytest.mark.parametrize(
    "content", [b"", b"no zip at all", packed()[:-30], link(), device(), named("../evil.txt"), packed({})]
)
def test_hostile_or_broken_archive_is_rejected(client: Client, curator: User, content: bytes) -> None:
    answer = send(client, content)
    assert answer.status_code == 422
    page = answer.content.decode()
    assert 'role="alert"' in page and 'data-label="line"' not in page  # narrow screens show the label of each value
    assert EnvironmentVersion.objects.count() == 0


def test_names_in_an_archive_are_text_on_the_page(client: Client, curator: User) -> None:
    page = send(client, named("../<script>alert(1)</script>")).content.decode()
    assert "<script>alert" not in page and "&lt;script&gt;" in page


def test_slug_of_another_owner_cannot_be_used(client: Client, tmp_path: Path) -> None:
    send_as = member("Curator", name="first")
    client.force_login(send_as)
    send(client, zipped(write_bundle(tmp_path / "capitals")))
    Environment.objects.update(owner=member(name="owner"))
    client.force_login(member(name="nobody"))
    assert send(client, zipped(write_bundle(tmp_path / "two", version="2.0.0"))).status_code == 403


def test_changed_content_with_the_same_version_is_rejected(client: Client, curator: User, tmp_path: Path) -> None:
    send(client, zipped(write_bundle(tmp_path / "one")))
    answer = send(client, zipped(write_bundle(tmp_path / "two", title="Other")))
    page = client.get(answer["Location"]).content.decode()
    assert "Raise `version`" in page


def test_form_without_a_file_shows_an_error(client: Client, curator: User) -> None:
    answer = client.post("/hub/upload/", {})
    assert answer.status_code == 422
    assert "This field is required." in answer.content.decode()


def test_upload_while_archives_cannot_be_stored_says_so_and_can_be_repeated(
    client: Client, curator: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    content = zipped(write_bundle(tmp_path / "capitals", summary="Stored at the second try."))
    with monkeypatch.context() as patch:
        patch.setattr(type(archive_storage()), "save", full)
        answer = send(client, content)
    assert answer.status_code == 422
    assert "No space left on device" in answer.content.decode()
    assert not Environment.objects.exists()
    assert send(client, content).status_code == 302
