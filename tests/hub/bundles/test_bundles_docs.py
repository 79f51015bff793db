"""Tests of the walkthrough in docs/bundles.md: writes its files, runs its commands, compares their output."""

import contextlib
import io
import re
import shlex

import pytest
from django.conf import settings
from django.core.management import call_command

from hub.bundles.validation import validate
from hub.manifest.schema import CASE_FIELDS, Dataset, Manifest
from tests.hub.bundle_files import write_bundle

PAGE = (settings.BASE_DIR / "docs" / "bundles.md").read_text(encoding="utf-8")
FILES = re.findall(r"^```\w+ file=(\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CONSOLE = "".join(re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^\$ \S+python manage\.py (.+)\n((?:[^$].*\n)*)", CONSOLE, re.MULTILINE)


@pytest.mark.django_db
def test_commands_of_the_walkthrough_work(tmp_path, monkeypatch, settings):
    settings.MEDIA_ROOT = tmp_path / "media"
    monkeypatch.chdir(tmp_path)
    for path, content in FILES:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(content, encoding="utf-8")
    assert len(COMMANDS) == 5
    for command, expected in COMMANDS:
        out = io.StringIO()
        with contextlib.redirect_stderr(io.StringIO()):
            call_command(*shlex.split(command), stdout=out)
        pattern = ".*".join(re.escape(part) for part in expected.split("…"))
        assert re.fullmatch(pattern, out.getvalue()), f"{command} printed:\n{out.getvalue()}"


@pytest.mark.parametrize("key", [*Manifest.model_fields, *Dataset.model_fields, *CASE_FIELDS])
def test_every_key_is_in_the_reference(key):
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| ")]
    assert any(f"`{key}`" in row for row in rows)


def test_two_ways_to_write_answers_are_valid(tmp_path):
    answers = re.findall(r'^    (\{"case": "n4".*\})$', PAGE, re.MULTILINE)
    text = "".join(line.replace('"n4"', '"France"') + "\n" for line in answers)
    report = validate(write_bundle(tmp_path, files={"gold.jsonl": text}, gold="gold.jsonl"))
    assert answers
    assert report.valid
