"""The quota of a team for the bundles of its environments."""

from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from hub.models import Environment, EnvironmentVersion, Team
from hub.services import import_bundle, move_environment
from hub.teams.quotas import QuotaExceeded, get_storage_use
from tests.hub.bundle_files import write_bundle
from tests.hub.web.test_upload import zipped
from tests.members import member
from tests.site.teams.world import stored_team

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(settings: object, tmp_path: Path) -> Team:
    return stored_team("vision", member("Curator", name="ann"))


def size_of(version: EnvironmentVersion) -> int:
    assert version.archive_bytes == version.archive.size
    return int(version.archive.size)


def test_storage_counts_all_versions_of_the_environments_of_the_team(team: Team, tmp_path: Path) -> None:
    bundles = [write_bundle(tmp_path / number, version=number) for number in ("1.0.0", "1.1.0")]
    versions = [import_bundle(bundle=bundle, team=team) for bundle in bundles]
    import_bundle(bundle=write_bundle(tmp_path / "shared", slug="shared"))
    assert get_storage_use(team).used == sum(map(size_of, versions))


def test_upload_beyond_the_quota_is_refused_and_stores_nothing(team: Team, tmp_path: Path, client: Client) -> None:
    first = import_bundle(bundle=write_bundle(tmp_path / "a"), team=team)
    Team.objects.update(storage_bytes=size_of(first) + 10)
    Environment.objects.update(owner=team.group.user_set.get())
    client.force_login(team.group.user_set.get())
    folder = Path(first.archive.path).parent.parent
    stored = set(folder.rglob("*.zip"))
    newer = zipped(write_bundle(tmp_path / "b", version="1.1.0", title="Newer"))
    answer = client.post("/api/v1/environments/", newer, content_type="application/zip")
    assert (answer.status_code, answer.json()["code"]) == (429, "quota_exceeded")
    assert "The team vision may store" in answer.json()["message"] and answer.json()["resets_at"] is None
    file = SimpleUploadedFile("bundle.zip", newer, content_type="application/zip")
    page = client.post("/hub/upload/", {"bundle": file, "team": "vision"})
    assert page.status_code == 422 and "An administrator can raise it." in page.content.decode()
    assert EnvironmentVersion.objects.count() == 1
    assert set(folder.rglob("*.zip")) == stored
    Team.objects.update(storage_bytes=10 * size_of(first))
    assert client.post("/api/v1/environments/", newer, content_type="application/zip").status_code == 201


def test_environment_is_moved_only_to_a_team_with_enough_storage(team: Team, tmp_path: Path) -> None:
    version = import_bundle(bundle=write_bundle(tmp_path / "a"))
    size = size_of(version)
    EnvironmentVersion.objects.update(archive_bytes=None)  # as stored by an earlier release
    Team.objects.update(storage_bytes=size - 1)
    team.refresh_from_db()
    with pytest.raises(QuotaExceeded):
        move_environment(environment=version.environment, team=team)
    assert Environment.objects.get().team is None
    Team.objects.update(storage_bytes=size)
    move_environment(environment=Environment.objects.get(), team=team)
    team.refresh_from_db()
    assert get_storage_use(team).share == 1.0


def locked_tables(queries: CaptureQueriesContext) -> list[str]:
    """Return the tables whose rows were locked, in the order of the queries."""
    locks = (query["sql"] for query in queries.captured_queries if "FOR UPDATE" in query["sql"])
    return [sql.partition(' FROM "')[2].partition('"')[0] for sql in locks]


def test_upload_and_move_lock_the_environment_before_the_team(team: Team, tmp_path: Path) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite locks no rows")
    with CaptureQueriesContext(connection) as upload:
        version = import_bundle(bundle=write_bundle(tmp_path / "a"), team=team)
    other = stored_team("audio")
    with CaptureQueriesContext(connection) as move:
        move_environment(environment=version.environment, team=other)
    assert locked_tables(upload) == locked_tables(move) == ["hub_environment", "hub_team"]
