"""Fixtures of browser tests: Chromium, a running site, signed-in users. Errors on a page's console fail the test."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Error, Page, sync_playwright
from pytest_django.live_server_helper import LiveServer

from hub.models import Environment
from hub.services import import_bundle
from review.queue import assignments
from runs.tasks import execute_queued_runs
from tests.browser.looks.full_site import FullSite, build_site
from tests.hub.bundle_files import write_bundle
from tests.members import member
from tests.services import unavailable

CHROMIUM = "/usr/bin/chromium"
Visit = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For one module: Playwright keeps an event loop in this thread, in which other tests could not run."""
    if not Path(CHROMIUM).exists():
        unavailable("browser", f"there is no {CHROMIUM}")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # or Django would refuse to touch the database beside it
        try:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        except Error as error:
            unavailable("browser", str(error))
        yield browser
        browser.close()


@pytest.fixture
def nothing_drawn(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> None:
    """Show the first response of each pair as A, and no suggestion hidden."""
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.99)


@pytest.fixture
def site(tmp_path: Path, nothing_drawn: None) -> FullSite:
    """Return a site with something on every page."""
    return build_site(tmp_path)


def execute_queue() -> None:
    """Execute the queued runs as a worker does, in a thread without Playwright's event loop."""

    def work() -> None:
        try:
            execute_queued_runs()
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(120)
    assert not thread.is_alive()


@pytest.fixture
def visit(browser: Browser, live_server: LiveServer, transactional_db: None) -> Iterator[Visit]:
    """`visit("/hub/", user, width=390, scheme="dark")`: a page, signed in, in a context of its own."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_page(
        path: str,
        user: User | None = None,
        *,
        width: int = 1280,
        scheme: str = "light",
        script: bool = True,
        bypass_csp: bool = False,
    ) -> Page:
        context = browser.new_context(
            base_url=live_server.url,
            viewport={"width": width, "height": 900},
            color_scheme=scheme,  # type: ignore[arg-type]
            java_script_enabled=script,
            bypass_csp=bypass_csp,
        )
        contexts.append(context)
        if user is not None:
            client = Client()
            client.force_login(user)
            key = client.cookies[settings.SESSION_COOKIE_NAME].value
            context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": key, "url": live_server.url}])
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
        page.on("console", lambda said: said.type == "error" and complaints.append(f"{page.url}: {said.text}"))
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    # A refused form answers 422, which the browser reports as a resource that failed; that is the test's to judge.
    assert [said for said in complaints if "status of 4" not in said] == []


@pytest.fixture
def everything(transactional_db: None) -> User:
    """Somebody who may upload and run."""
    return member("Curator", "Runner", name="ann")


@pytest.fixture
def capitals(tmp_path: Path, transactional_db: None) -> Environment:
    """A published environment of three cases."""
    readme = "# Capitals\n\nMade **by hand**.\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n```python\nx = 1\n```\n"
    environment = import_bundle(bundle=write_bundle(tmp_path / "capitals", files={"README.md": readme})).environment
    environment.visibility = Environment.Visibility.PUBLISHED
    environment.save()
    return environment
