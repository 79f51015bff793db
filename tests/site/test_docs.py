"""The docs cover all commands, settings, scorers, harnesses, providers and formats, and their links are valid."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands

from hub.harnesses.registry import HARNESSES
from hub.manifest.schema import Manifest
from hub.scorers.registry import SCORERS
from preferences.exporters import FORMATS as PREFERENCE_FORMATS
from runs.config.schema import RunConfig
from runs.exports import FORMATS as FAILURE_FORMATS
from runs.exports import ROLLOUT_FORMATS
from runs.providers.registry import PROVIDERS
from runs.stages import stages

ROOT: Path = settings.BASE_DIR
APPS = {"llmeval_site", "sandbox", "hub", "runs", "preferences", "review"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def all_text() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in PAGES)


@pytest.mark.parametrize("command", sorted(name for name, app in get_commands().items() if app in APPS))
def test_every_command_is_documented(command: str) -> None:
    assert re.search(rf"manage\.py {command}\b", all_text()), f"no page mentions `manage.py {command}`"


def test_documented_settings_match_those_in_the_code() -> None:
    source = (ROOT / "llmeval_site" / "settings.py").read_text(encoding="utf-8")
    read = set(re.findall(r"ENV\.(?:text|secret|flag|number|words|choice)\(\s*\"([A-Z_]+)\"", source))
    documented = set(re.findall(r"^\| `([A-Z_]+)` \|", page("settings.md"), re.MULTILINE))
    assert read == documented


@pytest.mark.parametrize("scorer", sorted(SCORERS))
def test_every_scorer_is_documented_with_its_options(scorer: str) -> None:
    text = page("scorers.md")
    assert f"`{scorer}`" in text
    for name, field in SCORERS[scorer].Options.model_fields.items():
        option = field.alias or name
        assert f"`{option}`" in text, f"docs/scorers.md does not mention {scorer}'s {option}"


@pytest.mark.parametrize("harness", sorted(HARNESSES))
def test_every_harness_is_documented_with_its_options(harness: str) -> None:
    text = page("harnesses.md")
    assert f"`{harness}`" in text
    for option in HARNESSES[harness].Options.model_fields:
        assert f"`{option}`" in text, f"docs/harnesses.md does not mention {harness}'s {option}"


@pytest.mark.parametrize("provider", sorted(PROVIDERS))
def test_every_provider_is_documented_with_its_options(provider: str) -> None:
    text = page("configuration.md")
    assert f"provider: {provider}" in text
    for option in PROVIDERS[provider].Options.model_fields:
        assert f"`{option}`" in text, f"docs/configuration.md does not mention {provider}'s {option}"


def test_every_key_of_a_config_is_documented() -> None:
    text = page("configuration.md")
    keys = {*RunConfig.model_fields, *(stage.key for stage in stages())} - {"stage_configs", "base_dir"}
    missing = {key for key in keys if not re.search(rf"`{key}[`.]", text) and f"## {key}" not in text}
    assert not missing


def test_every_key_of_a_bundle_is_documented() -> None:
    text = page("bundles.md")
    assert not {key for key in Manifest.model_fields if f"`{key}`" not in text and f"{key}:" not in text}


@pytest.mark.parametrize("name", sorted({*PREFERENCE_FORMATS, *FAILURE_FORMATS, *ROLLOUT_FORMATS}))
def test_every_export_format_is_in_a_table(name: str) -> None:
    assert re.search(rf"^\| `{name}`", page("exports.md") + page("rl.md"), re.MULTILINE)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_pages_are_valid(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), f"{path.name} links to {target}, which does not exist"
