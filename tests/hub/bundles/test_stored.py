"""Archives of stored versions: one storage for all machines, a cache on each, and clear errors."""

import io
import os
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import boto3
import pytest
from django.conf import settings as site_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.core.management import call_command
from django.test import Client
from moto.server import ThreadedMotoServer
from pytest_django import Settings

from hub import services
from hub.bundles.stored import (
    ArchivesUnreachable,
    ArchiveUnavailable,
    archive_size,
    open_stored_archive,
    open_stored_bundle,
)
from hub.common import unused_files as unused_files_module
from hub.common.storage.folder import written_atomically
from hub.models import EnvironmentVersion
from hub.selectors import _compiled, compile_version
from hub.services import import_bundle
from llmeval_site.configuration import storages as storages_module
from llmeval_site.configuration.storages import file_storage
from runs.models import Run
from runs.retention import unused_archives
from runs.services import create_run
from tests.endpoint import endpoint
from tests.hub.bundle_files import write_bundle
from tests.members import member
from tests.runs.capitals import all_passed, answer_capital, config_text, execute, load, resume, statuses
from tests.runs.capitals import write_bundle as write_capitals
from tests.runs.config.resolution import find_environments

pytestmark = pytest.mark.django_db(transaction=True)


class MemoryStorage(Storage):
    """Storage without a folder. `reads` counts the archives that were fetched."""

    files: dict[str, bytes] = {}
    reads = 0

    def _open(self, name: str, mode: str = "rb") -> ContentFile:
        if name not in self.files:
            raise FileNotFoundError(name)
        type(self).reads += 1
        return ContentFile(self.files[name])

    def _save(self, name: str, content: ContentFile) -> str:
        self.files[name] = content.read()
        return name

    def exists(self, name: str) -> bool:
        return name in self.files

    def size(self, name: str) -> int:
        return len(self.files[name])

    def delete(self, name: str) -> None:
        self.files.pop(name, None)


class UnreachableStorage(Storage):
    """Storage whose service does not respond."""

    def _open(self, name: str, mode: str = "rb") -> ContentFile:
        raise ConnectionError("no route to host")


def use(settings: Settings, entry: object) -> None:
    settings.STORAGES = {**site_settings.STORAGES, "archives": entry}


def use_class(settings: Settings, kind: type[Storage]) -> None:
    use(settings, {"BACKEND": f"{__name__}.{kind.__name__}"})


def other_machine(settings: Settings, tmp_path: Path) -> None:
    """Continue as a machine that has no copy of any archive."""
    settings.ARCHIVE_CACHE = tmp_path / "cache of another machine"
    _compiled.cache_clear()


@pytest.fixture(autouse=True)
def own_cache(settings: Settings, tmp_path: Path) -> Path:
    settings.ARCHIVE_CACHE = tmp_path / "cache"
    settings.MEDIA_ROOT = tmp_path / "media"
    _compiled.cache_clear()
    return tmp_path / "cache"


@pytest.fixture
def memory(settings: Settings) -> type[MemoryStorage]:
    MemoryStorage.files, MemoryStorage.reads = {}, 0
    use_class(settings, MemoryStorage)
    return MemoryStorage


@pytest.fixture
def version(memory: type[MemoryStorage], tmp_path: Path) -> EnvironmentVersion:
    return import_bundle(bundle=write_bundle(tmp_path / "b"))


def content(version: EnvironmentVersion) -> bytes:
    with open_stored_archive(version) as file:
        return file.read()


def test_an_archive_is_fetched_once_and_then_read_from_the_cache(version, memory, own_cache) -> None:
    assert content(version) == content(version) == memory.files[version.archive.name]
    with open_stored_bundle(version) as bundle:
        assert bundle.digest == version.digest
    assert memory.reads == 1
    assert [path.name for path in own_cache.iterdir()] == [f"{version.digest}.zip"]


def test_a_missing_archive_is_an_error_that_says_what_to_do(version, memory, own_cache) -> None:
    memory.files.clear()
    with pytest.raises(ArchiveUnavailable, match=r"capitals@1\.0\.0 is missing.*Import the same bundle again"):
        content(version)
    assert not list(own_cache.glob("*"))


@pytest.mark.parametrize("damage", ["truncated", "other bundle", "not a zip"])
def test_a_damaged_archive_is_not_used_and_not_cached(version, memory, own_cache, damage) -> None:
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("environment.yaml", "slug: capitals\n")
    stored = memory.files[version.archive.name]
    memory.files[version.archive.name] = {
        "truncated": stored[:-30],
        "other bundle": other.getvalue(),
        "not a zip": b"error",
    }[damage]
    with pytest.raises(ArchiveUnavailable, match=r"is damaged.*Import the same bundle again"):
        open_stored_bundle(version)
    assert not list(own_cache.glob("*"))


def test_importing_the_same_bundle_again_repairs_its_archive(version, memory, tmp_path) -> None:
    for damage in ({}, {version.archive.name: b"broken"}):
        memory.files = dict(damage)
        assert import_bundle(bundle=tmp_path / "b") == version
        shutil.rmtree(site_settings.ARCHIVE_CACHE, ignore_errors=True)
        assert content(version) == memory.files[version.archive.name]


def test_a_copy_that_was_damaged_on_this_machine_is_fetched_again(version, own_cache) -> None:
    content(version)
    (own_cache / f"{version.digest}.zip").write_bytes(b"broken")
    with open_stored_bundle(version) as bundle:
        assert bundle.digest == version.digest


def test_an_unreachable_storage_is_an_error_that_names_the_setting(version, settings, caplog) -> None:
    use_class(settings, UnreachableStorage)
    with pytest.raises(ArchiveUnavailable, match=r"no route to host\. Check LLMEVAL_ARCHIVES"):
        content(version)
    (record,) = caplog.records
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    assert "no route to host" in record.getMessage()


def test_the_cache_keeps_the_copies_that_were_used_last(memory, settings, tmp_path, own_cache) -> None:
    versions = [import_bundle(bundle=write_bundle(tmp_path / f"b{i}", version=f"1.0.{i}")) for i in range(3)]
    first, second, third = versions
    size = max(len(data) for data in memory.files.values())
    settings.ARCHIVE_CACHE_BYTES = 2 * size + size // 2
    content(first)
    content(second)
    os.utime(own_cache / f"{second.digest}.zip", (1, 1))
    content(third)
    assert {path.stem for path in own_cache.glob("*.zip")} == {first.digest, third.digest}
    settings.ARCHIVE_CACHE_BYTES = 0  # the copy that is needed now is kept
    assert content(second)
    assert {path.stem for path in own_cache.glob("*.zip")} == {second.digest}


def test_page_and_rest_respond_with_503_while_the_archive_is_missing(version, memory) -> None:
    client = Client()
    client.force_login(member("Curator"))
    assert client.get("/api/v1/environments/capitals/versions/1.0.0/bundle").getvalue() == content(version)
    memory.files.clear()
    (site_settings.ARCHIVE_CACHE / f"{version.digest}.zip").unlink()
    answer = client.get("/api/v1/environments/capitals/versions/1.0.0/bundle")
    assert answer.status_code == 503
    assert "is missing" in answer.json()["message"]


def test_a_run_whose_archive_is_missing_fails_before_it_calls_a_model_and_can_be_resumed(
    memory, settings, tmp_path
) -> None:
    write_capitals(tmp_path / "capitals")
    with endpoint(answer_capital) as server:
        config = load(tmp_path, config_text(server.url))
        run = create_run(config=config, environments=find_environments(config))
        stored = dict(memory.files)
        memory.files.clear()
        other_machine(settings, tmp_path)
        with pytest.raises(ArchiveUnavailable):
            execute(run, config)
        run = Run.objects.get()
        assert (run.status, statuses(run), server.requests) == ("failed", {}, [])
        assert "The archive of capitals@" in run.message and "LLMEVAL_ARCHIVES" in run.message
        memory.files.update(stored)
        assert all_passed(resume(run)[0])


PROGRAM = """
import sys, django
django.setup()
from hub.bundles.stored import open_stored_bundle
from hub.models import Environment, EnvironmentVersion
version = EnvironmentVersion(
    environment=Environment(slug="capitals"), digest=sys.argv[1], archive=sys.argv[2], version="1.0.0"
)
with open_stored_bundle(version) as bundle:
    print(len(list(bundle.cases())))
"""


@pytest.mark.parametrize("place", ["shared folder", pytest.param("a folder of its own", marks=pytest.mark.exhaustive)])
def test_processes_with_different_caches_read_one_storage(settings, tmp_path, place) -> None:
    shared = tmp_path / "shared"
    use(settings, {"BACKEND": "hub.common.storage.folder.FolderStorage", "OPTIONS": {"location": shared}})
    version = import_bundle(bundle=write_bundle(tmp_path / "b"))
    results = []
    for name in ("one", "two"):
        var = tmp_path / name
        archives = shared if place == "shared folder" else var / "own"
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, version.digest, version.archive.name],
            env={
                "PATH": "/usr/bin:/bin",
                "DJANGO_SETTINGS_MODULE": "llmeval_site.settings",
                "LLMEVAL_VAR": str(var),
                "LLMEVAL_ARCHIVES": str(archives),
            },
            cwd=site_settings.BASE_DIR,
            capture_output=True,
            text=True,
            timeout=120,
        )
        results.append((done.returncode, done.stdout.strip() or done.stderr.strip().splitlines()[-1]))
        assert len(list((var / "archive-cache").glob("*.zip"))) == (place == "shared folder")
    if place == "shared folder":
        assert results == [(0, "3")] * 2
    else:
        assert all(code == 1 and "is missing" in text for code, text in results)


def test_a_file_that_is_written_in_part_never_appears(tmp_path) -> None:
    with pytest.raises(OSError, match="disk full"), written_atomically(tmp_path / "a" / "b.zip") as file:
        file.write(b"half")
        raise OSError("disk full")
    assert list((tmp_path / "a").iterdir()) == []


# ---- buckets ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of an S3 server on this machine, with the bucket `evaluations`."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    client = boto3.client(
        "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="k", aws_secret_access_key="s"
    )
    client.create_bucket(Bucket="evaluations")
    yield url
    server.stop()


def bucket(place: str, endpoint: str) -> object:
    return file_storage(
        place, variable="LLMEVAL_ARCHIVES", endpoint=endpoint, region="us-east-1", access_key="k", secret_key="s"
    )


def test_archives_in_a_bucket_are_read_by_another_machine(settings, tmp_path, s3) -> None:
    use(settings, bucket("s3://evaluations/team/a", s3))
    version = import_bundle(bundle=write_bundle(tmp_path / "b"))
    other_machine(settings, tmp_path)
    with open_stored_bundle(version) as bundle:
        assert len(list(bundle.cases())) == 3
    stored = storages["archives"].bucket.objects.all()
    assert [item.key for item in stored] == [f"team/a/{version.archive.name}"]
    assert compile_version(version)


def test_damaged_and_missing_objects_of_a_bucket_are_reported_and_repaired(settings, tmp_path, s3) -> None:
    use(settings, bucket("s3://evaluations/b", s3))
    version = import_bundle(bundle=write_bundle(tmp_path / "b"))
    storages["archives"].bucket.put_object(Key=f"b/{version.archive.name}", Body=b"broken")
    with pytest.raises(ArchiveUnavailable, match="is damaged"):
        open_stored_bundle(version)
    storages["archives"].delete(version.archive.name)
    with pytest.raises(ArchiveUnavailable, match="is missing"):
        open_stored_bundle(version)
    import_bundle(bundle=tmp_path / "b")
    with open_stored_bundle(version) as bundle:
        assert bundle.digest == version.digest


@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_archive_of_an_import_that_was_rolled_back_can_be_removed_after_a_day(
    settings, tmp_path, monkeypatch, s3, place
) -> None:
    if place == "bucket":
        use(settings, bucket("s3://evaluations/c", s3))
    kept = import_bundle(bundle=write_bundle(tmp_path / "kept"))
    with monkeypatch.context() as patch, pytest.raises(OSError, match="disk full"):
        patch.setattr(services, "_create_cases", fail_with_full_disk)
        import_bundle(bundle=write_bundle(tmp_path / "unused", version="2.0.0"))
    assert unused_archives().count == 0  # the transaction may not have ended
    monkeypatch.setattr(unused_files_module, "_AGE", timedelta(0))
    removal = unused_archives()
    assert (removal.count, removal.characters > 100) == (1, True)
    unused_archives().remove()
    removal.remove()  # does nothing: another process has removed the file
    assert unused_archives().count == 0
    with open_stored_bundle(kept) as opened:
        assert opened.digest == kept.digest


def fail_with_full_disk(*args: object) -> None:
    raise OSError("disk full")


def test_unused_archive_that_is_imported_again_is_not_removed(settings, tmp_path, monkeypatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(OSError, match="disk full"):
        patch.setattr(services, "_create_cases", fail_with_full_disk)
        import_bundle(bundle=write_bundle(tmp_path / "b"))
    (path,) = (tmp_path / "media").rglob("*.zip")
    os.utime(path, (time.time() - 2 * 86_400,) * 2)
    removal = unused_archives()
    import_bundle(bundle=tmp_path / "b")
    removal.remove()
    assert (removal.count, path.is_file()) == (1, True)


def test_prune_says_that_the_storage_of_archives_does_not_respond(settings, capsys) -> None:
    use(settings, bucket("s3://evaluations", "http://127.0.0.1:9"))
    with pytest.raises(SystemExit) as caught:
        call_command("prune", "--files")
    assert caught.value.code == 3
    assert "cannot be read: EndpointConnectionError" in (message := capsys.readouterr().err)
    assert message.rstrip().endswith("Check LLMEVAL_ARCHIVES and its storage.")


def test_call_of_a_bucket_that_does_not_answer_ends_soon(settings, monkeypatch) -> None:
    monkeypatch.setattr(storages_module, "_READ_TIMEOUT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:  # accepts connections, and sends nothing
        use(settings, bucket("s3://evaluations", f"http://127.0.0.1:{server.getsockname()[1]}"))
        started = time.monotonic()
        with pytest.raises(ArchivesUnreachable, match="ReadTimeoutError"):
            archive_size("bundles/aa/aa.zip")
    assert time.monotonic() - started < 20


def test_a_bucket_that_does_not_exist_is_reported_by_name(settings, tmp_path, s3) -> None:
    use(settings, bucket("s3://misspelled", s3))
    with pytest.raises(ArchiveUnavailable, match=r"NoSuchBucket|Not Found|404"):
        import_bundle(bundle=write_bundle(tmp_path / "b"))
    assert not EnvironmentVersion.objects.exists()


@pytest.mark.parametrize("place", ["s3://", "relative/folder", "s3://user:secret@bucket"])
def test_an_invalid_place_is_refused_with_the_name_of_the_variable(place) -> None:
    with pytest.raises(ImproperlyConfigured, match="LLMEVAL_ARCHIVES"):
        bucket(place, "")
