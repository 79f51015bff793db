"""Import, export and publishing: stored objects, rejected bundles, and no partial changes."""

import io

import pytest
from django.contrib.auth.models import Permission, User

from hub import services
from hub.manifest.problems import BundleError
from hub.models import Case, CaseDefect, Environment, EnvironmentVersion
from hub.selectors import (
    VersionNotFound,
    compile_version,
    get_version,
    list_case_ids,
    list_visible_environments,
)
from hub.services import (
    EnvironmentRefused,
    export_bundle,
    import_bundle,
    load_catalog,
    publish_environment,
    report_defect,
    resolve_defect,
    retire_environment,
    set_certificate,
)
from tests.hub.bundle_files import lines, write_bundle

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]


@pytest.fixture
def curator(db):
    user = User.objects.create_user("curator")
    user.user_permissions.add(Permission.objects.get(codename="curate_environment"))
    return User.objects.get(pk=user.pk)


def certificate(version, **gates):
    return {
        "digest": version.digest,
        "gates": [{"name": name, "status": status} for name, status in (gates or {"gold": "passed"}).items()],
    }


def test_import_stores_version_cases_digests_and_archive(tmp_path):
    version = import_bundle(bundle=write_bundle(tmp_path / "b", files={"README.md": "# Hello"}))
    assert (version.environment.slug, version.version, version.case_count) == ("capitals", "1.0.0", 3)
    assert version.readme == "# Hello"
    assert version.environment.latest == version
    assert version.environment.visibility == Environment.Visibility.PRIVATE
    assert list_case_ids(version) == ["France", "Spain", "Norway"]
    cases = list(version.cases.order_by("position"))
    assert [case.position for case in cases] == [0, 1, 2]
    assert cases[0].data["input"] == "What is the capital of France?"
    assert len({case.input_digest for case in cases} | {case.scoring_digest for case in cases}) == 6


def test_reimport_of_same_content_stores_nothing(tmp_path, media):
    first = import_bundle(bundle=write_bundle(tmp_path / "b"))
    assert import_bundle(bundle=write_bundle(tmp_path / "c")) == first
    assert len([path for path in media.rglob("*") if path.is_file()]) == 1


def test_changed_content_under_a_stored_version_is_rejected(tmp_path):
    import_bundle(bundle=write_bundle(tmp_path / "b"))
    with pytest.raises(BundleError, match=r"Raise `version`, for example to 1\.0\.1"):
        import_bundle(bundle=write_bundle(tmp_path / "b", title="Other"))
    assert EnvironmentVersion.objects.count() == 1


def test_problems_of_changed_content_under_a_stored_version_are_reported(tmp_path):
    folder = write_bundle(tmp_path / "b")
    import_bundle(bundle=folder)
    (folder / "cases.jsonl").unlink()
    with pytest.raises(BundleError) as caught:
        import_bundle(bundle=folder)
    assert [problem.path for problem in caught.value.problems] == ["version", "dataset.path"]


def test_bundle_with_a_problem_stores_nothing(tmp_path, media):
    with pytest.raises(BundleError) as caught:
        import_bundle(
            bundle=write_bundle(tmp_path / "b", files={"cases.jsonl": '{"country": 1}\n{"capital": 2}\n{x\n'})
        )
    assert len(caught.value.problems) > 2
    assert not Environment.objects.exists()
    assert not media.exists()


def test_concurrent_import_returns_the_stored_version(tmp_path, monkeypatch):
    folder = write_bundle(tmp_path / "b")
    store = services.store_archive

    def overtaken(bundle, check):
        monkeypatch.setattr(services, "store_archive", store)
        import_bundle(bundle=folder)
        return store(bundle, check)

    monkeypatch.setattr(services, "store_archive", overtaken)
    assert import_bundle(bundle=folder) == EnvironmentVersion.objects.get()
    assert Case.objects.count() == 3


def test_cases_of_several_batches_are_stored_in_order(tmp_path):
    rows = [{"country": f"C{i}", "capital": "x"} for i in range(1203)]
    version = import_bundle(bundle=write_bundle(tmp_path / "b", files={"cases.jsonl": lines(rows)}, wrong=None))
    assert version.case_count == 1203
    assert list_case_ids(version) == [f"C{i}" for i in range(1203)]


def test_only_a_newer_version_becomes_the_latest(tmp_path):
    import_bundle(bundle=write_bundle(tmp_path / "b", version="1.9.0"))
    newer = import_bundle(bundle=write_bundle(tmp_path / "b", version="1.10.0", title="Newer"))
    import_bundle(bundle=write_bundle(tmp_path / "b", version="1.10.0-beta.1", title="Beta"))
    environment = Environment.objects.get()
    assert (environment.latest, environment.title) == (newer, "Newer")


def test_texts_edited_by_a_curator_survive_a_new_version(tmp_path):
    import_bundle(bundle=write_bundle(tmp_path / "b"))
    Environment.objects.update(title="Edited by hand")
    import_bundle(bundle=write_bundle(tmp_path / "b", version="1.1.0", title="New title", summary="New summary"))
    environment = Environment.objects.get()
    assert (environment.title, environment.summary) == ("Edited by hand", "New summary")


def test_held_out_can_only_be_tightened(tmp_path):
    import_bundle(bundle=write_bundle(tmp_path / "b", held_out=True))
    import_bundle(bundle=write_bundle(tmp_path / "b", version="1.1.0", held_out=False))
    assert Environment.objects.get().held_out


def test_only_curators_may_import_under_a_slug_of_another_owner(tmp_path, curator):
    ann, bob = User.objects.create_user("ann"), User.objects.create_user("bob")
    import_bundle(bundle=write_bundle(tmp_path / "b"), owner=ann)
    with pytest.raises(EnvironmentRefused, match="belongs to someone else"):
        import_bundle(bundle=write_bundle(tmp_path / "b", version="1.1.0"), owner=bob)
    import_bundle(bundle=write_bundle(tmp_path / "b", version="1.2.0"), owner=curator)
    import_bundle(bundle=write_bundle(tmp_path / "b", version="1.3.0"), owner=ann)
    assert Environment.objects.get().owner == ann


def test_reexported_bundle_has_the_same_bytes(tmp_path):
    first = io.BytesIO()
    version = import_bundle(bundle=write_bundle(tmp_path / "b", files={"tools.py": "x = 1\n"}))
    export_bundle(version=version, file=first)
    Environment.objects.all().delete()
    (tmp_path / "export.zip").write_bytes(first.getvalue())
    again = import_bundle(bundle=tmp_path / "export.zip")
    second = io.BytesIO()
    export_bundle(version=again, file=second)
    assert again.digest == version.digest
    assert first.getvalue() == second.getvalue()


def test_compiled_version_is_cached(tmp_path, django_assert_num_queries):
    version = import_bundle(bundle=write_bundle(tmp_path / "b", files={"helpers.py": "x = 2\n"}))
    compiled = compile_version(version)
    assert compiled.files == {"helpers.py": b"x = 2\n"}
    with django_assert_num_queries(0):
        assert compile_version(version) is compiled


def test_version_is_found_by_slug_and_number(tmp_path):
    version = import_bundle(bundle=write_bundle(tmp_path / "b"))
    assert get_version("capitals") == get_version("capitals", "1.0.0") == get_version("capitals@1.0.0") == version
    with pytest.raises(VersionNotFound, match="did you mean 'capitals'"):
        get_version("capitels")
    with pytest.raises(VersionNotFound, match=r"it has 1\.0\.0"):
        get_version("capitals", "2.0.0")


def test_publishing_needs_a_certificate_without_a_failed_gate(tmp_path):
    version = import_bundle(bundle=write_bundle(tmp_path / "b"))
    with pytest.raises(EnvironmentRefused, match="gates have not been run"):
        publish_environment(environment=version.environment)
    set_certificate(version=version, certificate=certificate(version, gold="failed", wrong="passed"))
    with pytest.raises(EnvironmentRefused, match="failed gold"):
        publish_environment(environment=version.environment)
    set_certificate(version=version, certificate=certificate(version, gold="passed", wrong="not_run"))
    publish_environment(environment=version.environment)
    assert version.environment.visibility == Environment.Visibility.PUBLISHED


@pytest.mark.parametrize("retired", [False, True])
def test_new_version_of_a_public_environment_becomes_the_latest_when_its_gates_have_passed(tmp_path, retired):
    first = import_bundle(bundle=write_bundle(tmp_path / "a"), certificate=None)
    set_certificate(version=first, certificate=certificate(first))
    publish_environment(environment=first.environment)
    if retired:
        retire_environment(environment=first.environment)
    for number, status, latest in (("1.1.0", "failed", "1.0.0"), ("1.2.0", "passed", "1.2.0")):
        version = import_bundle(bundle=write_bundle(tmp_path / number, version=number, title=number))
        assert Environment.objects.get().latest != version
        set_certificate(version=version, certificate=certificate(version, gold=status))
        environment = Environment.objects.get()
        assert environment.latest.version == latest
    assert environment.title == "1.2.0"


def test_publishing_a_version_that_has_not_passed_is_refused_if_an_earlier_one_is_published(tmp_path):
    first = import_bundle(bundle=write_bundle(tmp_path / "a"))
    set_certificate(version=first, certificate=certificate(first))
    publish_environment(environment=first.environment)
    with pytest.raises(EnvironmentRefused, match="its gates have not been run"):
        import_bundle(bundle=write_bundle(tmp_path / "b", version="1.1.0"), publish=True)
    failed = certificate(EnvironmentVersion.objects.get(version="1.1.0"), gold="failed")
    with pytest.raises(EnvironmentRefused, match="it failed gold"):
        import_bundle(bundle=tmp_path / "b", certificate=failed, publish=True)


def test_certificate_with_another_digest_is_rejected(tmp_path):
    version = import_bundle(bundle=write_bundle(tmp_path / "b"))
    with pytest.raises(EnvironmentRefused, match="digest"):
        set_certificate(version=version, certificate={"digest": "0" * 64, "gates": []})


def test_visibility_of_environments_by_user(tmp_path, curator):
    ann, bob = User.objects.create_user("ann"), User.objects.create_user("bob")
    mine = import_bundle(bundle=write_bundle(tmp_path / "b"), owner=ann).environment
    shown = import_bundle(bundle=write_bundle(tmp_path / "c", slug="shown"), owner=ann)
    set_certificate(version=shown, certificate=certificate(shown))
    publish_environment(environment=shown.environment)
    assert set(list_visible_environments(ann)) == set(list_visible_environments(curator)) == {mine, shown.environment}
    assert set(list_visible_environments(bob)) == {shown.environment}
    retire_environment(environment=shown.environment)
    assert set(list_visible_environments(bob)) == {shown.environment}


def test_defect_report_is_resolved_once(tmp_path, curator):
    import_bundle(bundle=write_bundle(tmp_path / "b"))
    claim = report_defect(case=Case.objects.all()[0], description="Wrong target.", user=curator)
    resolve_defect(defect=claim, accepted=True, resolution="It is.", user=curator)
    assert (claim.status, claim.resolved_by) == (CaseDefect.Status.ACCEPTED, curator)
    with pytest.raises(EnvironmentRefused, match="already"):
        resolve_defect(defect=claim, accepted=False, resolution="No.", user=curator)


# ---- the catalogue ---------------------------------------------------------------------------------------------------


def test_load_catalog_imports_only_changed_environments(tmp_path, django_assert_num_queries):
    write_bundle(tmp_path / "catalog" / "one")
    write_bundle(tmp_path / "catalog" / "two", slug="two")
    assert [name for name, _ in load_catalog(folder=tmp_path / "catalog")] == ["one", "two"]
    with django_assert_num_queries(1):
        assert list(load_catalog(folder=tmp_path / "catalog")) == []
    write_bundle(tmp_path / "catalog" / "two", slug="two", version="1.0.1")
    assert [str(version) for _, version in load_catalog(folder=tmp_path / "catalog")] == ["two@1.0.1"]


def test_later_certificate_publishes_a_stored_version(tmp_path):
    import json

    folder = write_bundle(tmp_path / "catalog" / "one")
    ((_, version),) = load_catalog(folder=tmp_path / "catalog")
    assert version.environment.visibility == Environment.Visibility.PRIVATE
    write_bundle(folder, files={"certificate.json": json.dumps(certificate(version))})
    assert [name for name, _ in load_catalog(folder=tmp_path / "catalog")] == ["one"]
    assert Environment.objects.get().visibility == Environment.Visibility.PUBLISHED
    assert list(load_catalog(folder=tmp_path / "catalog")) == []


def test_broken_bundle_does_not_stop_loading_the_catalog(tmp_path):
    write_bundle(tmp_path / "catalog" / "broken", slug="No Slug")
    write_bundle(tmp_path / "catalog" / "good")
    results = dict(load_catalog(folder=tmp_path / "catalog"))
    assert isinstance(results["broken"], BundleError)
    assert results["good"].environment.slug == "capitals"
