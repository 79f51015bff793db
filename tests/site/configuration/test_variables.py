"""Lines of `.env`: values, comments, encodings, and messages that name the line."""

from pathlib import Path

import pytest
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
