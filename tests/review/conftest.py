"""Data created by migrations, for tests that flush the database."""

from typing import Any

import pytest

from preferences.models import IssueCategory


@pytest.fixture(autouse=True)
def seeded(db: Any) -> None:
    for slug in ("wrong-result", "style"):
        IssueCategory.objects.get_or_create(slug=slug, defaults={"title": slug})
