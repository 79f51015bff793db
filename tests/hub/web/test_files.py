"""The tab "Files" of an environment: highlighted files, large and binary ones, downloads, held-out environments."""

from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.http import StreamingHttpResponse
from django.test import Client

from hub.models import Environment, EnvironmentVersion, archive_storage
from hub.services import import_bundle
from hub.web.reading.highlighting import MAX_HIGHLIGHTED
from tests.hub.bundle_files import lines, write_bundle
from tests.hub.web.test_environment import page
from tests.members import member

pytestmark = pytest.mark.django_db
ADDRESS = "/hub/capitals/1.0.0/files/"


@pytest.fixture
def long_text() -> str:
    return lines([{"note": "é" * 70, "number": i} for i in range(400)])


@pytest.fixture(autouse=True)
def capitals(tmp_path: pytest.TempPathFactory, long_text: str) -> None:
    files = {"world.json": long_text, "logo.png": b"\x89PNG\xff\xfe", "check.py": "def check():\n    return '<b>'\n"}
    import_bundle(bundle=write_bundle(tmp_path / "bundle", files=files))  # type: ignore[operator]
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)


def download(client: Client, address: str) -> StreamingHttpResponse:
    answer = client.get(address)
    assert isinstance(answer, StreamingHttpResponse) and answer.status_code == 200
    return answer


def test_manifest_is_shown_first_and_all_files_are_listed(client: Client, user: User) -> None:
    shown = page(client, ADDRESS)
    assert '<span class="k">slug</span>' in shown and "exact_match" in shown
    for name in ("cases.jsonl", "check.py", "environment.yaml", "logo.png", "world.json", "wrong.jsonl"):
        assert f"?file={name}" in shown
    assert 'href="?file=environment.yaml" aria-current="page"' in shown


def test_code_and_data_are_highlighted_and_escaped(client: Client, user: User) -> None:
    code = page(client, f"{ADDRESS}?file=check.py")
    assert '<span class="k">def</span>' in code and "&lt;b&gt;" in code and "'<b>'" not in code
    assert '<span class="s">&quot;Norway&quot;</span>' in page(client, f"{ADDRESS}?file=cases.jsonl")


def test_large_file_is_cut_and_can_be_downloaded(client: Client, user: User, long_text: str) -> None:
    shown = page(client, f"{ADDRESS}?file=world.json")
    assert "Download the file to read all of it" in shown
    assert '&quot;number&quot;</span>: <span class="m">0</span>' in shown and "399" not in shown
    assert len(shown) < 10 * MAX_HIGHLIGHTED
    answer = download(client, "/hub/capitals/1.0.0/file?file=world.json")
    assert b"".join(answer.streaming_content).decode() == long_text  # type: ignore[arg-type]
    assert answer["Content-Disposition"] == 'attachment; filename="world.json"'
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Length"] == str(len(long_text.encode()))


def test_binary_file_is_only_downloaded(client: Client, user: User) -> None:
    assert "This file cannot be shown: not UTF-8." in page(client, f"{ADDRESS}?file=logo.png")
    assert b"".join(download(client, "/hub/capitals/1.0.0/file?file=logo.png").streaming_content) == b"\x89PNG\xff\xfe"  # type: ignore[arg-type]


@pytest.mark.parametrize("address", [ADDRESS, "/hub/capitals/1.0.0/file"])
def test_unknown_files_are_404(client: Client, user: User, address: str) -> None:
    for name in ("../settings.py", "missing.py", "certificate.json"):
        assert client.get(f"{address}?file={name}").status_code == 404


@pytest.mark.parametrize("flag", ["held_out", "partly_held_out"])
def test_files_of_held_out_environments_are_withheld(client: Client, flag: str) -> None:
    owner = member(name="owner")
    Environment.objects.update(owner=owner, **{flag: True})
    for user, status in ((member(), 403), (owner, 200), (member("Curator"), 200)):
        client.force_login(user)
        for address in (ADDRESS, f"{ADDRESS}?file=cases.jsonl", "/hub/capitals/1.0.0/file?file=cases.jsonl"):
            assert client.get(address).status_code == status, (user, address)


def test_pages_that_need_a_damaged_archive_respond_with_503_and_the_remedy(client: Client, user: User) -> None:
    version = EnvironmentVersion.objects.get()
    archive_storage().delete(version.archive.name)
    (Path(settings.ARCHIVE_CACHE) / f"{version.digest}.zip").unlink(missing_ok=True)
    for address in (ADDRESS, f"{ADDRESS.removesuffix('files/')}file", f"{ADDRESS.removesuffix('files/')}bundle"):
        answer = client.get(address)
        assert answer.status_code == 503
        assert "Import the same bundle again" in answer.content.decode()
