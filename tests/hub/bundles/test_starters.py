"""Starter bundles: each harness has a small valid one that passes its gates, on the upload page and by command."""

import errno
import io
import os
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hub.bundles.loader import open_archive, open_bundle
from hub.bundles.starters import FOLDER, list_starters, open_starter
from hub.bundles.validation import validate_bundle
from hub.gates.runner import run_gates
from hub.harnesses.registry import HARNESSES
from sandbox.client.pool import Pool
from tests.commands import run_command
from tests.hub.bundle_files import write_bundle
from tests.members import member
from tests.sandbox import containers

MAX_PACKED = 8_000  # bytes
each = pytest.mark.parametrize("harness", sorted(HARNESSES))


def test_every_harness_has_a_starter_and_no_other_folder_is_left() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(HARNESSES)
    starters = list_starters()
    assert [starter.harness for starter in starters][:2] == ["single_turn", "multi_turn"]
    assert all(starter.title and starter.about.endswith(".") for starter in starters)


@each
def test_starter_is_valid_small_and_of_its_harness(harness: str) -> None:
    out = io.BytesIO()
    with open_starter(harness) as bundle:
        assert validate_bundle(bundle).problems == []
        assert bundle.compile().harness.type == harness
        assert bundle.readme
        bundle.write(out)
    assert out.tell() < MAX_PACKED


@pytest.mark.parametrize("harness", sorted(set(HARNESSES) - {"workspace"}))
def test_starter_passes_every_gate(harness: str, pool: Pool) -> None:
    with open_starter(harness) as bundle:
        gates = run_gates(bundle, pool=pool)["gates"]
    assert {gate["status"] for gate in gates} == {"passed"}, gates


@pytest.mark.exhaustive
@pytest.mark.docker
def test_workspace_starter_passes_every_gate(tmp_path: Path) -> None:
    run_command("start_bundle", "workspace", tmp_path / "box")
    manifest = tmp_path / "box" / "environment.yaml"
    manifest.write_text(manifest.read_text().replace("image: llmeval-sandbox:latest", f"image: {containers.image()}"))
    with open_bundle(tmp_path / "box") as bundle:
        gates = run_gates(bundle, pool=None)["gates"]
    assert {gate["status"] for gate in gates} == {"passed"}, gates


@each
def test_command_writes_the_files_of_the_starter(harness: str, tmp_path: Path) -> None:
    assert "validate_bundle" in run_command("start_bundle", harness, tmp_path / "mine")
    with open_bundle(tmp_path / "mine") as written, open_starter(harness) as starter:
        assert written.digest == starter.digest


def test_command_to_check_a_folder_with_a_space_can_be_pasted(tmp_path: Path) -> None:
    folder = tmp_path / "my bundle"
    assert f"validate_bundle '{folder}'" in run_command("start_bundle", "tools", folder)


def test_command_does_not_write_into_an_existing_folder(tmp_path: Path) -> None:
    folder = write_bundle(tmp_path / "mine")
    before = sorted(folder.iterdir())
    assert "exists already" in run_command("start_bundle", "tools", folder, code=2)
    assert sorted(folder.iterdir()) == before
    assert "cannot be created" in run_command("start_bundle", "tools", tmp_path / "no" / "folder", code=2)


def test_no_folder_is_left_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_bytes(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    said = run_command("start_bundle", "tools", tmp_path / "mine", code=2)
    assert said == f"{tmp_path}/mine cannot be written: no space left on device.\n"
    assert not (tmp_path / "mine").exists()


@pytest.mark.django_db
def test_upload_page_offers_each_starter_with_a_sentence(client: Client) -> None:
    client.force_login(member("Curator"))
    page = client.get("/hub/upload/").content.decode()
    for starter in list_starters():
        assert f'href="/hub/upload/starters/{starter.harness}/"' in page
        assert starter.about in page


@pytest.mark.django_db
def test_downloaded_starter_is_the_bundle(client: Client) -> None:
    client.force_login(User.objects.create_superuser("boss"))
    answer = client.get("/hub/upload/starters/tools/")
    assert (answer["Content-Type"], answer["Content-Disposition"]) == (
        "application/zip",
        'attachment; filename="my-tools.zip"',
    )
    with open_archive(io.BytesIO(b"".join(answer))) as downloaded, open_starter("tools") as starter:
        assert downloaded.digest == starter.digest
    assert client.get("/hub/upload/starters/nothing/").status_code == 404
