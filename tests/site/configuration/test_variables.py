"""Lines of `.env`: values, comments, encodings, and messages that name the line."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from llmeval_site.configuration.variables import EnvironmentVariables


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("X_TEST=sk-abc", "sk-abc"),
        ("export X_TEST = sk-abc ", "sk-abc"),
        ("X_TEST='sk abc'", "sk abc"),
        ("X_TEST=sk-abc # of the team", "sk-abc"),
        ("X_TEST='sk # abc'  # of the team", "sk # abc"),
        ("X_TEST=  # not set", ""),
        ("X_TEST=sk#abc", "sk#abc"),
        ("X_TEST=#abc", "#abc"),
        ("\ufeffX_TEST=sk-abc", "sk-abc"),  # editors of Windows write a byte order mark
    ],
)
def test_value_of_a_line(tmp_path: Path, line: str, value: str) -> None:
    (tmp_path / ".env").write_text(f"{line}\n", encoding="utf-8")
    assert EnvironmentVariables.load(tmp_path / ".env").text("X_TEST") == value


def test_invalid_line_is_named_but_not_quoted(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# keys\nX_TEST: sk-abc\n", encoding="utf-8")
    with pytest.raises(ImproperlyConfigured, match=r"\.env:2: expected KEY=value") as caught:
        EnvironmentVariables.load(tmp_path / ".env")
    assert "sk-abc" not in str(caught.value)


def test_file_in_another_encoding_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("X_TEST=abc\n", encoding="utf-16")
    with pytest.raises(ImproperlyConfigured, match=r"\.env is not UTF-8 text"):
        EnvironmentVariables.load(tmp_path / ".env")


def test_unknown_setting_in_the_file_is_reported_with_a_similar_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = ["LLMEVAL_ALLOWED_HOST=eval.example.org", "OTHER=1", "LLMEVAL_COLOR=red", "LLMEVAL_ALLOWED_HOSTS=localhost"]
    (tmp_path / ".env").write_text("\n".join(lines), encoding="utf-8")
    variables = EnvironmentVariables.load(tmp_path / ".env")
    variables.words("LLMEVAL_ALLOWED_HOSTS")
    variables.warn_about_unknown_settings([])
    assert caplog.messages == [
        ".env:1: LLMEVAL_ALLOWED_HOST is not a setting, so it has no effect. Did you mean LLMEVAL_ALLOWED_HOSTS?",
        ".env:3: LLMEVAL_COLOR is not a setting, so it has no effect.",
    ]


def test_settings_warn_about_unknown_names_but_not_about_those_of_docker_compose(tmp_path: Path) -> None:
    """`.env` is in the folder of the project, so the settings are read in a copy of it."""
    root = Path(settings.BASE_DIR)
    shutil.copytree(root / "llmeval_site", tmp_path / "llmeval_site")
    for name in ("hub", "sandbox"):
        (tmp_path / name).symlink_to(root / name)
    files = [root / name for name in (".env.example", "docker-compose.yml", "deploy/docker-compose.tls.yml")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    known = {*re.findall(r"^#? ?(LLMEVAL_\w+)=", text, re.MULTILINE), *re.findall(r"\$\{(LLMEVAL_\w+)", text)}
    lines = ["LLMEVAL_OWN_KEY=abc", "LLMEVAL_API_KEY_VARIABLES=LLMEVAL_OWN_KEY", "LLMEVAL_TRACE=http://collector:4318"]
    (tmp_path / ".env").write_text("\n".join([*lines, *(f"{name}=" for name in sorted(known))]), encoding="utf-8")
    (tmp_path / ".env").chmod(0o600)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LLMEVAL_")}
    done = subprocess.run(
        [sys.executable, "-c", "import llmeval_site.settings"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    warning = ".env:3: LLMEVAL_TRACE is not a setting, so it has no effect. Did you mean LLMEVAL_TRACES?"
    assert done.stderr.splitlines() == [warning]


@pytest.mark.parametrize("name", ["SIGN_IN_FAILURES", "SHARD_RESPONSES", "EPISODE_STEPS", "RUN_SLICE_SECONDS"])
def test_zero_is_rejected_for_settings_that_it_would_break(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import llmeval_site.settings"],
        env={**os.environ, f"LLMEVAL_{name}": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"LLMEVAL_{name}=0 must be at least 1." in done.stderr


def test_negative_number_is_rejected() -> None:
    with pytest.raises(ImproperlyConfigured, match="X=-1 must be at least 0"):
        EnvironmentVariables({"X": "-1"}).number("X", 5)
