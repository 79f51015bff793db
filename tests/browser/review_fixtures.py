"""Browser signed in to the running site; tests are skipped if Chromium is missing."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.services import unavailable

CHROMIUM = os.environ.get("LLMEVAL_CHROMIUM", "/usr/bin/chromium")
SignIn = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        unavailable("browser", f"there is no {CHROMIUM}")
    # Playwright's loop runs in this thread, where Django would otherwise refuse to touch the database.
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def sign_in(browser: Browser, live_server: Any) -> Iterator[SignIn]:
    """Call with a user; gives a page of a context of its own, signed in."""
    contexts: list[BrowserContext] = []

    def page_for(user: User, **options: Any) -> Page:
        client = Client()
        client.force_login(user)
        context = browser.new_context(base_url=live_server.url, **options)
        context.add_cookies(
            [
                {
                    "name": settings.SESSION_COOKIE_NAME,
                    "value": client.cookies[settings.SESSION_COOKIE_NAME].value,
                    "url": live_server.url,
                }
            ]
        )
        contexts.append(context)
        return context.new_page()

    yield page_for
    for context in contexts:
        context.close()
