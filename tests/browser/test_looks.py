"""Every page, wide and narrow, light and dark: sound for screen readers, and nothing to be scrolled sideways."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Page

from hub.models import Case, Environment, EnvironmentVersion
from hub.services import bundle_import
from runs.models import ModelEndpoint, Response, Run
from tests.browser.conftest import Visit
from tests.factories import stored_outcomes, stored_run, stored_score
from tests.hub.bundles import write_bundle
from tests.members import member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

GATES = [
    {"name": name, "what": f"{name}: what it checks.", "status": status, "checked": 3, "failed": failed, "note": ""}
    for name, status, failed in (("gold", "passed", 0), ("wrong", "failed", 1), ("leak", "not_run", 0))
]


@pytest.fixture
def pages(capitals: Environment, tmp_path: Path) -> tuple[User, list[str]]:
    """A site with something on every page, and the addresses of all of them."""
    EnvironmentVersion.objects.update(certificate={"gates": GATES})
    second = bundle_import(bundle=write_bundle(tmp_path / "two", version="1.1.0", summary="Changed."))
    Environment.objects.update(held_out=True, featured=True, tags=["geography", "short-answers"])
    ModelEndpoint.objects.create(name="small", model="gpt-5-mini", price_input=0.25, price_output=2.0)
    run = stored_run(
        second, ["small", "a-model-with-a-rather-long-name-of-its-own"], name="Nightly run " * 5, attempts=2
    )
    stored_outcomes(run, "pfe", model="small")
    stored_outcomes(run, "ppf", model="a-model-with-a-rather-long-name-of-its-own")
    failed = Response.objects.filter(status="failed")[0]
    call = {"id": "call-1", "type": "function", "function": {"name": "look_up", "arguments": '{"country": "Spain"}'}}
    failed.messages = [
        {"role": "system", "content": "Answer."},
        {"role": "user", "content": "word" * 2000 + "\nline" * 60},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call-1", "content": "x" * 400},
    ]
    failed.truncated = failed.refused = True
    failed.save()
    stored_score(failed, reason="Not Madrid.", detail={"expected": "Madrid"}, execution={"status": "timeout"})
    going = stored_run(second, name="going on", status=Run.Status.RUNNING, finished_at=None)
    Run.objects.filter(pk=run.pk).update(finished_at=timezone.now())
    case = Case.objects.filter(version=second)[0]
    user = member("Curator", "Runner", name="ann", staff=True)
    return user, [
        "/",
        "/search/?q=capitals",
        "/account/",
        "/hub/",
        "/hub/?q=zebra",
        "/hub/upload/",
        "/hub/capitals/",
        "/hub/capitals/1.0.0/",
        "/hub/capitals/1.1.0/changes/",
        "/hub/capitals/1.1.0/cases/Spain/",
        "/runs/",
        "/runs/new/",
        f"/runs/{run.pk}/",
        f"/runs/{going.pk}/",
        f"/runs/{run.pk}/cases/{case.pk}/",
        f"/responses/{failed.pk}/",
        f"/compare/?a={run.pk}&b={run.pk}",
        "/models/",
        "/models/small/",
        "/runs/past/capitals/",
        "/no/such/page/",
    ]


def violations(page: Page) -> list[str]:
    """What axe finds that is serious or worse."""
    found = Axe().run(page).response["violations"]
    return [
        f"{page.url}: {item['id']}: {node['target']} {node['failureSummary'][:200]}"
        for item in found
        if item["impact"] in ("serious", "critical")
        for node in item["nodes"][:3]
    ]


def cut_off(page: Page) -> list[str]:
    """Pages that would have to be scrolled sideways."""
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [f"{page.url}: {wider} pixels too wide"] if wider > 0 else []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_page_is_sound_and_fits(visit: Visit, pages: tuple[User, list[str]], width: int, scheme: str) -> None:
    user, urls = pages
    page = visit("/login/", width=width, scheme=scheme)
    found = violations(page) + cut_off(page)
    page = visit("/", user, width=width, scheme=scheme)
    for url in urls:
        page.goto(url)
        if url == "/hub/capitals/":
            page.wait_for_selector("#past table")
        found += violations(page) + cut_off(page)
    assert found == []


def test_the_keys_and_an_opened_fold_are_sound_too(visit: Visit, pages: tuple[User, list[str]]) -> None:
    user, urls = pages
    page = visit(next(url for url in urls if url.startswith("/responses/")), user)
    page.locator("details.folded summary").first.click()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    assert violations(page) == []


def test_the_documentation_of_rest_opens_under_the_sites_policy(visit: Visit) -> None:
    page = visit("/api/v1/docs/", member())
    page.wait_for_selector(".opblock")
    assert page.locator(".opblock").count() >= 10
