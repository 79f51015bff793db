"""The tab "Versions" of an environment: the list, and the differences between any two versions."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from hub.bundles import changes
from hub.models import Environment, EnvironmentVersion
from hub.services import import_bundle
from tests.factories import stored_version
from tests.hub.bundle_files import ROWS, lines, write_bundle
from tests.hub.web.test_environment import page
from tests.markup import markup
from tests.members import member

pytestmark = pytest.mark.django_db


def store(folder: Path, version: str, **files: str | bytes) -> EnvironmentVersion:
    """Store a version with *files*; `__` stands for the dot of a name."""
    contents = {name.replace("__", "."): content for name, content in files.items()}
    found = import_bundle(bundle=write_bundle(folder / version, files=contents, version=version, wrong=None))
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    return found


def test_first_version_has_nothing_to_compare(client: Client, user: User, tmp_path: Path) -> None:
    store(tmp_path, "1.0.0")
    shown = page(client, "/hub/capitals/1.0.0/changes/")
    assert "there is no earlier version to compare it with" in shown
    assert 'name="from"' not in shown and "gates not run" in shown


def test_any_two_versions_are_compared_in_both_directions(client: Client, user: User, tmp_path: Path) -> None:
    store(tmp_path, "1.0.0", tools__py="x = 1\n", old__txt="gone\n")
    store(tmp_path, "1.1.0", tools__py="x = 2\n")
    store(
        tmp_path,
        "1.2.0",
        tools__py="x = 3\ny = 4\n",
        cases__jsonl=lines([*ROWS, {"country": "Peru", "capital": "Lima"}]),
    )
    shown = markup(page(client, "/hub/capitals/1.2.0/changes/?from=1.0.0"))
    assert "From 1.0.0 to 1.2.0" in shown and "2 other files differ" in shown
    assert "<code>x = 1</code>" in shown and "<code>x = 3</code>" in shown and "<code>gone</code>" in shown
    assert "/hub/capitals/1.2.0/cases/Peru/" in shown
    back = page(client, "/hub/capitals/1.0.0/changes/?from=1.2.0")
    assert "From 1.2.0 to 1.0.0" in back and "/hub/capitals/1.2.0/cases/Peru/" in back
    assert "From 1.1.0 to 1.2.0" in page(client, "/hub/capitals/1.2.0/changes/")


def test_form_chooses_both_versions(client: Client, user: User, tmp_path: Path) -> None:
    for version in ("1.0.0", "1.1.0", "1.2.0"):
        store(tmp_path, version)
    answer = client.get("/hub/capitals/1.2.0/changes/?from=1.0.0&to=1.1.0")
    assert answer["Location"] == "/hub/capitals/1.1.0/changes/?from=1.0.0"
    same = page(client, "/hub/capitals/1.1.0/changes/?from=1.0.0&to=1.1.0")
    assert "<option selected>1.1.0</option>" in same and "<option selected>1.0.0</option>" in same
    for query in ("from=9.9.9", "to=9.9.9"):
        assert client.get(f"/hub/capitals/1.2.0/changes/?{query}").status_code == 404


def test_files_are_counted_by_kind_and_lines(tmp_path: Path) -> None:
    before = store(tmp_path, "1.0.0", tools__py="a\nb\n", old__txt="x\n", logo__png=b"\xff\xfe", same__md="s\n")
    after = store(tmp_path, "1.1.0", tools__py="a\nc\nd\n", new__json="{}\n", logo__png=b"\xff\xfd", same__md="s\n")
    found = changes.version_changes(before, after, with_files=True)
    assert [(file.path, file.kind, file.added, file.removed) for file in found.files] == [
        ("logo.png", "changed", 0, 0),
        ("new.json", "added", 1, 0),
        ("old.txt", "removed", 0, 1),
        ("tools.py", "changed", 2, 1),
    ]
    assert "not text" in found.files[0].diff[0][1]


def test_datasets_are_compared_by_case_alone(tmp_path: Path) -> None:
    before = store(tmp_path, "1.0.0")
    after = store(tmp_path, "1.1.0", cases__jsonl=lines(ROWS[:2]))
    assert changes.version_changes(before, after, with_files=True).files == []


def test_many_changed_files_are_cut(
    client: Client, user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "_MAX_FILES", 2)
    store(tmp_path, "1.0.0")
    store(tmp_path, "1.1.0", **{f"f{i}__txt": "x\n" for i in range(5)})
    assert "5 other files differ; the first 2 are shown" in markup(page(client, "/hub/capitals/1.1.0/changes/"))


def test_versions_without_archive_are_compared_by_case(client: Client, user: User) -> None:
    stored_version("sums", cases=2)
    latest = stored_version("sums", cases=3, version="1.1.0")
    Environment.objects.update(latest=latest, visibility=Environment.Visibility.PUBLISHED)
    shown = page(client, "/hub/sums/1.1.0/changes/")
    assert "The other files cannot be compared" in shown and "/hub/sums/1.1.0/cases/c2/" in shown


def test_queries_do_not_grow_with_the_number_of_versions(client: Client, user: User) -> None:
    counts = []
    for number in range(1, 12):
        latest = stored_version("sums", cases=2, version=f"1.{number}.0")
        Environment.objects.update(latest=latest, visibility=Environment.Visibility.PUBLISHED)
        if number in (2, 11):
            client.get("/hub/sums/1.2.0/changes/")
            with CaptureQueriesContext(connection) as queries:
                page(client, "/hub/sums/1.2.0/changes/")
            counts.append(len(queries))
    assert counts[0] == counts[1]


def test_versions_of_held_out_environments_are_withheld(client: Client, tmp_path: Path) -> None:
    store(tmp_path, "1.0.0")
    owner = member(name="owner")
    Environment.objects.update(owner=owner, held_out=True)
    for user, status in ((member(), 403), (owner, 200), (member("Curator"), 200)):
        client.force_login(user)
        assert client.get("/hub/capitals/1.0.0/changes/").status_code == status
