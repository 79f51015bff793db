"""Commands on bundles: output, stored objects and exit codes."""

import json

import pytest

from hub.models import Environment, EnvironmentVersion
from tests.commands import run_command
from tests.hub.bundle_files import ROWS, lines, write_bundle

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]


def test_validate_bundle_runs_gates_and_stores_nothing(tmp_path):
    printed = run_command("validate_bundle", write_bundle(tmp_path / "b"))
    assert "capitals@1.0.0: valid, 3 cases" in printed
    assert printed.count("passed") == 7
    assert not Environment.objects.exists()


def test_validate_bundle_lists_problems_and_exits_2(tmp_path):
    printed = run_command("validate_bundle", write_bundle(tmp_path / "b", slug="No", colour=1), code=2)
    assert "environment.yaml:2 (slug)" in printed
    assert "(colour): unknown key" in printed


def test_failed_gate_exits_1(tmp_path):
    printed = run_command("validate_bundle", write_bundle(tmp_path / "b", gold={"content": "Rome"}), code=1)
    assert "FAILED   gold" in printed
    assert "Gates failed: gold" in printed


def test_json_output_is_one_document_for_every_outcome(tmp_path):
    good = json.loads(run_command("validate_bundle", write_bundle(tmp_path / "b"), "--json"))
    assert (good["valid"], good["environment"], good["cases"], good["problems"]) == (True, "capitals@1.0.0", 3, [])
    assert [gate["status"] for gate in good["certificate"]["gates"]] == ["passed"] * 7
    bad = json.loads(run_command("validate_bundle", tmp_path / "nowhere", "--json", code=2))
    assert (bad["valid"], len(bad["problems"])) == (False, 1)
    bundle = write_bundle(tmp_path / "bad", title="", category="x")
    assert [e["key"] for e in json.loads(run_command("import_bundle", bundle, "--json", code=2))["errors"]] == [
        "title",
        "category",
    ]
    failing = write_bundle(tmp_path / "failing", gold={"content": "Rome"})
    printed = run_command("import_bundle", failing, "--publish", "--json", code=2)
    assert "the gates gold failed" in json.loads(printed)["message"]


def test_validate_bundle_options_skip_gates_and_write_the_certificate(tmp_path):
    folder = write_bundle(tmp_path / "b")
    assert json.loads(run_command("validate_bundle", folder, "--no-gates", "--json"))["certificate"] is None
    run_command("validate_bundle", folder, "--write-certificate")
    written = json.loads((folder / "certificate.json").read_text())
    assert written["digest"] == json.loads(run_command("validate_bundle", folder, "--no-gates", "--json"))["digest"]
    assert "needs a folder" in run_command("validate_bundle", folder, "--write-certificate", "--no-gates", code=2)


def test_file_of_a_bundle_is_rejected_with_the_name_of_its_folder(tmp_path):
    folder = write_bundle(tmp_path / "b")
    printed = run_command("validate_bundle", folder / "environment.yaml", code=2)
    assert f"environment.yaml: this is one file of a bundle. Name its folder: {folder}" in printed


def test_published_version_is_not_announced_as_a_later_one(tmp_path):
    run_command("import_bundle", write_bundle(tmp_path / "a"), "--publish")
    printed = run_command("import_bundle", write_bundle(tmp_path / "b", version="1.1.0"), "--publish")
    assert printed == "capitals@1.1.0: 3 cases, published.\n"
    printed = run_command("import_bundle", write_bundle(tmp_path / "c", version="1.2.0"))
    assert "It becomes the latest version, instead of 1.1.0, when it has passed its gates." in printed


def test_import_of_a_lower_version_says_which_one_remains_the_latest(tmp_path):
    run_command("import_bundle", write_bundle(tmp_path / "a", version="1.1.0"))
    printed = run_command("import_bundle", write_bundle(tmp_path / "b"))
    assert printed.splitlines()[1:] == ["1.1.0 remains the latest version: its number is higher."]


def test_import_is_private_and_publishing_runs_the_gates(tmp_path):
    assert "capitals@1.0.0: 3 cases, private" in run_command("import_bundle", write_bundle(tmp_path / "b"))
    stored = json.loads(run_command("import_bundle", tmp_path / "b", "--publish", "--json"))
    assert stored["visibility"] == "published"
    assert EnvironmentVersion.objects.get().certificate["digest"] == stored["digest"]


def test_import_of_a_stored_version_says_that_nothing_changed(tmp_path):
    folder = write_bundle(tmp_path / "b")
    assert run_command("import_bundle", folder) == "capitals@1.0.0: 3 cases, private.\n"
    again = "capitals@1.0.0: 3 cases, private.\ncapitals@1.0.0 is already stored; nothing changed.\n"
    assert run_command("import_bundle", folder) == again
    assert run_command("import_bundle", folder, "--publish") == "capitals@1.0.0: 3 cases, published.\n"


def test_bundle_with_failed_gates_is_neither_stored_nor_published(tmp_path):
    printed = run_command("import_bundle", write_bundle(tmp_path / "b", gold={"content": "Rome"}), "--publish", code=2)
    assert "the gates gold failed" in printed
    assert not Environment.objects.exists()


def test_import_lists_every_problem_and_stores_nothing(tmp_path):
    printed = run_command("import_bundle", write_bundle(tmp_path / "b", title="", category="x"), code=2)
    assert "2 problems; nothing was stored." in printed
    assert not Environment.objects.exists()


def test_export_can_be_imported_and_overwrites_only_with_force(tmp_path):
    run_command("import_bundle", write_bundle(tmp_path / "b"))
    out = tmp_path / "out.zip"
    run_command("export_bundle", "capitals@1.0.0", out)
    content = out.read_bytes()
    assert "--force" in run_command("export_bundle", "capitals", out, code=2)
    run_command("export_bundle", "capitals", out, "--force")
    assert "a bundle ends in .zip" in run_command("export_bundle", "capitals", tmp_path / "out.jsonl", code=2)
    assert out.read_bytes() == content
    Environment.objects.all().delete()
    assert "3 cases" in run_command("import_bundle", out)


@pytest.mark.parametrize("name", ["out.tar", "out.tar.gz", "out.TGZ", "out.bz2", "out.tar.xz", "out.7z", "out.rar"])
def test_export_under_the_name_of_another_archive_is_refused(tmp_path, name):
    run_command("import_bundle", write_bundle(tmp_path / "b"))
    assert "a bundle ends in .zip" in run_command("export_bundle", "capitals", tmp_path / name, code=2)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["capitels", "capitals@9.9.9"])
def test_export_of_unknown_environment_lists_known_ones(tmp_path, name):
    run_command("import_bundle", write_bundle(tmp_path / "b", files={"cases.jsonl": lines(ROWS)}))
    assert "capitals" in run_command("export_bundle", name, tmp_path / "out.zip", code=2)
    assert not (tmp_path / "out.zip").exists()


def test_catalog_entry_with_changed_content_is_reported_and_others_load(tmp_path, settings, monkeypatch):
    settings.VAR_DIR = tmp_path
    folder = tmp_path / "catalog"
    monkeypatch.setattr("hub.management.commands.load_catalog.CATALOG", folder)
    run_command("import_bundle", write_bundle(tmp_path / "mine"))
    write_bundle(folder / "other", title="Another")
    write_bundle(folder / "sums", slug="sums")
    for _ in range(2):  # it is reported until it is fixed
        printed = run_command("prepare")
        assert "capitals 1.0.0 is already stored with different content. Raise `version`" in printed
        assert "1 environment of hub/catalog could not be loaded.\nThe stored versions remain in use.\n" in printed
    assert set(Environment.objects.values_list("slug", flat=True)) == {"capitals", "sums"}
    write_bundle(folder / "other", title="Another", version="1.0.1")
    assert run_command("prepare") == ""
    assert run_command("prepare") == ""
