"""Bundles opened from a folder or a .zip: digest, certificate, code, export."""

import io
import json
import os
import subprocess
import zipfile

import pytest

from hub.bundles.loader import open_archive, open_bundle
from hub.manifest.problems import BundleError
from tests.hub.bundle_files import write_bundle


def zipped(folder, top=""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_file():
                archive.write(path, f"{top}{path.relative_to(folder)}")
    out.seek(0)
    return out


def test_folder_and_zip_are_the_same_bundle_with_any_top_folder(tmp_path):
    folder = write_bundle(tmp_path / "b", files={"README.md": "# Capitals\n", "data/notes.txt": "x"})
    with (
        open_bundle(folder) as plain,
        open_archive(zipped(folder)) as packed,
        open_archive(zipped(folder, "b-1/")) as top,
    ):
        assert plain.digest == packed.digest == top.digest
        assert plain.files == packed.files == top.files
        assert packed.readme == "# Capitals\n"
        assert [case.id for case in top.cases()] == ["France", "Spain", "Norway"]


def test_digest_excludes_by_products_and_the_certificate(tmp_path):
    folder = write_bundle(tmp_path / "b")
    with open_bundle(folder) as bundle:
        digest = bundle.digest
    junk = {
        "__pycache__/x.pyc": "x",
        ".DS_Store": "x",
        ".git/HEAD": "x",
        "certificate.json": json.dumps({"digest": digest}),
    }
    write_bundle(folder, files=junk)
    with open_bundle(folder) as bundle:
        assert bundle.digest == digest
        assert bundle.certificate == {"digest": digest}


def test_certificate_with_another_digest_is_ignored(tmp_path):
    folder = write_bundle(tmp_path / "b", files={"certificate.json": json.dumps({"digest": "0" * 64})})
    with open_bundle(folder) as bundle:
        assert bundle.certificate is None


def test_exporting_gives_the_same_bytes_from_a_folder_its_zip_and_the_export_itself(tmp_path):
    folder = write_bundle(
        tmp_path / "b", files={"tools.py": "x = 1\n", "certificate.json": "{}", "zeros.bin": bytes(10**6)}
    )
    exports = []
    source = open_bundle(folder)
    for _ in range(3):
        out = io.BytesIO()
        with source:
            source.write(out)
        exports.append(out.getvalue())
        source = open_archive(io.BytesIO(zipped(folder, "top/").getvalue() if len(exports) == 1 else out.getvalue()))
    source.close()
    assert exports[0] == exports[1] == exports[2]


def test_code_is_loaded_without_data_files(tmp_path):
    folder = write_bundle(tmp_path / "b", files={"lib/helpers.py": "x = 1\n"})
    with open_bundle(folder) as bundle:
        assert bundle.code(bundle.manifest) == {"lib/helpers.py": b"x = 1\n"}
        assert bundle.compile().files == {"lib/helpers.py": b"x = 1\n"}


def refusal(path):
    with pytest.raises(BundleError) as caught:
        open_bundle(path)
    return str(caught.value)


def test_links_in_a_folder_are_rejected(tmp_path):
    folder = write_bundle(tmp_path / "b")
    os.symlink("/etc/passwd", folder / "cases.csv")
    assert "link or a device" in refusal(folder)


def test_very_deep_folder_is_rejected(tmp_path):
    folder = write_bundle(tmp_path / "b")
    subprocess.run(["mkdir", "-p", "d/" * 1500], cwd=folder, check=True)
    try:
        with pytest.raises(BundleError, match="the path of the folder is longer than 400 characters"):
            open_bundle(folder)
    finally:
        subprocess.run(["rm", "-r", folder / "d"], check=True)


def test_colliding_names_in_a_folder_are_rejected(tmp_path):
    folder = write_bundle(tmp_path / "b", files={"A.txt": "1", "a.txt": "2"})
    if len(list(folder.glob("[aA].txt"))) < 2:
        pytest.skip("this file system does not tell A.txt from a.txt")
    assert "differs only in case" in refusal(folder)


@pytest.mark.parametrize("names", [["other.yaml"], ["a/environment.yaml", "b/x"], ["a/b/environment.yaml"]])
def test_archive_without_a_manifest_at_its_root_is_rejected(names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, "spec: 1")
    with pytest.raises(BundleError, match=r"no environment\.yaml"):
        open_archive(out)


@pytest.mark.parametrize("name", ["environment.yml", "Environment.YAML"])
def test_manifest_with_another_name_is_to_be_renamed(tmp_path, name):
    folder = write_bundle(tmp_path / "a")
    (folder / "environment.yaml").rename(folder / name)
    with open_bundle(folder) as bundle, pytest.raises(BundleError, match=rf"Rename {name} to environment\.yaml\."):
        _ = bundle.manifest
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(folder / name, f"top/{name}")
    with pytest.raises(BundleError, match=rf"Rename top/{name} to environment\.yaml\."):
        open_archive(packed)


def test_misplaced_manifest_is_not_to_be_renamed():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/environment.yaml", "spec: 1")
        archive.writestr("b/x", "")
    with pytest.raises(BundleError, match="Pack only the folder"):
        open_archive(packed)


def test_missing_path_is_rejected(tmp_path):
    assert "no such file" in refusal(tmp_path / "nowhere")


def test_packages_must_be_known_to_the_sandbox(tmp_path):
    with open_bundle(write_bundle(tmp_path / "good", packages=["pandas", "numpy"])) as bundle:
        assert bundle.manifest.packages == ["numpy", "pandas"]
    with pytest.raises(BundleError, match="left-pad: the sandbox has no such package; it can have numpy, pandas"):
        open_bundle(write_bundle(tmp_path / "bad", packages=["left-pad"])).manifest  # noqa: B018
