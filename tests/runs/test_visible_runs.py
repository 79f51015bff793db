"""Runs on environments that are hidden from a user."""

import pytest
from django.contrib.auth.models import User

from hub import selectors
from hub.models import Environment
from runs.selectors import visible_runs
from tests.factories import stored_run, stored_version
from tests.members import member

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("few", [100, 1])
def test_runs_on_hidden_environments_are_invisible(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "_FEW", few)
    versions = [stored_version(slug) for slug in ("published", "owned", "private", "draft")]
    owner, curator, root = member(name="owner"), member("Curator"), User.objects.create_superuser("root")
    Environment.objects.update(visibility=Environment.Visibility.PRIVATE)
    Environment.objects.filter(slug="published").update(visibility=Environment.Visibility.PUBLISHED)
    Environment.objects.filter(slug="owned").update(owner=owner)
    published, owned, private, draft = (stored_run(version) for version in versions)
    assert set(visible_runs(owner)) == {published, owned}
    assert set(visible_runs(owner)) == {published, owned}  # now the hidden environments are known
    assert set(visible_runs(member(name="other"))) == {published}
    assert set(visible_runs(curator)) == set(visible_runs(root)) == {published, owned, private, draft}


def test_run_is_visible_if_no_environment_is_hidden() -> None:
    run = stored_run(stored_version())
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    assert list(visible_runs(member())) == [run]
