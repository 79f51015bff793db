"""Environments shipped with the product: valid, certified, without duplicate cases, loaded without running code."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from hub.bundles.loader import open_bundle
from hub.bundles.validation import validate
from hub.management.commands.load_catalog import CATALOG
from hub.models import Environment, EnvironmentVersion
from hub.services import load_catalog

BUNDLES = sorted(path for path in CATALOG.iterdir() if (path / "environment.yaml").is_file())
named = pytest.mark.parametrize("folder", BUNDLES, ids=lambda path: path.name)


def masked(text: str) -> str:
    """*text* with what a case could be varied by taken out: numbers, quoted strings, names, and the function's own."""
    for function in set(re.findall(r"\b(?:def|class) (\w+)", text)):
        text = re.sub(rf"\b{function}\b", "f", text)
    text = re.sub(r"\"[^\"\n]*\"|'[^'\n]*'|“[^”\n]*”", "q", text)
    text = re.sub(r"[-+]?\d[\d,.:%]*", "0", text)
    text = re.sub(r"\b[A-Z][\w’'-]*", "N", text)
    text = re.sub(r"N(?:[ ,]+(?:and )?N)+", "N", text)
    return " ".join(text.split())


def test_mask_replaces_numbers_names_and_strings():
    assert masked("Ann has 3 apples, Bob 12.5.") == masked("Carla has 44 apples, Dan 7.")
    assert masked("def add(a): add 'x' to add(1)") == masked("def plus(a): plus 'yy' to plus(23)")
    assert masked("Ann has 3 apples.") != masked("Ann has lost 3 apples.")


def statement(case) -> str:
    """Return the task of a case: text and files."""
    turns = case.row.get("turns") or []
    parts = [case.input, *turns, *(case.choices), *case.files.values()]
    return "\n".join(part if isinstance(part, str) else str(part) for part in parts)


@named
def test_catalog_cases_are_distinct_after_masking(folder: Path):
    alike = defaultdict(list)
    with open_bundle(folder) as bundle:
        for case in bundle.cases():
            alike[masked(statement(case))].append(case.id)
    assert not [ids for ids in alike.values() if len(ids) > 1]


@named
def test_bundle_is_valid_and_documented(folder: Path):
    assert validate(folder).problems == []
    with open_bundle(folder) as bundle:
        assert bundle.manifest.slug == folder.name
        assert bundle.readme.startswith("# ")
        assert bundle.manifest.license


@named
def test_catalog_certificate_matches_the_bundle_and_every_gate_passed(folder: Path):
    with open_bundle(folder) as bundle:
        certificate = bundle.certificate
    assert certificate, f"run: manage.py validate_bundle hub/catalog/{folder.name} --write-certificate"
    assert {gate["name"]: gate["status"] for gate in certificate["gates"]} == {
        gate["name"]: "passed" for gate in certificate["gates"]
    }
    gold = next(gate for gate in certificate["gates"] if gate["name"] == "gold")
    assert gold["checked"] >= certificate["cases"]


@pytest.mark.django_db
def test_catalog_loads_published_without_running_code(tmp_path, settings, monkeypatch):
    settings.MEDIA_ROOT = tmp_path / "media"

    def refuse(*_: object) -> None:
        raise AssertionError("code was run")

    monkeypatch.setattr("sandbox.client.pool.Pool.run", refuse)
    failed = {
        name: result for name, result in load_catalog(folder=CATALOG) if not isinstance(result, EnvironmentVersion)
    }
    assert failed == {}
    assert Environment.objects.count() == len(BUNDLES)
    assert set(Environment.objects.values_list("visibility", flat=True)) == {Environment.Visibility.PUBLISHED}
    assert list(load_catalog(folder=CATALOG)) == []
