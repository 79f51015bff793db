"""Sign-in with an OpenID provider in a browser, with its redirects between two servers."""

from collections.abc import Iterator

import pytest
from django.conf import settings as site_settings
from playwright.sync_api import Page, expect
from pytest_django.fixtures import Settings

from llmeval_site.accounts.sign_in import OPENID_BACKEND
from llmeval_site.configuration.openid import OpenIDSettings
from tests.browser.conftest import Visit
from tests.browser.looks.checks import accessibility_findings, layout_findings
from tests.site.accounts.openid_provider import CLIENT_ID, OTHER_KEY, SECRET, Provider, openid_provider

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def provider(settings: Settings) -> Iterator[Provider]:
    with openid_provider() as provider:
        provider.claims = {"sub": "7-ann", "email": "ann@example.org", "email_verified": True}
        settings.OPENID = OpenIDSettings(
            issuer=provider.url, client_id=CLIENT_ID, client_secret=SECRET, label="Example ID", creates_users=True
        )
        settings.AUTHENTICATION_BACKENDS = [*site_settings.AUTHENTICATION_BACKENDS, OPENID_BACKEND]
        yield provider


def check_looks(page: Page) -> None:
    """Check the page at each width, light and dark."""
    found = []
    for width in (390, 768, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        found += layout_findings(page)
    for width, scheme in ((390, "dark"), (1440, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.evaluate("Promise.all(document.getAnimations().map((transition) => transition.finished))")
        found += accessibility_findings(page)
    assert found == []


@pytest.mark.parametrize("script", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_sign_in_and_out_through_the_provider(visit: Visit, provider: Provider, script: bool) -> None:
    page = visit("/runs/", script=script)
    if script:
        check_looks(page)
    page.get_by_role("link", name="Sign in with Example ID").click()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()
    expect(page.get_by_role("link", name="Sign out at Example ID")).to_be_visible()
    if script:
        check_looks(page)


@pytest.mark.exhaustive
def test_failure_is_a_page_from_which_one_can_start_again(visit: Visit, provider: Provider) -> None:
    page = visit("/login/")
    provider.key = OTHER_KEY
    page.get_by_role("link", name="Sign in with Example ID").click()
    expect(page.get_by_role("alert")).to_contain_text("signature")
    check_looks(page)
    provider.key = type(provider).key
    page.get_by_role("link", name="Start again with Example ID").click()
    expect(page.get_by_role("link", name="Account")).to_be_visible()
