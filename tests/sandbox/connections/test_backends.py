"""The list of backends."""

import re
from pathlib import Path

import pytest

from sandbox.connections.backends import BACKENDS, get_transport_class

DOCS = Path(__file__).resolve().parents[3] / "docs" / "sandbox.md"


@pytest.mark.parametrize("name", BACKENDS)
def test_transport_class_has_the_name_of_its_backend(name: str) -> None:
    assert get_transport_class(name).backend == name


def test_docs_describe_each_backend() -> None:
    section = DOCS.read_text(encoding="utf-8").partition("## Backends\n")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == BACKENDS
