"""Tests that benchmarks/pages.py measures every address, or says why not."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.urls import resolve

from tests.site.accounts.access_table import ROLES


def test_every_address_is_measured_or_excluded_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(settings.BASE_DIR, "benchmarks")
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    spec = importlib.util.spec_from_file_location("pages", folder / "pages.py")
    assert spec is not None
    assert spec.loader is not None
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    measured = set(re.findall(r'reverse\("([^"]+)"', (folder / "pages.py").read_text(encoding="utf-8")))
    views = {resolve(address).view_name for address in ROLES}
    assert views - measured - set(pages.EXCLUDED) == set()
    assert set(pages.EXCLUDED) - views == set()
    assert measured & set(pages.EXCLUDED) == set()
